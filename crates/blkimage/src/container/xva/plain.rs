//! A disk in an archive that can be read in any order, by the place of each block.

use std::io;
use std::sync::Arc;

use super::blocks::{BLOCK, Blocks, State, SumKind};
use super::machine::Disk;
use crate::error::{ErrorKind, Result};
use crate::storage::{DigestMismatch, HostFile, ReadMethod, Storage};
use crate::{Extent, ExtentKind, tar};

/// The content of a disk.
pub(super) struct Content {
    storage: Arc<dyn Storage>,
    disk: Disk,
    /// Where the block of each MiB begins in the archive. The lowest bit says that its checksum is an xxHash. 0 stands for zeros.
    places: Vec<u64>,
}

impl Content {
    /// Finds the blocks of a disk. Fails if they do not make a disk of its size.
    pub fn new(file: &HostFile, storage: Arc<dyn Storage>, disk: &Disk) -> Result<Self> {
        let count = disk.size.div_ceil(BLOCK);
        if count > MAX_BLOCKS {
            let reason = format!("has a disk of more than {} TiB", MAX_BLOCKS >> 20);
            return Err(file.error(ErrorKind::Unsupported, reason));
        }
        let mut places: Vec<u64> = Vec::new();
        let mut blocks = Blocks::new(disk, State::default());
        while let Some(block) = blocks.next(file, |_| Ok(()))? {
            if !block.offset.is_multiple_of(BLOCK) {
                return Err(file.corrupt("has a block that begins within another one"));
            }
            places.resize((block.offset / BLOCK) as usize, 0);
            places.push(block.place | u64::from(block.sum == SumKind::Xxh64));
        }
        // The last block is always there.
        if places.len() as u64 != count {
            return Err(
                file.corrupt(format!("lacks the last block of the disk {}", disk.reference))
            );
        }
        Ok(Self { storage, disk: disk.clone(), places })
    }

    /// Reads a whole block. Fails if it does not match its checksum.
    fn block(&self, index: u64, buf: &mut [u8]) -> io::Result<()> {
        let place = self.places[index as usize];
        let kind = if place & 1 == 1 { SumKind::Xxh64 } else { SumKind::Sha1 };
        let place = place & !1;
        self.storage.read_exact_at(buf, place)?;
        let mut text = vec![0; kind.length() as usize];
        self.storage.read_exact_at(&mut text, place + sum_of(buf.len() as u64))?;
        match kind.is_of(buf, &text) {
            true => Ok(()),
            false => Err(mismatch(&self.disk, index * BLOCK)),
        }
    }

    /// Returns the length of a block.
    fn length(&self, index: u64) -> u64 {
        BLOCK.min(self.disk.size - index * BLOCK)
    }
}

/// Returns the distance from the start of a block of this length to its checksum, in the member after it.
fn sum_of(length: u64) -> u64 {
    length.next_multiple_of(tar::BLOCK) + tar::BLOCK
}

/// Returns the error of a block at an offset of a disk.
pub(super) fn mismatch(disk: &Disk, offset: u64) -> io::Error {
    let reason =
        format!("block at {offset} of the disk {} does not match its checksum", disk.reference);
    io::Error::new(io::ErrorKind::InvalidData, DigestMismatch(reason))
}

impl Storage for Content {
    fn size(&self) -> u64 {
        self.disk.size
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.disk.size || buf.is_empty() {
            return Ok(0);
        }
        let (index, within) = (offset / BLOCK, offset % BLOCK);
        let length = self.length(index);
        let count = (length - within).min(buf.len() as u64) as usize;
        let buf = &mut buf[..count];
        if self.places[index as usize] == 0 {
            buf.fill(0);
        } else if count as u64 == length {
            self.block(index, buf)?;
        } else {
            let mut block = vec![0; length as usize];
            self.block(index, &mut block)?;
            buf.copy_from_slice(&block[within as usize..][..count]);
        }
        Ok(count)
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        let mut index = offset / BLOCK;
        let is_zero = |index: u64| self.places.get(index as usize).is_some_and(|place| *place == 0);
        let kind = if is_zero(index) { ExtentKind::Zero } else { ExtentKind::Data };
        let end = offset.saturating_add(limit).min(self.disk.size);
        while (index + 1) * BLOCK < end && is_zero(index + 1) == (kind == ExtentKind::Zero) {
            index += 1;
        }
        Ok(Extent { offset, length: end.min((index + 1) * BLOCK) - offset, kind })
    }

    fn verify(&self) -> io::Result<()> {
        self.storage.verify()
    }

    fn changed(&self) -> Option<String> {
        self.storage.changed()
    }

    fn queue_depth(&self) -> usize {
        self.storage.queue_depth()
    }

    fn will_need(&self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.disk.size);
        for index in offset / BLOCK..end.div_ceil(BLOCK) {
            let place = self.places[index as usize] & !1;
            if place != 0 {
                self.storage.will_need(place, sum_of(self.length(index)) + TEXT);
            }
        }
    }

    fn read_ahead(&self) -> u64 {
        self.storage.read_ahead()
    }

    /// Each block is compared as a whole.
    fn granularity(&self) -> u64 {
        BLOCK
    }

    fn stored(&self) -> Option<u64> {
        self.storage.stored()
    }

    fn read_method(&self) -> ReadMethod {
        self.storage.read_method()
    }
}

/// Bytes of the longest checksum.
const TEXT: u64 = 40;

/// Maximum number of blocks of a disk in an XVA archive: 16 TiB. Each takes 8 bytes of memory.
/// Limit in blocks.
const MAX_BLOCKS: u64 = 1 << 24;
