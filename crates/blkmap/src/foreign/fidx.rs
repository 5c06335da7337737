//! The fixed index of a Proxmox backup: the SHA-256 of each chunk of a disk.
//!
//! | offset | bytes | content |
//! |--:|--:|---|
//! | 0 | 8 | magic |
//! | 8 | 16 | UUID |
//! | 24 | 8 | time, in seconds since 1970 |
//! | 32 | 32 | `index_csum`, the SHA-256 of all digests |
//! | 64 | 8 | size of the disk in bytes |
//! | 72 | 8 | size of a chunk in bytes, a power of two |
//! | 80 | 4016 | zeros |
//! | 4096 | 32 each | digests. The last chunk may be short, and is hashed as it is |
//!
//! The chunks of an encrypted backup are hashed with a key behind them. The index does not say so.

use blkhash::{Algorithm, Digester};

use super::shape::{Shape, block_size};
use super::target::{Blocks, PART, Target};
use crate::bytes::{array, is_zero, u64_at};
use crate::page::{Hash, to_hash};
use crate::{Error, ReadAt, Result};

pub(super) struct Fidx<'a> {
    file: &'a dyn ReadAt,
    end: u64,
    checksum: Hash,
}

/// Reads the header, and checks it and the length of the file.
pub(super) fn open(file: &dyn ReadAt) -> Result<(Shape, Fidx<'_>)> {
    let length = file.length()?;
    if length < HEADER as u64 {
        return Err(Error::damaged(length, "the header is cut"));
    }
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0)?;
    if !header.starts_with(&MAGIC) {
        return Err(Error::damaged(0, "does not begin with the magic of a .fidx index"));
    }
    if !is_zero(&header[RESERVED..]) {
        return Err(Error::damaged(RESERVED as u64, "the rest of the header is not zeros"));
    }
    let block_size = block_size(u64_at(&header, CHUNK_SIZE), CHUNK_SIZE as u64)?;
    let shape = Shape::new(Algorithm::Sha256, block_size, u64_at(&header, SIZE), SIZE as u64)?;
    let (blocks, digests) = (shape.blocks(), length - HEADER as u64);
    if !digests.is_multiple_of(DIGEST) || digests / DIGEST != blocks {
        let reason = format!("{blocks} digests should end the file, which has {length} bytes");
        return Err(Error::damaged(length, reason));
    }
    Ok((shape, Fidx { file, end: length, checksum: array(&header, CHECKSUM) }))
}

impl Blocks for Fidx<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        let mut part = vec![0; PART];
        let mut whole = Digester::new(Algorithm::Sha256).start();
        let mut at = HEADER as u64;
        while at < self.end {
            let part = &mut part[..(self.end - at).min(PART as u64) as usize];
            self.file.read_exact_at(part, at)?;
            whole.update(part);
            target.digests(part)?;
            at += part.len() as u64;
        }
        if to_hash(&whole.finalize()) != self.checksum {
            return Err(Error::damaged(CHECKSUM as u64, "index_csum is not that of the digests"));
        }
        Ok(())
    }
}

/// The first bytes.
pub(crate) const MAGIC: [u8; 8] = [0x2f, 0x7f, 0x41, 0xed, 0x91, 0xfd, 0x0f, 0xcd];

/// Length of the header, and offsets in it.
pub(crate) const HEADER: usize = 4096;
pub(crate) const UUID: usize = 8;
pub(crate) const CHECKSUM: usize = 32;
pub(crate) const SIZE: usize = 64;
pub(crate) const CHUNK_SIZE: usize = 72;
const RESERVED: usize = 80;

/// Length of a digest in bytes.
const DIGEST: u64 = 32;
