//! A part of a disk, and the places of its bytes on the disk.

use std::sync::Arc;

use blkfs::volumes::lvm::Segment;
use blkimage::{Slice, Source};

/// A part of a disk as a source of its own.
#[derive(Clone)]
pub(crate) struct Window {
    pub source: Arc<dyn Source>,
    origin: Origin,
}

#[derive(Clone)]
enum Origin {
    Disk,
    /// A range of another window, from this byte on.
    Range(Arc<Window>, u64),
    Linear(Arc<Window>, Slice<Arc<dyn Source>>),
}

impl Window {
    pub fn disk(source: Arc<dyn Source>) -> Self {
        Self { source, origin: Origin::Disk }
    }

    /// Returns a part, shorter than `length` if this window ends earlier. `None` if it begins past the end.
    pub fn range(&self, offset: u64, length: u64) -> Option<Self> {
        let source = Slice::new(self.source.clone(), offset, length)?;
        let origin = Origin::Range(Arc::new(self.clone()), offset);
        Some(Self { source: Arc::new(source), origin })
    }

    /// Returns a logical volume. `None` if a segment is past the end.
    pub fn linear(&self, segments: &[Segment]) -> Option<Self> {
        let linear = Segment::join(segments, self.source.clone())?;
        let origin = Origin::Linear(Arc::new(self.clone()), linear.clone());
        Some(Self { source: Arc::new(linear), origin })
    }

    pub fn size(&self) -> u64 {
        self.source.size()
    }

    /// Returns the offset on the disk of a byte of the window. A byte past the end has the place of one that would
    /// follow the last.
    pub fn on_disk(&self, offset: u64) -> u64 {
        match &self.origin {
            Origin::Disk => offset,
            Origin::Range(outer, start) => outer.on_disk(start.saturating_add(offset)),
            Origin::Linear(outer, linear) => outer.on_disk(linear.locate(offset, 1).0),
        }
    }

    /// Reads the first bytes, at most `length`.
    pub fn head(&self, length: u64) -> blkimage::Result<Vec<u8>> {
        self.read(0, length)
    }

    /// Reads the bytes from `offset` on, at most `length`, fewer at the end.
    pub fn read(&self, offset: u64, length: u64) -> blkimage::Result<Vec<u8>> {
        let length = self.size().saturating_sub(offset).min(length);
        let mut bytes = vec![0; length as usize];
        if !bytes.is_empty() {
            self.source.read_exact_at(&mut bytes, offset)?;
        }
        Ok(bytes)
    }
}
