//! The owners of all bytes of a file system, for looking up ranges.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::file_system::FileSystem;
use crate::visitor::{Entry, Extent, Mismatch, Owner, Problem, Visitor, Wanted};

/// The extents of a file system and their owners.
#[derive(Debug, Default)]
pub struct Owners {
    /// Sorted by offset.
    extents: Vec<Extent>,
    /// For each extent, the largest end of it and all before it.
    ends: Vec<u64>,
    size: u64,
    /// Whether extents are missing, because they could not be read or there are too many.
    is_partial: bool,
}

/// The owners of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// The parts with an owner, within the range, by offset.
    pub extents: Vec<Extent>,
    /// Whether bytes of the range may have other owners, too.
    pub is_partial: bool,
}

impl Owners {
    /// Reads the owners of a file system.
    ///
    /// # Errors
    ///
    /// Fails if the file system cannot be read at all.
    pub fn read(file_system: &FileSystem) -> Result<Self> {
        let mut owners = Self { size: file_system.size(), ..Self::default() };
        file_system.walk(Wanted { extents: true, ..Wanted::default() }, &mut owners)?;
        owners.sort();
        Ok(owners)
    }

    /// Returns the owners of a file system that cannot be read.
    pub(crate) fn unknown() -> Self {
        Self { is_partial: true, ..Self::default() }
    }

    /// Returns whether extents are missing.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns all extents by offset.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Returns the parts with an owner between two offsets, by offset.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = Extent> {
        let first = self.ends.partition_point(|end| *end <= start);
        let from_first = self.extents[first..].iter().take_while(move |it| it.offset < end);
        from_first.filter_map(move |extent| extent.within(start, end))
    }

    /// Returns the owners of `length` bytes from `offset` on, at most `limit` parts.
    pub fn find(&self, offset: u64, length: u64, limit: usize) -> Owned {
        let end = offset.saturating_add(length);
        let mut owned = Owned { is_partial: self.is_partial, ..Owned::default() };
        let first = self.ends.partition_point(|end| *end <= offset);
        let mut covered = offset;
        for (step, extent) in self.extents[first..].iter().enumerate() {
            if extent.offset >= end {
                break;
            }
            if step == MAX_STEPS || owned.extents.len() == limit {
                owned.is_partial = true;
                return owned;
            }
            let Some(part) = extent.within(offset, end) else { continue };
            owned.is_partial |= part.offset > covered;
            covered = covered.max(part.offset + part.length);
            owned.extents.push(part);
        }
        owned.is_partial |= covered < end;
        owned
    }

    fn sort(&mut self) {
        self.extents.sort_unstable_by_key(|extent| (extent.offset, extent.length));
        let mut end = 0;
        self.ends.extend(self.extents.iter().map(|extent| {
            end = end.max(extent.offset + extent.length);
            end
        }));
    }
}

impl Extent {
    /// Returns the part between two offsets, if there is one.
    fn within(&self, start: u64, end: u64) -> Option<Self> {
        let offset = self.offset.max(start);
        let length = self.offset.saturating_add(self.length).min(end).checked_sub(offset)?;
        let owner = match self.owner {
            Owner::File { object, offset: first } => {
                Owner::File { object, offset: first.saturating_add(offset - self.offset) }
            }
            owner => owner,
        };
        (length > 0).then_some(Self { offset, length, owner })
    }

    /// Adds the next extent to this one if it continues with the same owner.
    fn join(&mut self, next: &Self) -> bool {
        let goes_on = match (self.owner, next.owner) {
            (Owner::File { object, offset }, Owner::File { object: other, offset: at }) => {
                object == other && offset.checked_add(self.length) == Some(at)
            }
            (owner, other) => owner == other,
        };
        let is_next = goes_on && self.offset + self.length == next.offset;
        if is_next {
            self.length += next.length;
        }
        is_next
    }
}

impl Visitor for Owners {
    fn extent(&mut self, extent: Extent) {
        // What is past the end of the file system belongs to a damaged one.
        let Some(extent) = extent.within(0, self.size) else {
            self.is_partial = true;
            return;
        };
        if self.extents.last_mut().is_some_and(|last| last.join(&extent)) {
            return;
        }
        if self.extents.len() < MAX_EXTENTS {
            self.extents.push(extent);
        } else {
            self.is_partial = true;
        }
    }

    fn matched(&mut self, _: &'static str, _: u64, _: u64) {}
    fn mismatch(&mut self, _: Mismatch) {}
    fn entry(&mut self, _: Entry<'_>) {}

    fn problem(&mut self, _: Problem) {
        self.is_partial = true;
    }

    fn advance(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Maximum number of extents of a file system that are kept, of 48 bytes each.
/// Limit in extents.
const MAX_EXTENTS: usize = 1 << 23;

/// Maximum number of extents that are looked at for one range, because extents of a damaged file system may all
/// overlap. Limit in extents.
const MAX_STEPS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, length: u64, owner: Owner) -> Extent {
        Extent { offset, length, owner }
    }

    fn file(object: u64, offset: u64) -> Owner {
        Owner::File { object, offset }
    }

    fn owners(extents: &[Extent]) -> Owners {
        let mut owners = Owners { size: 1000, ..Owners::default() };
        extents.iter().for_each(|it| owners.extent(*it));
        owners.sort();
        owners
    }

    #[test]
    fn parts_of_a_range() {
        let owners = owners(&[
            extent(500, 500, Owner::Free),
            extent(0, 100, Owner::Journal),
            extent(100, 200, file(7, 4096)),
            extent(300, 200, file(7, 4296)),
            extent(200, 50, file(8, 0)),
        ]);
        assert_eq!(owners.extents().len(), 4);
        let found = owners.find(50, 500, 16);
        let expected = [
            extent(50, 50, Owner::Journal),
            extent(100, 400, file(7, 4096)),
            extent(200, 50, file(8, 0)),
            extent(500, 50, Owner::Free),
        ];
        assert_eq!(found, Owned { extents: expected.to_vec(), is_partial: false });
        assert_eq!(owners.find(230, 10, 16).extents[0], extent(230, 10, file(7, 4226)));
        assert!(owners.find(50, 500, 2).is_partial);
    }

    #[test]
    fn gaps_and_what_lies_behind_the_end_are_partial() {
        let gap = owners(&[extent(0, 10, Owner::Free), extent(20, 10, Owner::Free)]);
        assert!(!gap.find(0, 10, 16).is_partial);
        assert!(gap.find(5, 20, 16).is_partial);
        assert!(gap.find(25, 10, 16).is_partial);
        let behind = owners(&[extent(990, 20, Owner::Free), extent(2000, 1, Owner::Journal)]);
        assert_eq!(behind.extents(), [extent(990, 10, Owner::Free)]);
        assert!(behind.is_partial());
    }
}
