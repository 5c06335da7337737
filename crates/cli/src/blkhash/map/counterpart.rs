//! Which blocks of a map an image, or a partition of it, is compared with.

use blkhash::Comparison;
use blkimage::{Source, partition};
use blkmap::{Map, Report};

use super::report::Sizes;
use crate::blkhash::source::Data;
use crate::map::info;

/// The blocks of a map that data is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// Those from the first one on.
    All,
    /// Those of a partition, because the map is of the whole image.
    Partition(Partition),
}

/// Blocks of a partition in the map of the whole image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of the first block.
    first: u64,
    /// Length of the partition in bytes.
    length: u64,
    block_size: u64,
}

impl Counterpart {
    /// Finds the blocks of the map for the data, which is this partition of its image, or all of it. Fails if the two
    /// cannot be compared, with a reason for a message about the map.
    pub fn find(map: &Map, data: &Data, partition: Option<u32>) -> Result<Self, String> {
        // The map of a partition can be that of a device or a file with its content.
        if map.commit().image_size == data.size() {
            return Ok(Self::All);
        }
        match (info::partition_of(map), partition) {
            (Some(None), Some(number)) => Partition::find(map, data, number).map(Self::Partition),
            (None, Some(number)) if map.commit().image_size == data.image.size() => Err(format!(
                "has the size of the whole image, not of partition {number}: {WITHOUT}"
            )),
            (Some(Some(number)), None) if has_partition(data, number) => {
                Err(format!("is the map of partition {number}: add --partition {number}"))
            }
            _ => Ok(Self::All),
        }
    }
}

impl Partition {
    fn find(map: &Map, data: &Data, number: u32) -> Result<Self, String> {
        let block_size = u64::from(map.header().block_size);
        let (start, length) = (data.start(), data.size());
        let place = |start: u64, length: u64| format!("at {start} with {length} bytes");
        match info::partitions(map).into_iter().find(|it| it.number == number) {
            None => {
                return Err(format!(
                    "is that of a whole image without partition {number}: {WITHOUT}"
                ));
            }
            Some(it) if (it.offset, it.length) != (start, length) => {
                return Err(format!(
                    "has partition {number} {}, and the image has it {}: {WITHOUT}",
                    place(it.offset, it.length),
                    place(start, length),
                ));
            }
            Some(_) => {}
        }
        if !start.is_multiple_of(block_size) {
            return Err(format!(
                "is that of the whole image, and partition {number} begins at {start}, within a block of {block_size} \
                 bytes: {WITHOUT}"
            ));
        }
        let part = Self { first: start / block_size, length, block_size };
        if part.end() > map.commit().blocks {
            return Err(format!("ends before partition {number}: {WITHOUT}"));
        }
        Ok(part)
    }

    /// Returns the number of the block behind the last one.
    fn end(self) -> u64 {
        self.first + self.length.div_ceil(self.block_size)
    }

    /// Returns the first page with blocks of the partition, and the page behind the last.
    pub fn pages(self, map: &Map) -> (u64, u64) {
        let blocks = map.header().blocks_per_page();
        (self.first / blocks, self.end().div_ceil(blocks))
    }

    /// Returns the sizes of the two sides.
    pub fn sizes(self, sizes: Sizes) -> Sizes {
        Sizes { left: self.length, right: self.length, ..sizes }
    }

    /// Passes on blocks of the partition, with numbers from its beginning.
    pub fn clip(self, first: u64, count: u64, kind: Comparison, report: &mut Report<'_>) {
        let (from, to) = (first.max(self.first), (first + count).min(self.end()));
        if from >= to {
            return;
        }
        let (from, to) = (from - self.first, to - self.first);
        // The last block may reach past the partition, and what differs may lie behind it.
        let whole = self.length / self.block_size;
        let is_equal = matches!(kind, Comparison::Equal | Comparison::Zeros);
        let known = if is_equal { to } else { to.min(whole).max(from) };
        report.push(from, known - from, kind);
        report.push(known, to - known, Comparison::Unknown);
    }
}

fn has_partition(data: &Data, number: u64) -> bool {
    let table = partition::table(data.source()).unwrap_or_default();
    table.partitions.iter().any(|it| u64::from(it.number) == number)
}

const WITHOUT: &str = "compare without --partition, or with the map of the partition";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_partition() {
        let part = Partition { first: 10, length: 4 * 512 + 1, block_size: 512 };
        let clipped = |first, count, kind| {
            let mut runs = Vec::new();
            let mut take = |first, count, kind| runs.push((first, count, kind));
            let mut report = Report::new(&mut take);
            part.clip(first, count, kind, &mut report);
            report.end();
            runs
        };
        use Comparison::{Changed, Equal, Unknown};
        assert_eq!(clipped(0, 10, Changed), []);
        assert_eq!(clipped(15, 10, Changed), []);
        assert_eq!(clipped(0, 100, Equal), [(0, 5, Equal)]);
        assert_eq!(clipped(0, 100, Changed), [(0, 4, Changed), (4, 1, Unknown)]);
        assert_eq!(clipped(12, 1, Changed), [(2, 1, Changed)]);
        assert_eq!(clipped(14, 1, Changed), [(4, 1, Unknown)]);
    }
}
