//! Raw images, in which the guest's bytes are the bytes of the file from a start offset on.

use std::sync::Arc;

use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::error::{ErrorKind, Result};
use crate::extent::{Extent, ExtentKind};
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::options::Holes;
use crate::storage::HostFile;

/// A raw layer of a chain.
pub(crate) struct Raw {
    file: Arc<HostFile>,
    holes: Holes,
    start: u64,
    size: u64,
}

/// Opens a file as a raw image.
pub(crate) fn open(chain: &Chain<'_>, image: &Candidate) -> OpenedLayer {
    let raw = Raw::new(image.file.clone(), image.start, chain.options.holes);
    OpenedLayer { layer: Box::new(raw), backing: None }
}

impl Raw {
    /// Creates a layer from the bytes of `file` from `start` to its end.
    pub fn new(file: Arc<HostFile>, start: u64, holes: Holes) -> Self {
        let size = file.size().saturating_sub(start);
        Self { file, holes, start, size }
    }

    /// Creates a layer from the first `size` bytes of `file`, which must exist.
    pub fn beginning(file: Arc<HostFile>, size: u64, holes: Holes) -> Self {
        Self { file, holes, start: 0, size }
    }

    /// Returns the kind and length of the extent at `host_offset`.
    fn extent(&self, host_offset: u64, limit: u64) -> Result<(ExtentKind, u64)> {
        if self.holes != Holes::Trust {
            return Ok((ExtentKind::Data, limit));
        }
        let Extent { kind, length, .. } = self.file.extent(host_offset, limit)?;
        Ok((kind, length))
    }

    fn verify_holes(&self, buf: &[u8], host_offset: u64) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let offset = host_offset + done as u64;
            let extent = self.file.extent(offset, (buf.len() - done) as u64)?;
            let bytes = &buf[done..done + extent.length as usize];
            if extent.kind == ExtentKind::Zero
                && let Some(position) = bytes.iter().position(|byte| *byte != 0)
            {
                let reason = "the file system reports a hole and its content is not zero";
                let error = self.file.error(ErrorKind::Holes, reason);
                return Err(error.at(offset + position as u64));
            }
            done += bytes.len();
        }
        Ok(())
    }
}

impl Layer for Raw {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        let offset = self.start + range.offset;
        let (kind, length) = match purpose {
            Purpose::Extent => self.extent(offset, range.limit)?,
            Purpose::Read => (ExtentKind::Data, range.limit),
        };
        let kind = match (kind, self.holes) {
            (ExtentKind::Zero, _) => MappingKind::Zero,
            (ExtentKind::Data, Holes::Verify) => MappingKind::Opaque(Stored { offset, length }),
            (ExtentKind::Data, Holes::Trust | Holes::Ignore) => {
                MappingKind::Host { file: &self.file, offset }
            }
        };
        Ok(Mapping { kind, length })
    }

    /// Reads bytes whose holes have to be verified. All others are read from the file.
    fn read(&self, stored: Stored, buf: &mut [u8], _offset: u64) -> Result<()> {
        self.file.read_exact_at(buf, stored.offset)?;
        self.verify_holes(buf, stored.offset)
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}

#[cfg(test)]
mod tests;
