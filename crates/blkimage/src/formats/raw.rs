//! Raw images: the guest's bytes are the file's own, from a first byte on, exact to the byte.

use std::sync::Arc;

use crate::error::{ErrorKind, Result};
use crate::options::Holes;
use crate::storage::HostFile;
use crate::{Extent, ExtentKind, Lent};

/// A raw layer of a chain.
pub(crate) struct Raw {
    pub file: Arc<HostFile>,
    pub holes: Holes,
    start: u64,
    size: u64,
}

impl Raw {
    /// The bytes of `file` from `start` to its end.
    pub fn new(file: Arc<HostFile>, start: u64, holes: Holes) -> Self {
        let size = file.size().saturating_sub(start);
        Self { file, holes, start, size }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where the guest's byte `offset` lies in the file.
    pub fn host_offset(&self, offset: u64) -> u64 {
        self.start + offset
    }

    /// The kind and length of the extent at `offset`; the range lies below the size.
    pub fn extent(&self, offset: u64, limit: u64) -> Result<(ExtentKind, u64)> {
        if self.holes != Holes::Trust {
            return Ok((ExtentKind::Data, limit));
        }
        let Extent { kind, length, .. } = self.file.extent(self.host_offset(offset), limit)?;
        Ok((kind, length))
    }

    /// Fills `buf` from the file's byte `host_offset` on.
    pub fn read_exact_at(&self, buf: &mut [u8], host_offset: u64) -> Result<()> {
        self.file.read_exact_at(buf, host_offset)?;
        match self.holes {
            Holes::Verify => self.verify_holes(buf, host_offset),
            Holes::Trust | Holes::Ignore => Ok(()),
        }
    }

    /// The same bytes where they lie in memory, if they do and need not be looked at before.
    pub fn lend(&self, host_offset: u64, length: usize) -> Option<Lent> {
        match self.holes {
            Holes::Trust | Holes::Ignore => self.file.lend(host_offset, length),
            Holes::Verify => None,
        }
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

#[cfg(test)]
mod tests;
