//! The number of bytes that some ranges cover.

/// Ranges of bytes that may overlap. Memory is bounded.
#[derive(Default)]
pub(crate) struct Coverage {
    /// Starts and ends.
    ranges: Vec<(u64, u64)>,
    /// Bytes of ranges that are not kept any more.
    done: u64,
}

impl Coverage {
    /// Adds a range.
    pub fn add(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        if let Some(last) = self.ranges.last_mut()
            && last.1 == offset
        {
            last.1 = end;
            return;
        }
        if self.ranges.len() == MAX_RANGES {
            self.merge();
            // Whatever overlaps these later is counted twice.
            if self.ranges.len() > MAX_RANGES / 2 {
                self.done = self.total();
                self.ranges.clear();
            }
        }
        self.ranges.push((offset, end));
    }

    /// Returns the number of bytes that are covered.
    pub fn total(&mut self) -> u64 {
        self.merge();
        let lengths = self.ranges.iter().map(|(start, end)| end - start);
        lengths.fold(self.done, u64::saturating_add)
    }

    fn merge(&mut self) {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, last| {
            let is_joined = next.0 <= last.1;
            if is_joined {
                last.1 = last.1.max(next.1);
            }
            is_joined
        });
    }
}

/// Maximum number of ranges that are kept, of 16 bytes each.
/// Limit in ranges.
const MAX_RANGES: usize = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_count_once() {
        let mut coverage = Coverage::default();
        for (offset, length) in [(10, 10), (20, 10), (5, 7), (100, 1), (0, 1), (15, 1), (100, 1)] {
            coverage.add(offset, length);
        }
        assert_eq!(coverage.total(), 25 + 1 + 1);
        coverage.add(u64::MAX, 7);
        assert_eq!(coverage.total(), 27);
    }

    #[test]
    fn many_ranges() {
        let mut coverage = Coverage::default();
        for index in 0..MAX_RANGES as u64 + 10 {
            coverage.add(index * 2, 1);
        }
        assert!(coverage.ranges.len() <= 10);
        assert_eq!(coverage.total(), MAX_RANGES as u64 + 10);
    }
}
