use std::ops::Range;

use super::error::ListError;
use crate::changes::Changes;

/// The extents of a list, as they come.
#[derive(Default)]
pub(super) struct Extents {
    ranges: Vec<Range<u64>>,
    /// Start of the extent that starts last.
    furthest: u64,
    disk_size: Option<u64>,
}

impl Extents {
    /// Adds an extent. Fails with the problem.
    pub fn add(&mut self, offset: u64, length: u64) -> Result<(), String> {
        let extent = extent(offset, length)?;
        self.furthest = self.furthest.max(extent.start);
        let number = self.ranges.len();
        match self.ranges.last_mut() {
            Some(last) if last.end == extent.start => last.end = extent.end,
            _ if number == MAX_EXTENTS => return Err(format!("more than {number} extents")),
            _ => self.ranges.push(extent),
        }
        Ok(())
    }

    /// Notes the size of the disk in bytes. Fails if another one was stated before.
    pub fn state_disk_size(&mut self, size: u64) -> Result<(), String> {
        match self.disk_size {
            Some(stated) if stated != size => {
                Err(format!("states two sizes of the disk, {stated} and {size} bytes"))
            }
            _ if size > MAX_END => Err(format!("a disk of {size} bytes is too large")),
            _ => {
                self.disk_size = Some(size);
                Ok(())
            }
        }
    }

    /// Returns the ranges so far, and forgets them.
    pub fn take(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.ranges)
    }

    pub fn finish(self) -> Result<(Changes, Option<u64>), ListError> {
        // A tracker rounds to its blocks, so that only the end of an extent can be past the end of the disk.
        match self.disk_size {
            Some(size) if !self.ranges.is_empty() && self.furthest >= size => {
                let at = self.furthest;
                let problem =
                    format!("the extent at {at} starts past the end of the disk of {size} bytes");
                Err(ListError::of_list(&problem))
            }
            size => Ok((self.ranges.into_iter().collect(), size)),
        }
    }
}

/// Returns an extent, or the problem with it.
pub(super) fn extent(offset: u64, length: u64) -> Result<Range<u64>, String> {
    if length == 0 {
        return Err(format!("the extent at {offset} has no bytes"));
    }
    let end = offset.checked_add(length).filter(|end| *end <= MAX_END);
    let end = end.ok_or_else(|| format!("the extent at {offset} is too long: {length}"))?;
    Ok(offset..end)
}

/// Maximum number of extents of a list, 16 bytes each.
/// Limit in extents.
pub(super) const MAX_EXTENTS: usize = 16 << 20;

/// Maximum end of an extent, and maximum size of a disk: the largest offset in a file.
const MAX_END: u64 = i64::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "takes 256 MiB"]
    fn the_number_of_extents_is_limited() {
        let mut extents = Extents::default();
        for number in 0..MAX_EXTENTS as u64 {
            extents.add(number * 2, 1).unwrap();
        }
        let end = MAX_EXTENTS as u64 * 2;
        // The last one may still grow.
        extents.add(end - 1, 1).unwrap();
        assert_eq!(extents.add(end + 1, 1).unwrap_err(), "more than 16777216 extents");
    }
}
