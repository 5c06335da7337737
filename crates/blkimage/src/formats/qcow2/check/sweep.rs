//! Splits overlapping ranges into parts that are covered by the same ones.
//!
//! The tables of 65536 snapshots may be in the same bytes, which are then read once.

use std::collections::BTreeSet;
use std::ops::Range;

/// A range that is covered by `times` of the ranges, among them the one with the index `index`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub range: Range<u64>,
    pub times: u64,
    pub index: usize,
}

/// Returns the parts of all ranges, in order. Empty ranges have none.
pub(super) fn sweep(ranges: &[Range<u64>]) -> Vec<Part> {
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(ranges.len() * 2);
    for (index, range) in ranges.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
        events.extend([(range.start, true, index), (range.end, false, index)]);
    }
    events.sort_unstable();
    let mut parts = Vec::new();
    let mut covering = BTreeSet::new();
    let mut start = 0;
    for (at, begins, index) in events {
        if at > start
            && let Some(first) = covering.first()
        {
            parts.push(Part { range: start..at, times: covering.len() as u64, index: *first });
        }
        start = at;
        if begins {
            covering.insert(index);
        } else {
            covering.remove(&index);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_overlapping_ranges() {
        let parts = sweep(&[5..10, 0..4, 8..8, 5..7, 9..12, 20..21]);
        let parts: Vec<_> = parts.into_iter().map(|it| (it.range, it.times, it.index)).collect();
        let expected = [
            (0..4, 1, 1),
            (5..7, 2, 0),
            (7..9, 1, 0),
            (9..10, 2, 0),
            (10..12, 1, 4),
            (20..21, 1, 5),
        ];
        assert_eq!(parts, expected);
    }
}
