//! What is in ranges of a disk: partitions, files, metadata and free space.

mod content;
mod piece;
mod spans;
mod table;
mod volume;

use std::ops::Range;
use std::sync::Arc;

use blkimage::Source;
use blkimage::partition::{self, Partition};

pub use self::content::{Content, Holder, Span, Usage};
use self::piece::Piece;
use self::spans::BlockRuns;
use self::table::TableRanges;

/// The partitions and file systems of a disk.
///
/// The search in them is best effort, and never fails: what is damaged or of another kind is left out. A file system is
/// read when the first range in it is looked up.
#[derive(Default)]
pub struct Contents {
    partitions: Vec<Partition>,
    table: TableRanges,
    /// By offset. They do not overlap unless partitions do.
    pieces: Vec<Piece>,
}

impl Contents {
    /// Looks for partitions and file systems.
    pub fn of(disk: &Arc<dyn Source>) -> Self {
        let table = partition::table(&**disk).unwrap_or_default();
        let ranges = TableRanges::of(&**disk, &table);
        let partitions = if table.is_of_file_system() { Vec::new() } else { table.partitions };
        let places = match partitions.as_slice() {
            [] => vec![(0, disk.size())],
            partitions => partitions.iter().map(|it| (it.offset, it.length)).collect(),
        };
        // Nothing says which of two overlapping partitions has the bytes.
        let overlaps = |at: &(u64, u64)| {
            let meets = |it: &&Partition| {
                it.offset < at.0.saturating_add(at.1) && at.0 < it.offset.saturating_add(it.length)
            };
            partitions.iter().filter(meets).count() > 1
        };
        let places: Vec<_> = places.into_iter().filter(|it| !overlaps(it)).collect();
        let found =
            places.into_iter().flat_map(|(offset, length)| Piece::find_all(disk, offset, length));
        let mut pieces: Vec<_> = found.collect();
        pieces.sort_by_key(Piece::offset);
        Self { partitions, table: ranges, pieces }
    }

    /// Returns whether there is a file system whose files can be named.
    pub fn has_files(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Returns the partitions.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// Returns the remarks on the state of each file system, with its partition.
    pub fn remarks(&self) -> Vec<(Option<u32>, String)> {
        let of_piece = |piece: &Piece| {
            let number = self.partition_at(piece.offset()).map(|it| it.number);
            piece.remarks().into_iter().map(move |remark| (number, remark))
        };
        self.pieces.iter().flat_map(of_piece).collect()
    }

    /// Returns the partition at `offset`, for a range of which only some unknown bytes matter.
    pub fn partition(&self, offset: u64) -> Content {
        let partition = self.partition_at(offset).map(|it| it.number);
        Content { partition, is_partial: true, ..Content::default() }
    }

    /// Returns what is in `length` bytes from `offset` on.
    pub fn find(&self, offset: u64, length: u64) -> Content {
        let partition = self.partition_at(offset).map(|it| it.number);
        let mut content = Content { partition, ..Content::default() };
        let end = offset.saturating_add(length);
        let mut covered = offset;
        for piece in self.pieces.iter().filter(|it| it.overlaps(offset, end)) {
            let (start, end) = (offset.max(piece.offset()), end.min(piece.end()));
            self.find_table(covered..start, &mut content);
            content.file_system.get_or_insert(piece.kind());
            piece.find(start..end, &mut content);
            covered = covered.max(end);
        }
        self.find_table(covered..end, &mut content);
        content
    }

    /// Returns what blocks are used for, by offset. A block with several uses has the first of them in the order of
    /// [`Usage`].
    ///
    /// The blocks are of `block` bytes and begin at multiples of it. Only those that overlap the range from `offset` on, `length`
    /// bytes long, are returned, and of the first and last one only the bytes in the range count.
    pub fn usage(&self, offset: u64, length: u64, block: u64) -> Vec<(Range<u64>, Usage)> {
        let end = offset.saturating_add(length);
        let mut runs = BlockRuns::default();
        let mut covered = offset;
        for piece in self.pieces.iter().filter(|it| it.overlaps(offset, end)) {
            let (start, end) = (covered.max(piece.offset()), end.min(piece.end()));
            if start > covered {
                self.add_gap(covered..start, block, &mut runs);
            }
            if start < end {
                piece.usage(start..end).for_each(|(span, usage)| runs.add(span, usage, block));
                covered = end;
            }
        }
        if covered < end {
            self.add_gap(covered..end, block, &mut runs);
        }
        runs.into_runs()
    }

    /// Calls `f` for all bytes in a range and what they belong to, by offset. Bytes that belong to several files come several times.
    pub fn spans(&self, range: Range<u64>, f: &mut dyn FnMut(&Span)) {
        let mut covered = range.start;
        for piece in self.pieces.iter().filter(|it| it.overlaps(range.start, range.end)) {
            let (start, end) = (covered.max(piece.offset()), range.end.min(piece.end()));
            if start > covered {
                self.gaps(covered..start, f);
            }
            if start < end {
                let partition = self.partition_at(start).map(|it| it.number);
                piece.spans(start..end, &mut |offset, length, holder| {
                    let file_system = Some(piece.kind());
                    f(&Span { offset, length, partition, file_system, holder });
                });
                covered = end;
            }
        }
        if covered < range.end {
            self.gaps(covered..range.end, f);
        }
    }

    /// Adds what bytes in no known file system belong to.
    fn find_table(&self, range: Range<u64>, content: &mut Content) {
        content.is_partial |= self.may_have_files(range.clone());
        let parts = self.table.split(range).into_iter().filter_map(|(_, name)| name);
        parts.for_each(|name| content.add(Holder::of_table(Some(name))));
    }

    /// Adds what bytes in no known file system are used for.
    fn add_gap(&self, range: Range<u64>, block: u64, runs: &mut BlockRuns) {
        for (part, name) in self.table.split(range) {
            runs.add(part, Holder::of_table(name).usage, block);
        }
    }

    /// Calls `f` for bytes in no known file system, which end where partitions and their table begin and end.
    fn gaps(&self, range: Range<u64>, f: &mut dyn FnMut(&Span)) {
        for (part, name) in self.table.split(range) {
            let mut start = part.start;
            while start < part.end {
                let edges = self
                    .partitions
                    .iter()
                    .flat_map(|it| [it.offset, it.offset.saturating_add(it.length)]);
                let end = edges.filter(|edge| *edge > start).fold(part.end, u64::min);
                f(&Span {
                    offset: start,
                    length: end - start,
                    partition: self.partition_at(start).map(|it| it.number),
                    file_system: None,
                    holder: Holder::of_table(name),
                });
                start = end;
            }
        }
    }

    /// Returns whether bytes in no known file system may belong to another one.
    fn may_have_files(&self, range: Range<u64>) -> bool {
        let is_in = |it: &Partition| {
            it.offset < range.end && range.start < it.offset.saturating_add(it.length)
        };
        !range.is_empty() && (self.partitions.is_empty() || self.partitions.iter().any(is_in))
    }

    fn partition_at(&self, offset: u64) -> Option<&Partition> {
        let holds = |it: &&Partition| {
            offset.checked_sub(it.offset).is_some_and(|offset| offset < it.length)
        };
        self.partitions.iter().find(holds)
    }
}
