//! Raw images, in which the guest's bytes are the bytes of the file from a start offset on.

use std::ops::Range;
use std::sync::Arc;

use crate::chain::{Candidate, OpenedLayer};
use crate::error::{ErrorKind, Result};
use crate::implanted::{Descriptor, Implanted};
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose};
use crate::stated::Stated;
use crate::storage::HostFile;

/// A raw layer of a chain.
pub(crate) struct Raw {
    file: Arc<HostFile>,
    start: u64,
    size: u64,
}

/// Opens a file as a raw image.
pub(crate) fn open(image: &Candidate) -> OpenedLayer {
    let raw = Raw::new(image.file.clone(), image.start);
    OpenedLayer { layer: Box::new(raw), backing: None }
}

impl Raw {
    /// Creates a layer from the bytes of `file` from `start` to its end.
    pub fn new(file: Arc<HostFile>, start: u64) -> Self {
        let size = file.size().saturating_sub(start);
        Self { file, start, size }
    }

    /// Creates a layer from the first `size` bytes of `file`, which must exist.
    pub fn beginning(file: Arc<HostFile>, size: u64) -> Self {
        Self { file, start: 0, size }
    }
}

impl Layer for Raw {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let kind = MappingKind::Host { file: &self.file, offset: self.start + range.offset };
        Ok(Mapping { kind, length: range.limit })
    }

    /// Only an image of ISO 9660 may state a checksum.
    fn stated(&self) -> Result<Option<Stated>> {
        if self.size < Descriptor::OFFSET + Descriptor::SIZE {
            return Ok(None);
        }
        let mut descriptor = Descriptor([0; _]);
        let offset = self.start.saturating_add(Descriptor::OFFSET);
        self.file.read_exact_at(&mut descriptor.0, offset)?;
        let implanted = Implanted::parse(&descriptor).map_err(|reason| {
            let reason =
                format!("states a checksum of isomd5sum that is not valid: it has {reason}");
            self.file
                .error(ErrorKind::Corrupt, reason)
                .at(offset + (Implanted::BLANK.start - Descriptor::OFFSET))
        })?;
        Ok(implanted.map(|implanted| Stated { implanted: Some(implanted), ..Stated::default() }))
    }

    /// The only bitmap is the one that the server of the file was asked for.
    fn dirty_extents(&self, _name: &[u8]) -> Result<Option<Vec<Range<u64>>>> {
        match self.start == 0 && self.size == self.file.size() {
            true => self.file.dirty_extents(),
            false => Ok(None),
        }
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}

#[cfg(test)]
mod tests;
