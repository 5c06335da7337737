//! The content of a member, whose CRC-32 is compared.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Crc;

use super::directory::Member;
use crate::compressed::Bytes;
use crate::container::checked::{Running, Sum};
use crate::error::excerpt;
use crate::storage::DigestMismatch;
use crate::storage::Storage;
use std::sync::Arc;

/// The CRC-32 of a member.
pub(super) struct Crc32(Member);

impl Crc32 {
    pub fn new(member: &Member) -> Self {
        Self(member.clone())
    }
}

impl Sum for Crc32 {
    fn subject(&self) -> String {
        format!("member \"{}\"", excerpt(&self.0.name))
    }

    fn noun(&self) -> &'static str {
        "CRC-32"
    }

    fn begin(&self) -> Box<dyn Running + '_> {
        Box::new((Crc::new(), self.0.crc))
    }
}

impl Running for (Crc, u32) {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn is_stated(self: Box<Self>) -> bool {
        self.0.sum() == self.1
    }
}

/// Reads a member that is compressed by deflate, once from start to end. Fails at the end if it has another size or CRC-32
/// than stated.
pub(super) struct Inflated {
    stored: Bytes<Arc<dyn Storage>>,
    buffer: Box<[u8]>,
    filled: std::ops::Range<usize>,
    inflate: Decompress,
    crc: Crc,
    left: u64,
    is_over: bool,
    member: Member,
}

impl Inflated {
    /// Creates a reader of a member of the archive in `storage`.
    pub fn new(storage: Arc<dyn Storage>, member: &Member) -> Self {
        let range = member.data..member.data + member.stored;
        Self {
            stored: Bytes::new(storage, range).announced(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            filled: 0..0,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            left: member.size,
            is_over: false,
            member: member.clone(),
        }
    }

    fn damaged(&self, what: &str) -> io::Error {
        let reason = format!("member \"{}\" {what}", excerpt(&self.member.name));
        io::Error::new(io::ErrorKind::InvalidData, reason)
    }

    /// Checks what can only be checked at the end.
    fn finish(&mut self) -> io::Result<()> {
        if self.left > 0 || !self.filled.is_empty() || !self.stored.is_over() {
            return Err(self.damaged(OTHER_SIZE));
        }
        match self.crc.sum() == self.member.crc {
            true => Ok(()),
            false => {
                let subject = excerpt(&self.member.name);
                let reason = format!("member \"{subject}\" does not match its CRC-32");
                Err(io::Error::new(io::ErrorKind::InvalidData, DigestMismatch(reason)))
            }
        }
    }
}

impl Read for Inflated {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        while !self.is_over {
            if self.filled.is_empty() {
                let count = self.stored.read(&mut self.buffer)?;
                self.filled = 0..count;
            }
            let is_last = self.filled.is_empty();
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let input = &self.buffer[self.filled.clone()];
            let status = self.inflate.decompress(input, buf, FlushDecompress::None);
            self.filled.start += (self.inflate.total_in() - before.0) as usize;
            let count = (self.inflate.total_out() - before.1) as usize;
            match status {
                Ok(Status::StreamEnd) => self.is_over = true,
                Ok(_) if count == 0 && is_last => return Err(self.damaged("is cut off")),
                Ok(_) => {}
                Err(_) => return Err(self.damaged("is damaged")),
            }
            if count > 0 {
                self.crc.update(&buf[..count]);
                let left = self.left.checked_sub(count as u64);
                self.left = left.ok_or_else(|| self.damaged(OTHER_SIZE))?;
                return Ok(count);
            }
        }
        self.finish().map(|()| 0)
    }
}

/// Number of compressed bytes that are read at once.
const BUFFER: usize = 128 << 10;

const OTHER_SIZE: &str = "has another size than its archive states";
