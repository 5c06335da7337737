//! A part of a storage.

use std::io;
use std::sync::Arc;

use super::{ReadMethod, ServedObject, Storage};
use crate::{Extent, Lent};

/// A part of a storage as a storage of its own.
pub(crate) struct Part {
    pub storage: Arc<dyn Storage>,
    pub offset: u64,
    pub size: u64,
}

impl Part {
    /// Returns the number of bytes from `offset` on, at most `length`.
    fn length(&self, offset: u64, length: usize) -> usize {
        self.size.saturating_sub(offset).min(length as u64) as usize
    }
}

impl Storage for Part {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.length(offset, buf.len()) {
            0 => Ok(0),
            length => self.storage.read_at_most(&mut buf[..length], self.offset + offset),
        }
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if self.length(offset, buf.len()) < buf.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.storage.read_exact_at(buf, self.offset + offset)
    }

    fn lend(&self, offset: u64, length: usize) -> Option<Lent> {
        match self.length(offset, length) {
            0 => None,
            length => self.storage.lend(self.offset + offset, length),
        }
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        let extent = self.storage.extent(self.offset + offset, limit)?;
        Ok(Extent { offset: extent.offset.saturating_sub(self.offset), ..extent })
    }

    fn reads_forward(&self) -> bool {
        self.storage.reads_forward()
    }

    fn changed(&self) -> Option<String> {
        self.storage.changed()
    }

    fn verify(&self) -> io::Result<()> {
        self.storage.verify()
    }

    /// Returns the storage's, reduced to the alignment of the part's offset.
    fn granularity(&self) -> u64 {
        match self.offset {
            0 => self.storage.granularity(),
            offset => self.storage.granularity().min(1 << offset.trailing_zeros()),
        }
    }

    fn queue_depth(&self) -> usize {
        self.storage.queue_depth()
    }

    fn will_need(&self, offset: u64, length: u64) {
        let length = length.min(self.size.saturating_sub(offset));
        if length > 0 {
            self.storage.will_need(self.offset + offset, length);
        }
    }

    fn read_ahead(&self) -> u64 {
        self.storage.read_ahead()
    }

    fn read_method(&self) -> ReadMethod {
        self.storage.read_method()
    }

    fn object(&self) -> Option<ServedObject> {
        self.storage.object()
    }
}
