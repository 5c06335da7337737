//! What every byte of a file system is used for, as spans that do not overlap.

use std::ops::Range;

use super::content::Usage;

/// The uses of bytes from 0 on, each up to the beginning of the next one. The last one has no end.
#[derive(Debug)]
pub(super) struct Spans(Vec<(u64, Usage)>);

impl Spans {
    /// Makes spans of ranges, which may overlap. Bytes with several uses have the first in the order of [`Usage`], and those without
    /// any are unknown.
    pub fn new(ranges: impl IntoIterator<Item = (Range<u64>, Usage)>) -> Self {
        let mut edges = Vec::new();
        for (range, usage) in ranges {
            if !range.is_empty() {
                edges.push((range.start, usage, 1_i64));
                edges.push((range.end, usage, -1));
            }
        }
        edges.sort_unstable();
        let mut spans = vec![(0, Usage::Unknown)];
        let mut open = [0; Usage::ALL.len()];
        for group in edges.chunk_by(|(a, ..), (b, ..)| a == b) {
            group.iter().for_each(|(_, usage, count)| open[*usage as usize] += count);
            let first = open.iter().position(|count| *count > 0);
            let usage = first.map_or(Usage::Unknown, |index| Usage::ALL[index]);
            match spans.last_mut() {
                Some((_, last)) if *last == usage => {}
                Some((start, last)) if *start == group[0].0 => *last = usage,
                _ => spans.push((group[0].0, usage)),
            }
        }
        Self(spans)
    }

    /// Returns the spans of a range, cut to it.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, Usage)> {
        let first = self.0.partition_point(|(start, _)| *start <= range.start).saturating_sub(1);
        let ends = self.0[first..].iter().skip(1).map(|(start, _)| *start);
        let starts = self.0[first..].iter().take_while(move |(start, _)| *start < range.end);
        starts.zip(ends.chain([u64::MAX])).filter_map(move |((start, usage), end)| {
            let span = range.start.max(*start)..range.end.min(end);
            (!span.is_empty()).then_some((span, *usage))
        })
    }
}

/// Runs of blocks with one use each, by number.
#[derive(Debug, Default)]
pub(super) struct BlockRuns(Vec<(Range<u64>, Usage)>);

impl BlockRuns {
    /// Adds the next bytes, which begin where those before end, or later. A block with several uses has the first of them.
    pub fn add(&mut self, bytes: Range<u64>, usage: Usage, block: u64) {
        let mut blocks = bytes.start / block..bytes.end.div_ceil(block);
        if let Some((last, before)) = self.0.last_mut()
            && last.end > blocks.start
        {
            if usage < *before {
                last.end -= 1;
                if last.is_empty() {
                    self.0.pop();
                }
            } else {
                blocks.start += 1;
            }
        }
        match self.0.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, before)) if *before == usage && last.end == blocks.start => {
                last.end = blocks.end;
            }
            _ => self.0.push((blocks, usage)),
        }
    }

    pub fn into_runs(self) -> Vec<(Range<u64>, Usage)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usage() -> impl Strategy<Value = Usage> {
        proptest::sample::select(Usage::ALL.to_vec())
    }

    proptest! {
        /// Bytes and blocks have the first use of all that they have, one by one.
        #[test]
        fn first_use_of_each_byte(
            ranges in prop::collection::vec((0_u64..60, 0_u64..20, usage()), 0..12),
            start in 0_u64..80, length in 0_u64..40, block in 1_u64..9,
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(at, len, usage)| (at..at + len, usage)).collect();
            let of_byte = |byte: u64| {
                let all = ranges.iter().filter(|(range, _)| range.contains(&byte));
                all.map(|(_, usage)| *usage).min().unwrap_or(Usage::Unknown)
            };
            let (mut at, mut runs) = (start, BlockRuns::default());
            for (span, usage) in Spans::new(ranges.clone()).within(start..start + length) {
                prop_assert_eq!(span.start, at);
                span.clone().for_each(|byte| assert_eq!(of_byte(byte), usage));
                at = span.end;
                runs.add(span, usage, block);
            }
            prop_assert_eq!(at, start + length);
            let mut blocks = start / block..at.div_ceil(block);
            if length == 0 {
                blocks = 0..0;
            }
            let found = runs.into_runs();
            let flat: Vec<_> = found.iter().flat_map(|(run, usage)| run.clone().map(move |it| (it, *usage))).collect();
            let of_block = |number: u64| {
                let bytes = start.max(number * block)..at.min((number + 1) * block);
                bytes.map(of_byte).min().unwrap()
            };
            prop_assert_eq!(flat, blocks.map(|it| (it, of_block(it))).collect::<Vec<_>>());
        }
    }
}
