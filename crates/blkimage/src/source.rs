//! The guest view of an image: its size, its extents, its bytes.

use std::sync::Arc;

use crate::{Extent, Lent, Result};

/// An image as its guest sees it.
///
/// A source may be read by several threads at once. Every method that fails names the image and,
/// where there is one, the offset. Nothing that could not be read is ever reported as zeros.
pub trait Source: Send + Sync {
    /// Size of the guest content in bytes, exact.
    fn size(&self) -> u64;

    /// The extent that begins at `offset`, at most `limit` bytes long.
    ///
    /// `offset` lies below [`size`](Self::size) and `limit` is not 0. The extent starts at
    /// `offset`, is at least one byte long and ends at or before the end of the source. It need not
    /// be maximal: the next one may be of the same kind.
    fn extent(&self, offset: u64, limit: u64) -> Result<Extent>;

    /// Fills `buf` with the guest bytes from `offset` on, all of them or an error.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;

    /// Guest bytes from `offset` on where they lie in memory already, without a copy, if the source
    /// has them like that: `length` of them, or as many as lie there in a row. They are those that
    /// [`read_exact_at`](Self::read_exact_at) gives, as long as [`Lent::is_intact`]. Not having them
    /// says nothing: read them then.
    ///
    /// Who goes through a source keeps what was lent last until there is the next: both may lie in
    /// one mapping, which is made again otherwise.
    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        let _ = (offset, length);
        None
    }

    /// Reads are cheapest when they start at a multiple of this many bytes and are multiples of it
    /// (a compressed cluster is decompressed whole however little of it is asked for). A power of
    /// two, at most 2 MiB.
    fn granularity(&self) -> u64 {
        1
    }

    /// How many reads should be in flight at once for full speed: 1 where a read keeps its thread
    /// busy, more where it waits for something far away.
    fn queue_depth(&self) -> usize {
        1
    }

    /// Fails if what lies under the source changed since it was opened, as far as that can be seen.
    /// Called after the last read: what was read before is worthless if this fails.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

/// A pointer to a source is one: every method is that of the source, also those with a default.
macro_rules! source_of_pointer {
    ($($pointer:ty),*) => {$(
        impl<S: Source + ?Sized> Source for $pointer {
            fn size(&self) -> u64 {
                (**self).size()
            }

            fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
                (**self).extent(offset, limit)
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

            fn check_unchanged(&self) -> Result<()> {
                (**self).check_unchanged()
            }
        }
    )*};
}

source_of_pointer!(&S, Box<S>, Arc<S>);
