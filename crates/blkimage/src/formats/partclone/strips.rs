//! Reads blocks that have checksums: strips of blocks, each with a CRC-32 after it.
//!
//! A strip is compared as a whole. Strips are read in groups, which are held for the threads that read other parts of them, so
//! that a pass reads each byte once and in order.

use std::sync::{Arc, PoisonError, RwLock};

use super::crc::{SEED, register};
use super::header::Sums;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::HostFile;

/// The strips of an image.
pub(super) struct Strips {
    file: Arc<HostFile>,
    /// Offset of the first one.
    start: u64,
    /// Bytes of all blocks.
    size: u64,
    /// Bytes of the blocks of a strip, but for the last one.
    strip: u64,
    is_reseeded: bool,
    /// Number of strips in a group.
    group: u64,
    slots: Vec<RwLock<Held>>,
}

/// A group that was read.
#[derive(Default)]
struct Held {
    number: Option<u64>,
    /// Its strips, with their checksums.
    bytes: Vec<u8>,
    /// The strips that do not match their checksums.
    damaged: Vec<u64>,
}

impl Strips {
    /// Creates a reader of used blocks of this size, which with their checksums lie in the file from `start` on.
    pub fn new(
        file: &Arc<HostFile>,
        start: u64,
        used: u64,
        block: u64,
        sums: Sums,
    ) -> Result<Self> {
        let strip = sums.blocks.min(used).max(1).saturating_mul(block);
        if strip > MAX_STRIP {
            let reason = format!(
                "is a partclone image with checksums of more than {} MiB each",
                MAX_STRIP >> 20
            );
            return Err(file.error(ErrorKind::Unsupported, reason).at(100));
        }
        let group = (GROUP / strip).max(1);
        let slots = (MAX_HELD / (group * strip)).clamp(2, GROUPS);
        Ok(Self {
            file: file.clone(),
            start,
            size: used * block,
            strip,
            is_reseeded: sums.is_reseeded,
            group,
            slots: (0..slots).map(|_| RwLock::default()).collect(),
        })
    }

    /// Returns the offset in the file of the byte at `position` of all blocks.
    pub fn offset(&self, position: u64) -> u64 {
        self.start + position + position / self.strip * SUM
    }

    /// Fills `buf` with the bytes of blocks from `position` on.
    pub fn read(&self, mut buf: &mut [u8], mut position: u64) -> Result<()> {
        while !buf.is_empty() {
            let strip = position / self.strip;
            let length = (buf.len() as u64).min((strip + 1) * self.strip - position);
            let (head, rest) = buf.split_at_mut(length as usize);
            let group = strip / self.group;
            self.with(group, |held| {
                if held.damaged.contains(&strip) {
                    return Err(self.damaged(strip));
                }
                let from = self.offset(position) - self.offset(self.first(group));
                let from = from as usize;
                head.copy_from_slice(&held.bytes[from..from + head.len()]);
                Ok(())
            })??;
            (buf, position) = (rest, position + length);
        }
        Ok(())
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> u64 {
        self.strips().div_ceil(self.group)
    }

    /// Returns the number of strips.
    pub fn strips(&self) -> u64 {
        self.size.div_ceil(self.strip)
    }

    /// Returns the number of bytes in a strip.
    pub fn strip(&self) -> u64 {
        self.strip
    }

    /// Returns the errors of a group, and the number of bytes that were read.
    pub fn check(&self, group: u64) -> Result<(Vec<Error>, u64)> {
        self.with(group, |held| {
            let errors = held.damaged.iter().map(|strip| self.damaged(*strip));
            (errors.collect(), held.bytes.len() as u64)
        })
    }

    fn damaged(&self, strip: u64) -> Error {
        let reason = format!("the blocks of strip {strip} do not match their CRC-32");
        self.file.corrupt(reason).at(self.offset(strip * self.strip))
    }

    /// Returns the position of the first byte of a group.
    fn first(&self, group: u64) -> u64 {
        group * self.group * self.strip
    }

    /// Calls `visit` with a group, which is read if it is not held.
    fn with<T>(&self, group: u64, visit: impl FnOnce(&Held) -> T) -> Result<T> {
        let slot = &self.slots[(group % self.slots.len() as u64) as usize];
        let held = slot.read().unwrap_or_else(PoisonError::into_inner);
        if held.number == Some(group) {
            return Ok(visit(&held));
        }
        drop(held);
        let mut held = slot.write().unwrap_or_else(PoisonError::into_inner);
        if held.number != Some(group) {
            self.load(&mut held, group)?;
        }
        Ok(visit(&held))
    }

    /// Reads a group and compares its checksums.
    fn load(&self, held: &mut Held, group: u64) -> Result<()> {
        held.number = None;
        held.damaged.clear();
        let first = self.first(group);
        let size = self.size.min(self.first(group + 1)) - first;
        let length = size + size.div_ceil(self.strip) * SUM;
        held.bytes.resize(length as usize, 0);
        let start = self.offset(first);
        self.file.read_exact_at(&mut held.bytes, start)?;
        let mut seed = SEED;
        if !self.is_reseeded && group > 0 {
            let mut before = [0; SUM as usize];
            self.file.read_exact_at(&mut before, start - SUM)?;
            seed = u32::from_le_bytes(before);
        }
        let strips = held.bytes.chunks((self.strip + SUM) as usize);
        for (number, bytes) in (group * self.group..).zip(strips) {
            let Some((blocks, sum)) = bytes.split_last_chunk() else { break };
            let stored = u32::from_le_bytes(*sum);
            if register(seed, blocks) != stored {
                held.damaged.push(number);
            }
            if !self.is_reseeded {
                seed = stored;
            }
        }
        held.number = Some(group);
        Ok(())
    }
}

/// Returns the number of bytes that blocks take with their checksums.
pub(super) fn stored(used: u64, block: u64, sums: Option<Sums>) -> Option<u64> {
    let sums = sums.map_or(0, |sums| used.div_ceil(sums.blocks) * SUM);
    used.checked_mul(block)?.checked_add(sums)
}

/// Size of a checksum in bytes.
const SUM: u64 = 4;

/// Number of bytes of blocks in a group, or one strip if that has more.
const GROUP: u64 = 1 << 20;

/// Number of groups that are held, if they are small.
const GROUPS: u64 = 64;

/// Number of bytes in all groups that are held, or two strips if these have more.
const MAX_HELD: u64 = 64 << 20;

/// Maximum number of bytes with one checksum in a partclone image. Clonezilla has 10 MiB. Two of them are held.
/// Limit in bytes.
const MAX_STRIP: u64 = 64 << 20;
