//! The places that an update replaces.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Ranges that are added in any order, from several threads. Memory is bounded.
#[derive(Debug, Default)]
pub(crate) struct Replaced(Mutex<Ranges>);

#[derive(Debug, Default)]
struct Ranges {
    ranges: Vec<Range<u64>>,
    /// Whether there were more than are kept.
    is_partial: bool,
}

impl Replaced {
    pub fn add(&self, offset: u64, length: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(offset..offset.saturating_add(length));
    }

    /// Returns the ranges by offset, apart from each other. `None` if there were too many.
    pub fn ranges(&self) -> Option<Vec<Range<u64>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.join();
        (!all.is_partial).then(|| all.ranges.clone())
    }
}

impl Ranges {
    fn add(&mut self, range: Range<u64>) {
        if range.is_empty() || self.is_partial {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
        if self.ranges.len() > MAX_RANGES {
            self.join();
            // Joining again soon would take too long.
            self.is_partial = self.ranges.len() > MAX_RANGES / 2;
        }
    }

    /// Sorts the ranges, and joins those that meet.
    fn join(&mut self) {
        self.ranges.sort_unstable_by_key(|range| range.start);
        self.ranges.dedup_by(|next, last| {
            let meets = next.start <= last.end;
            if meets {
                last.end = last.end.max(next.end);
            }
            meets
        });
    }
}

/// Maximum number of places of an update that are kept, of 16 bytes each.
/// Limit in ranges.
const MAX_RANGES: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_any_order() {
        let replaced = Replaced::default();
        for (offset, length) in [(8, 4), (12, 4), (0, 4), (20, 0), (4, 2), (30, 1)] {
            replaced.add(offset, length);
        }
        assert_eq!(replaced.ranges().unwrap(), [0..6, 8..16, 30..31]);
    }

    #[test]
    fn too_many_ranges() {
        let replaced = Replaced::default();
        // From the end on, so that none meets the one before.
        let count = MAX_RANGES as u64 * 2;
        (0..count).rev().for_each(|index| replaced.add(index * 4, 4));
        let whole = 0..count * 4;
        assert_eq!(replaced.ranges().unwrap(), std::slice::from_ref(&whole));
        (0..=MAX_RANGES as u64).for_each(|index| replaced.add((count + 1 + index * 2) * 4, 4));
        assert_eq!(replaced.ranges(), None);
    }
}
