//! The extents of a disk that differ from an earlier state, as a tracker of changed blocks reports them.
//!
//! [`List::parse`] reads the lists of QEMU, Kubernetes, Ceph, EBS and LVM, and [`Changes::print`] writes lists:
//!
//! ```
//! use blksum::changes::{List, Output};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"[{"block_metadata_type":2,"volume_capacity_bytes":1048576,
//!                 "block_metadata":[{"size_bytes":65536},{"byte_offset":131072,"size_bytes":4096}]}]"#;
//! let list = List::parse(text.as_bytes(), None)?;
//! assert_eq!(list.disk_size, Some(1 << 20));
//! assert_eq!(list.changes.extents(), [0..65536, 131072..135168]);
//!
//! let mut lines = Vec::new();
//! list.changes.print(Output::Lines, 1 << 20, &mut lines)?;
//! assert_eq!(lines, b"0 65536\n131072 4096\n");
//! # Ok(())
//! # }
//! ```

mod list;
mod print;

use std::ops::Range;

use blkhash::BlockSize;
use blkimage::{Image, Source};

use crate::Error;
use crate::compare::unshared;

pub use list::{Form, List, ListError};
pub use print::Output;

/// Extents of a disk, in bytes: sorted, not empty, and neither overlapping nor adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    extents: Vec<Range<u64>>,
}

impl Changes {
    /// Returns the extents that a bitmap in an image calls changed.
    ///
    /// # Errors
    ///
    /// Fails like [`Image::dirty_extents`].
    pub fn of_bitmap(image: &Image, name: &[u8]) -> blkimage::Result<Self> {
        Ok(Self { extents: image.dirty_extents(name)? })
    }

    /// Returns the extents that the first `depth` images of a chain hide of the one below.
    ///
    /// # Errors
    ///
    /// Fails like [`Image::extents_above`].
    pub fn of_overlay(image: &Image, depth: usize) -> blkimage::Result<Self> {
        Ok(Self { extents: image.extents_above(depth)? })
    }

    /// Returns what `newer` may have changed since it was a reflink copy or a snapshot of `older`: all that is not proved to be
    /// equal, because both get it from one place on their file system, or because it is zero in both. Reads no content. What
    /// only `newer` has is changed.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::NothingShared`] if no file system has files of both and tells which extents they share, with
    /// [`Error::ManyChanges`] if there are more than [`List::MAX_EXTENTS`], and if the place of bytes cannot be read, or an
    /// image changed.
    pub fn since(older: &dyn Source, newer: &dyn Source) -> Result<Self, Error> {
        let mut extents: Vec<Range<u64>> = Vec::new();
        let mut push = |range: Range<u64>| {
            let is_full = extents.len() == List::MAX_EXTENTS;
            match extents.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ if is_full => {
                    return Err(Error::ManyChanges { limit: List::MAX_EXTENTS });
                }
                _ => extents.push(range),
            }
            Ok(())
        };
        unshared(older, newer, &mut push)?;
        if older.size() < newer.size() {
            push(older.size()..newer.size())?;
        }
        older.check_unchanged()?;
        newer.check_unchanged()?;
        Ok(Self { extents })
    }

    /// Returns the extents in `length` bytes from `offset` on, counted from there.
    #[must_use]
    pub fn in_part(&self, offset: u64, length: u64) -> Self {
        let end = offset.saturating_add(length);
        let cut = |it: &Range<u64>| {
            it.start.clamp(offset, end) - offset..it.end.clamp(offset, end) - offset
        };
        self.extents.iter().map(cut).collect()
    }

    /// Returns the extents in order.
    pub fn extents(&self) -> &[Range<u64>] {
        &self.extents
    }

    /// Returns the number of bytes in all extents.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.end - extent.start).sum()
    }

    /// Returns whether nothing is reported.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Returns the end of the last extent, or 0.
    pub fn end(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.end)
    }

    /// Returns the blocks that the extents touch, rounded outwards, as ranges of their numbers.
    pub fn blocks(&self, block_size: BlockSize) -> Vec<Range<u64>> {
        let size = u64::from(block_size);
        let blocks = |extent: &Range<u64>| extent.start / size..extent.end.div_ceil(size);
        self.extents.iter().map(blocks).collect::<Self>().extents
    }
}

impl FromIterator<Range<u64>> for Changes {
    /// Joins extents in any order. Empty ones are left out.
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(extents: I) -> Self {
        let mut extents: Vec<_> = extents.into_iter().filter(|it| !it.is_empty()).collect();
        extents.sort_unstable_by_key(|extent| extent.start);
        extents.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        Self { extents }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_joined() {
        let changes: Changes = [7..9, 0..2, 1..3, 5..5, 3..4, 20..30, 21..22].into_iter().collect();
        assert_eq!(changes.extents(), [0..4, 7..9, 20..30]);
        assert_eq!((changes.bytes(), changes.end(), changes.is_empty()), (16, 30, false));
        assert!(Changes::default().is_empty());
    }

    #[test]
    fn extents_of_a_part() {
        let changes: Changes = [0..10, 20..30, 40..50].into_iter().collect();
        assert_eq!(changes.in_part(5, 20).extents(), [0..5, 15..20]);
        assert!(changes.in_part(10, 10).is_empty());
        assert_eq!(changes.in_part(0, u64::MAX), changes);
    }

    #[test]
    fn blocks_are_rounded_outwards() {
        let changes: Changes = [511..513, 1024..1025, 4096..8192].into_iter().collect();
        assert_eq!(changes.blocks(BlockSize::try_from(512).unwrap()), [0..3, 8..16]);
        assert_eq!(changes.blocks(BlockSize::DEFAULT), vec![Range { start: 0, end: 1 }]);
    }
}
