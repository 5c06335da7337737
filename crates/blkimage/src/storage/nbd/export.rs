//! Writes to the export of a server.

use std::io;
use std::sync::Arc;

use super::Nbd;
use super::library::ReadFault;
use super::options::NbdOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::Storage;

/// An export of an NBD server that can be written to.
pub struct NbdExport(Arc<Nbd>);

impl NbdExport {
    /// Connects to the export that `uri` names.
    ///
    /// # Errors
    ///
    /// Fails if the URI is invalid or of a transport that is not supported, if libnbd is missing, if the server cannot be
    /// reached or authenticated, is too slow or lacks the export, or if the export is read-only.
    pub fn open(uri: &str, options: &NbdOptions) -> Result<Self> {
        let nbd = Nbd::open(uri, options)?;
        if !nbd.abilities.writes {
            return Err(Error::new(ErrorKind::Open, uri, "the export is read-only"));
        }
        Ok(Self(Arc::new(nbd)))
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns the bytes of the export for reading. The extents that it reports may be those before a write.
    pub fn storage(&self) -> Box<dyn Storage> {
        Box::new(Arc::clone(&self.0))
    }

    /// Writes all of `bytes` from `offset` on. A server that only writes whole blocks gets those at the ends with their
    /// other bytes as they are, so nothing else may write to these at the same time.
    ///
    /// # Errors
    ///
    /// Fails if the range is not within the export, or the server does not write all of it.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (head, whole, tail) = self.parts(offset, bytes.len() as u64)?;
        let (bytes, tail_bytes) = bytes.split_at((head + whole) as usize);
        let (head_bytes, bytes) = bytes.split_at(head as usize);
        self.write_partly(head_bytes, offset)?;
        if !bytes.is_empty() {
            let (connection, _loaded) = self.0.connection();
            let written = connection.write(bytes, offset + head, self.0.cut);
            written.map_err(|fault| self.error(&fault))?;
        }
        debug_assert_eq!(tail, tail_bytes.len() as u64);
        self.write_partly(tail_bytes, offset + head + whole)
    }

    /// Makes a range read as zeros, which need not be allocated. Returns `false` if the server cannot.
    ///
    /// # Errors
    ///
    /// Fails if the range is not within the export, or the server did not do it.
    pub fn zero(&self, offset: u64, length: u64) -> io::Result<bool> {
        let (head, whole, tail) = self.parts(offset, length)?;
        if !self.0.abilities.zeroes || whole == 0 {
            return Ok(false);
        }
        let (mut at, end) = (offset + head, offset + head + whole);
        while at < end {
            let length = (end - at).min(MAX_ZERO);
            let (connection, _loaded) = self.0.connection();
            connection.zero(at, length).map_err(|fault| self.error(&fault))?;
            at += length;
        }
        self.write_partly(&vec![0; head as usize], offset)?;
        self.write_partly(&vec![0; tail as usize], end)?;
        Ok(true)
    }

    /// Returns when everything that was written is on the disk of the server, if the server has such a promise.
    ///
    /// # Errors
    ///
    /// Fails if the server says that it is not.
    pub fn flush(&self) -> io::Result<()> {
        if self.0.abilities.flushes {
            for connection in &self.0.connections {
                connection.flush().map_err(|fault| self.error(&fault))?;
            }
        }
        Ok(())
    }

    /// Returns the lengths of what comes before whole blocks, of these, and of what follows them.
    fn parts(&self, offset: u64, length: u64) -> io::Result<(u64, u64, u64)> {
        let (size, unit) = (self.0.size, self.0.minimum);
        let end = offset.checked_add(length).filter(|end| *end <= size);
        let end = end.ok_or(io::ErrorKind::InvalidInput)?;
        let head = offset.next_multiple_of(unit).min(end) - offset;
        let last = if end == size { end } else { end / unit * unit };
        let whole = last.saturating_sub(offset + head);
        Ok((head, whole, length - head - whole))
    }

    /// Writes bytes within one block.
    fn write_partly(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let start = offset / self.0.minimum * self.0.minimum;
        let end = (start + self.0.minimum).min(self.0.size);
        let mut block = vec![0; (end - start) as usize];
        self.0.read_aligned(&mut block, start)?;
        block[(offset - start) as usize..][..bytes.len()].copy_from_slice(bytes);
        let (connection, _loaded) = self.0.connection();
        connection.write(&block, start, self.0.cut).map_err(|fault| self.error(&fault))
    }

    fn error(&self, fault: &ReadFault) -> io::Error {
        self.0.read_error(fault)
    }
}

/// Maximum length of a request for zeros in bytes, so that a server that writes them answers in time.
const MAX_ZERO: u64 = 256 << 20;
