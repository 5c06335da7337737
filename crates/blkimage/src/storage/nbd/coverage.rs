//! The bytes of a read that the server's reply has filled.
//!
//! The chunks of a structured reply come in any order. libnbd does not detect gaps and overlaps.

use std::ops::Range;

/// The chunks of one reply so far.
#[derive(Debug)]
pub(super) struct Coverage {
    wanted: Range<u64>,
    /// Sorted ranges that neither overlap nor touch.
    filled: Vec<Range<u64>>,
    chunks: usize,
    fault: Option<&'static str>,
}

impl Coverage {
    pub fn new(wanted: Range<u64>) -> Self {
        Self { wanted, filled: Vec::new(), chunks: 0, fault: None }
    }

    /// Adds a chunk. Returns `false` if the reply is invalid, now or since an earlier chunk.
    pub fn add(&mut self, offset: u64, length: u64) -> bool {
        self.fault = self.fault.or_else(|| self.try_add(offset, length).err());
        self.fault.is_none()
    }

    /// Returns the error in the reply, if any. No more chunks follow.
    pub fn fault(&self) -> Option<&'static str> {
        let is_full = self.wanted.is_empty() || self.filled == [self.wanted.clone()];
        self.fault.or(if is_full { None } else { Some("leaves gaps") })
    }

    fn try_add(&mut self, offset: u64, length: u64) -> Result<(), &'static str> {
        self.chunks += 1;
        if self.chunks > MAX_CHUNKS {
            return Err("is in too many pieces");
        }
        let end = offset.checked_add(length).ok_or(OUTSIDE)?;
        if length == 0 {
            return Err("has an empty piece");
        }
        if offset < self.wanted.start || end > self.wanted.end {
            return Err(OUTSIDE);
        }
        let next = self.filled.partition_point(|range| range.start < offset);
        if self.filled.get(next).is_some_and(|range| range.start < end)
            || next > 0 && self.filled[next - 1].end > offset
        {
            return Err("has overlapping pieces");
        }
        let joins_next = self.filled.get(next).is_some_and(|range| range.start == end);
        let joins_previous = next > 0 && self.filled[next - 1].end == offset;
        match (joins_previous, joins_next) {
            (true, true) => self.filled[next - 1].end = self.filled.remove(next).end,
            (true, false) => self.filled[next - 1].end = end,
            (false, true) => self.filled[next].start = offset,
            (false, false) => self.filled.insert(next, offset..end),
        }
        Ok(())
    }
}

const OUTSIDE: &str = "has a piece outside of what was asked for";

/// Maximum number of chunks of a reply. Servers split replies at the bounds of clusters or sectors, and a request
/// never spans that many.
/// Limit in chunks.
const MAX_CHUNKS: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(wanted: Range<u64>, chunks: &[(u64, u64)]) -> Option<&'static str> {
        let mut coverage = Coverage::new(wanted);
        for (offset, length) in chunks {
            coverage.add(*offset, *length);
        }
        coverage.fault()
    }

    #[test]
    fn whole_answers() {
        assert_eq!(check(5..15, &[(5, 10)]), None);
        assert_eq!(check(5..15, &[(10, 5), (5, 5)]), None);
        assert_eq!(check(5..15, &[(5, 1), (14, 1), (9, 5), (6, 3)]), None);
        assert_eq!(check(5..5, &[]), None);
    }

    #[test]
    fn faults() {
        let outside = Some(OUTSIDE);
        assert_eq!(check(5..15, &[]), Some("leaves gaps"));
        assert_eq!(check(5..15, &[(5, 4), (10, 5)]), Some("leaves gaps"));
        assert_eq!(check(5..15, &[(5, 9)]), Some("leaves gaps"));
        assert_eq!(check(5..15, &[(4, 1)]), outside);
        assert_eq!(check(5..15, &[(5, 11)]), outside);
        assert_eq!(check(5..15, &[(15, 1)]), outside);
        assert_eq!(check(5..15, &[(u64::MAX, 2)]), outside);
        assert_eq!(check(5..15, &[(5, 0), (5, 10)]), Some("has an empty piece"));
        let overlapping = Some("has overlapping pieces");
        assert_eq!(check(5..15, &[(5, 10), (5, 10)]), overlapping);
        assert_eq!(check(5..15, &[(5, 6), (10, 5)]), overlapping);
        assert_eq!(check(5..15, &[(10, 5), (5, 6)]), overlapping);
        assert_eq!(check(5..15, &[(6, 1), (5, 10)]), overlapping);
    }

    #[test]
    fn number_of_pieces_is_limited() {
        let pieces = |count: u64| -> Vec<_> { (0..count).map(|i| (count - 1 - i, 1)).collect() };
        assert_eq!(check(0..4096, &pieces(4096)), None);
        assert_eq!(check(0..4097, &pieces(4097)), Some("is in too many pieces"));
    }

    proptest! {
        /// A reply is valid if it fills every byte of the range once and no other byte.
        #[test]
        fn agrees_with_counts(chunks in prop::collection::vec((0u64..24, 0u64..8), 0..8)) {
            let mut counts = [0; 32];
            for (offset, length) in &chunks {
                counts[*offset as usize..(offset + length) as usize].iter_mut().for_each(|n| *n += 1);
            }
            let is_whole = counts.iter().enumerate().all(|(i, n)| *n == i32::from((4..20).contains(&i)))
                && chunks.iter().all(|(_, length)| *length > 0);
            prop_assert_eq!(check(4..20, &chunks).is_none(), is_whole);
        }

        #[test]
        fn chunks_may_come_in_any_order(cuts in prop::collection::btree_set(1u64..1000, 0..40), seed: u64) {
            let bounds: Vec<u64> = [0].into_iter().chain(cuts).chain([1000]).collect();
            let mut chunks: Vec<_> = bounds.windows(2).map(|w| (w[0], w[1] - w[0])).collect();
            chunks.sort_by_key(|(offset, _)| (offset ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            prop_assert_eq!(check(0..1000, &chunks), None);
            let missing = chunks.pop();
            prop_assert_eq!(check(0..1000, &chunks), missing.map(|_| "leaves gaps"));
        }
    }
}
