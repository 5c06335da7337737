//! The guest view of an image: its size, its extents, its bytes.

use std::sync::Arc;

use crate::{Dirty, Extent, ExtentKind, Lent, Origin, Result, VolumeId};

/// An image as its guest sees it.
///
/// Several threads may read a source at once. Errors contain the name of the image and the offset, if
/// any. Bytes that cannot be read are never reported as zeros.
pub trait Source: Send + Sync {
    /// Returns the exact size of the guest content in bytes.
    fn size(&self) -> u64;

    /// Returns the extent that begins at `offset`, at most `limit` bytes long.
    ///
    /// `offset` is below [`size`](Self::size) and `limit` is not 0. The extent starts at `offset`, is at least one byte
    /// long and ends at or before the end of the source. It need not be maximal. The next one may be of the same kind.
    ///
    /// # Errors
    ///
    /// Fails if the place of the bytes cannot be read or is damaged, or if `offset` is not in the source.
    fn extent(&self, offset: u64, limit: u64) -> Result<Extent>;

    /// Returns where the guest bytes from `offset` on come from, for at most `limit` bytes.
    ///
    /// The arguments and the result are subject to the same rules as of [`extent`](Self::extent). Equal places in two
    /// sources mean equal bytes, so that neither has to be read to compare them. By default, only zeros are known.
    ///
    /// # Errors
    ///
    /// Fails as [`extent`](Self::extent) does.
    fn origin(&self, offset: u64, limit: u64) -> Result<Origin> {
        self.extent(offset, limit).map(Origin::from)
    }

    /// Returns the volumes on which [`volume_origins`](Self::volume_origins) may find bytes, in any order. By default, there
    /// are none.
    fn volumes(&self) -> Vec<VolumeId> {
        Vec::new()
    }

    /// Returns where the guest bytes from `offset` on are, like [`origin`](Self::origin), with places on
    /// [`volumes`](Self::volumes) instead of places in files.
    ///
    /// Returns one run after the other, of which there is at least one, for `limit` bytes or fewer. The query takes a system
    /// call, so that many runs come at once.
    ///
    /// The file system may move bytes while it is mounted. Equal places mean equal bytes only if one source has this place
    /// before and after the other one has it, both with [`Dirty::WriteBack`]. By default, only [`origin`](Self::origin) is known.
    ///
    /// # Errors
    ///
    /// Fails as [`extent`](Self::extent) does.
    fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Result<Vec<Origin>> {
        let _ = dirty;
        self.origin(offset, limit).map(|origin| vec![origin])
    }

    /// Fills all of `buf` with the guest bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// Fails if the bytes cannot be read or decompressed, or do not all belong to the source. Then `buf` may have any
    /// content.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;

    /// Lends guest bytes from `offset` on that are in memory, without a copy, if the source supports it. Lends `length`
    /// bytes, or fewer if fewer are contiguous. The bytes are the same as from [`read_exact_at`](Self::read_exact_at)
    /// as long as [`Lent::is_intact`] returns `true`. After `None`, the caller reads the bytes instead.
    ///
    /// A caller that goes through a source should keep the last `Lent` until it has the next. Both may
    /// be in one mapping, which would otherwise be mapped again.
    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        let _ = (offset, length);
        None
    }

    /// Returns the granularity of cheap reads in bytes. Reads are cheapest if their start and length
    /// are multiples of it. For example, a compressed cluster is always decompressed as a whole. A
    /// power of two, at most 2 MiB.
    fn granularity(&self) -> u64 {
        1
    }

    /// Returns the number of reads that should be in flight for full speed: 1 if a read keeps its
    /// thread busy, more if it waits for a remote server.
    fn queue_depth(&self) -> usize {
        1
    }

    /// Announces that these bytes will be read once, soon, and in about the order of the calls. Never blocks, and never fails.
    ///
    /// A source far away requests them at once, so that many requests are in flight although reads block. Bytes may be read
    /// without having been announced, and some may be announced again or not be read. A caller should have asked for the
    /// [`extent`](Self::extent) of the bytes, which reads the tables of an image. By default, does nothing.
    fn will_need(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Returns the number of bytes that should be announced ahead of reads. It may change while bytes are read, but 0 means
    /// that announcing never has an effect.
    fn read_ahead(&self) -> u64 {
        0
    }

    /// Checks that the files under the source did not change since it was opened, as far as this can be
    /// detected. Called after the last read. If it fails, all bytes read before are invalid.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Changed`](crate::ErrorKind::Changed) if a file changed, or cannot be examined.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns the extent that begins at `start` and is as long as its kind continues, up to `end`. Returns `None` at the
/// end.
///
/// # Errors
///
/// Fails as [`Source::extent`] does at `start`. An error after it ends the extent, and is found again there.
pub fn longest_extent(source: &dyn Source, start: u64, end: u64) -> Result<Option<Extent>> {
    if start >= end {
        return Ok(None);
    }
    let mut longest = source.extent(start, end - start)?;
    while longest.end() < end {
        match source.extent(longest.end(), end - longest.end()) {
            Ok(next) if next.kind == longest.kind => longest.length += next.length,
            _ => break,
        }
    }
    Ok(Some(longest))
}

/// Announces the data of a source ahead of a caller that reads it from start to end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Announcer {
    /// Offset of the first byte that was not considered.
    end: u64,
}

impl Announcer {
    /// Announces data after `position`, from which on the caller reads, as far ahead as [`Source::read_ahead`] says. An
    /// error of the source ends this, and the caller finds it again.
    pub fn advance(&mut self, source: &dyn Source, position: u64) {
        let reach = source.read_ahead();
        self.end = self.end.max(position);
        if reach == 0 || self.end - position > reach / 2 {
            return;
        }
        let end = position.saturating_add(reach).min(source.size());
        for _ in 0..MAX_EXTENTS {
            let limit = end.saturating_sub(self.end);
            if limit == 0 {
                break;
            }
            let Ok(extent) = source.extent(self.end, limit) else { break };
            let length = extent.length.min(limit);
            if extent.kind == ExtentKind::Data {
                source.will_need(self.end, length);
            }
            self.end += length;
        }
    }
}

/// Maximum number of extents that are looked at in one step of an [`Announcer`].
const MAX_EXTENTS: u32 = 1 << 12;

/// Implements `Source` for pointers to sources. Forwards every method, including those with a default.
macro_rules! source_of_pointer {
    ($($pointer:ty),*) => {$(
        impl<S: Source + ?Sized> Source for $pointer {
            fn size(&self) -> u64 {
                (**self).size()
            }

            fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
                (**self).extent(offset, limit)
            }

            fn origin(&self, offset: u64, limit: u64) -> Result<Origin> {
                (**self).origin(offset, limit)
            }

            fn volumes(&self) -> Vec<VolumeId> {
                (**self).volumes()
            }

            fn volume_origins(&self, offset: u64, limit: u64, dirty: Dirty) -> Result<Vec<Origin>> {
                (**self).volume_origins(offset, limit, dirty)
            }

            fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
                (**self).read_exact_at(buf, offset)
            }

            fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
                (**self).lend(offset, length)
            }

            fn granularity(&self) -> u64 {
                (**self).granularity()
            }

            fn queue_depth(&self) -> usize {
                (**self).queue_depth()
            }

            fn will_need(&self, offset: u64, length: u64) {
                (**self).will_need(offset, length);
            }

            fn read_ahead(&self) -> u64 {
                (**self).read_ahead()
            }

            fn check_unchanged(&self) -> Result<()> {
                (**self).check_unchanged()
            }
        }
    )*};
}

source_of_pointer!(&S, Box<S>, Arc<S>);
