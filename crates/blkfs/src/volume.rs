//! The bytes of a file system, at offsets from its beginning.

use std::sync::Arc;

use blkimage::Source;

use crate::error::{Error, Result};

/// The part of a disk that holds a file system.
#[derive(Clone)]
pub(crate) struct Volume {
    source: Arc<dyn Source>,
}

impl Volume {
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self { source }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.source.size()
    }

    /// Reads `length` bytes from `offset` on. Memory is taken only for bytes that exist.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.check(offset, length)?;
        let mut bytes = vec![0; length];
        self.source.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Fills `bytes` from `offset` on.
    pub fn read_into(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.check(offset, bytes.len())?;
        Ok(self.source.read_exact_at(bytes, offset)?)
    }

    fn check(&self, offset: u64, length: usize) -> Result<()> {
        if offset.checked_add(length as u64).is_some_and(|end| end <= self.size()) {
            return Ok(());
        }
        let size = self.size();
        Err(Error::damaged(offset, format!("a reference to {length} bytes past the end at {size}")))
    }
}
