//! The bytes of a partition table.

use std::ops::Range;

use blkimage::Source;
use blkimage::partition::{Label, Table, verify_gpt};

/// The ranges of a disk that its partition table takes, by offset, each with the name of the table.
#[derive(Debug, Default)]
pub(super) struct TableRanges(Vec<(Range<u64>, &'static str)>);

impl TableRanges {
    /// Finds the ranges of a table with partitions: the MBR, and both copies of a GPT as far as there are any.
    pub fn of(disk: &dyn Source, table: &Table) -> Self {
        if table.partitions.is_empty() || table.is_of_file_system() {
            return Self::default();
        }
        let mut ranges = vec![(0..MBR_SIZE, MBR)];
        if table.label == Some(Label::Gpt)
            && let Ok(Some(gpt)) = verify_gpt(disk)
        {
            let parts = gpt.parts.iter().filter(|part| part.defect.is_none());
            ranges.extend(parts.map(|part| {
                // A header is shorter than its sector.
                let length = part.length.checked_next_multiple_of(gpt.sector_size);
                let end = part.offset.saturating_add(length.unwrap_or(part.length));
                (part.offset..end.min(disk.size()), GPT)
            }));
            ranges[0].1 = GPT;
        }
        ranges.sort_by_key(|(range, _)| range.start);
        Self(ranges)
    }

    /// Splits a range into parts within and outside of the table, by offset.
    pub fn split(&self, range: Range<u64>) -> Vec<(Range<u64>, Option<&'static str>)> {
        let (mut parts, mut at) = (Vec::new(), range.start);
        for (place, name) in &self.0 {
            let (start, end) = (place.start.max(at), place.end.min(range.end));
            if start >= end {
                continue;
            }
            if at < start {
                parts.push((at..start, None));
            }
            parts.push((start..end, Some(*name)));
            at = end;
        }
        if at < range.end {
            parts.push((at..range.end, None));
        }
        parts
    }
}

/// Size of an MBR in bytes.
const MBR_SIZE: u64 = 512;

const MBR: &str = "MBR partition table";
const GPT: &str = "GPT partition table";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_ranges() {
        let table = TableRanges(vec![(0..512, MBR), (256..1024, GPT), (4096..8192, GPT)]);
        let all = [
            (0..512, Some(MBR)),
            (512..1024, Some(GPT)),
            (1024..4096, None),
            (4096..8192, Some(GPT)),
            (8192..10_000, None),
        ];
        assert_eq!(table.split(0..10_000), all);
        assert_eq!(
            table.split(600..5000),
            [(600..1024, Some(GPT)), (1024..4096, None), (4096..5000, Some(GPT))]
        );
        assert_eq!(table.split(9000..9001), [(9000..9001, None)]);
        assert_eq!(TableRanges::default().split(0..1), [(0..1, None)]);
        assert!(table.split(7..7).is_empty());
    }
}
