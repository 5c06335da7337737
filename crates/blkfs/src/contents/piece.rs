//! The parts of a disk that hold file systems.

use std::ops::Range;
use std::sync::Arc;

use blkimage::{Slice, Source};

use super::content::{Content, Holder, Usage};
use super::volume::Volume;
use crate::volumes::lvm::{self, PhysicalVolume, Segment};

/// A part of a disk with a file system, or with a piece of one that is in a logical volume.
pub(super) struct Piece {
    /// Offset on the disk.
    offset: u64,
    length: u64,
    /// Offset in the file system.
    start: u64,
    volume: Arc<Volume>,
}

impl Piece {
    /// Recognises the file systems in `length` bytes from `offset` of a disk on: one, or those in the linear volumes of LVM.
    pub fn find_all(disk: &Arc<dyn Source>, offset: u64, length: u64) -> Vec<Self> {
        let Some(slice) = Slice::new(disk.clone(), offset, length) else { return Vec::new() };
        let source: Arc<dyn Source> = Arc::new(slice);
        let Ok(Some(group)) = PhysicalVolume::open(&source) else {
            let whole = |volume| Self { offset, length: source.size(), start: 0, volume };
            return Volume::open(source.clone()).map(Arc::new).map(whole).into_iter().collect();
        };
        let mut pieces = Vec::new();
        for logical in group.volumes {
            let lvm::Content::Linear(segments) = logical.content else { continue };
            let joined = Segment::join(&segments, source.clone());
            let opened = joined.and_then(|joined| Volume::open(Arc::new(joined)));
            let Some(volume) = opened.map(Arc::new) else { continue };
            let mut start = 0;
            for segment in segments {
                let (offset, length) = (offset + segment.offset, segment.length);
                pieces.push(Self { offset, length, start, volume: volume.clone() });
                start += length;
            }
        }
        pieces
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.offset < end && start < self.end()
    }

    pub fn kind(&self) -> &'static str {
        self.volume.kind()
    }

    /// Returns the remarks on the state of the file system, unless another piece has its beginning.
    pub fn remarks(&self) -> Vec<String> {
        if self.start == 0 { self.volume.remarks() } else { Vec::new() }
    }

    /// Adds what is in a range of the disk, which is in this piece.
    pub fn find(&self, range: Range<u64>, content: &mut Content) {
        self.volume.find(self.within(range.start), range.end - range.start, content);
    }

    /// Returns what the bytes of a range of the disk are used for, by offset.
    pub fn usage(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, Usage)> {
        let within = self.within(range.start)..self.within(range.end);
        let on_disk = |at: u64| at - self.start + self.offset;
        self.volume
            .usage(within)
            .map(move |(span, usage)| (on_disk(span.start)..on_disk(span.end), usage))
    }

    /// Calls `f` with all bytes of a range of the disk and what they belong to, by offset.
    pub fn spans(&self, range: Range<u64>, f: &mut dyn FnMut(u64, u64, Holder)) {
        let within = self.within(range.start)..self.within(range.end);
        self.volume.spans(within, &mut |at, length, holder| {
            f(at - self.start + self.offset, length, holder);
        });
    }

    fn within(&self, on_disk: u64) -> u64 {
        on_disk - self.offset + self.start
    }
}
