//! Tables of a map, which keep the bytes that they had when they were checked.

use blkhash::{Algorithm, Digester, State};

use crate::page::{Hash, sha256, to_hash};
use crate::{Error, ReadAt, Result};

/// The hashes of a table that was checked. The file may change afterwards.
#[derive(Debug)]
pub(crate) struct Table {
    /// Offset in the file.
    at: u64,
    /// Length in bytes.
    length: u64,
    parts: Vec<Hash>,
}

/// Hashes a table that is being checked.
pub(crate) struct TableHasher {
    digester: Digester,
    whole: State,
    part: State,
    table: Table,
}

impl TableHasher {
    /// Begins a table at this offset in the file.
    pub(crate) fn new(at: u64) -> Self {
        let digester = Digester::new(Algorithm::Sha256);
        let (whole, part) = (digester.start(), digester.start());
        Self { digester, whole, part, table: Table { at, length: 0, parts: Vec::new() } }
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        self.whole.update(bytes);
        while !bytes.is_empty() {
            let room = PART - self.table.length % PART;
            let (part, rest) = bytes.split_at(bytes.len().min(room as usize));
            self.part.update(part);
            self.table.length += part.len() as u64;
            if self.table.length.is_multiple_of(PART) {
                self.end_part();
            }
            bytes = rest;
        }
    }

    /// Returns the hash of the whole table, too.
    pub(crate) fn finish(mut self) -> (Hash, Table) {
        if !self.table.length.is_multiple_of(PART) {
            self.end_part();
        }
        (to_hash(&self.whole.finalize()), self.table)
    }

    fn end_part(&mut self) {
        let part = std::mem::replace(&mut self.part, self.digester.start());
        self.table.parts.push(to_hash(&part.finalize()));
    }
}

impl Table {
    /// Fills `buf` with bytes of the table from this offset in the file on.
    ///
    /// # Errors
    ///
    /// Fails if they are not those that were checked.
    pub(crate) fn read(&self, bytes: &dyn ReadAt, buf: &mut [u8], offset: u64) -> Result<()> {
        let from = offset - self.at;
        let first = from / PART;
        let start = first * PART;
        let end = (from + buf.len() as u64).next_multiple_of(PART).min(self.length);
        let mut parts = vec![0; (end - start) as usize];
        bytes.read_exact_at(&mut parts, self.at + start)?;
        let hashes = &self.parts[first as usize..];
        if parts.chunks(PART as usize).zip(hashes).any(|(part, hash)| sha256(part) != *hash) {
            return Err(Error::damaged(offset, "a table changed after it was checked"));
        }
        buf.copy_from_slice(&parts[(from - start) as usize..][..buf.len()]);
        Ok(())
    }
}

/// Bytes of a part. The hashes in memory take 1/128 of the table.
pub(crate) const PART: u64 = 4096;
