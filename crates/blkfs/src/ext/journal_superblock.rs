//! The superblock of a journal.

use super::blocks::MAGIC;
use super::checksum::Check;
use crate::bytes::{be32_at, u8_at};
use crate::crc::crc32c;

/// The superblock of a journal.
#[derive(Clone, Debug)]
pub(super) struct JournalSuperblock {
    pub block_size: u64,
    /// Number of blocks.
    pub length: u64,
    /// First block of the log.
    pub first: u64,
    /// The block after the last one of the log.
    pub last: u64,
    /// Number of the first transaction that may not be in place.
    pub sequence: u32,
    /// Its block, or 0.
    pub start: u64,
    incompat: u32,
    /// The state that checksums begin with.
    pub seed: u32,
}

impl JournalSuperblock {
    /// Reads the superblock of a journal.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at| be32_at(bytes, at).map(u64::from);
        let version = be32_at(bytes, 4)?;
        if be32_at(bytes, 0)? != MAGIC || ![3, 4].contains(&version) {
            return None;
        }
        let incompat = if version == 4 { be32_at(bytes, 0x28)? } else { 0 };
        let (length, first) = (word(0x10)?, word(0x14)?);
        let fast = match (incompat & FAST_COMMIT, word(0x54)?) {
            (0, _) => 0,
            (_, 0) => DEFAULT_FAST_BLOCKS,
            (_, blocks) => blocks,
        };
        Some(Self {
            block_size: word(0xc)?,
            length,
            first,
            last: length.checked_sub(fast).filter(|last| *last >= first).unwrap_or(length),
            sequence: be32_at(bytes, 0x18)?,
            start: word(0x1c)?,
            incompat,
            seed: crc32c(!0, bytes.get(0x30..0x40)?),
        })
    }

    /// Returns whether blocks have checksums.
    pub const fn has_sums(&self) -> bool {
        self.incompat & (CSUM_V2 | CSUM_V3) != 0
    }

    pub const fn has_version_3(&self) -> bool {
        self.incompat & CSUM_V3 != 0
    }

    pub const fn is_wide(&self) -> bool {
        self.incompat & SIXTY_FOUR_BIT != 0
    }

    /// Returns the size of a tag in a descriptor block, without a UUID.
    pub const fn tag_size(&self) -> usize {
        match (self.has_version_3(), self.is_wide()) {
            (true, _) => 16,
            (_, true) => 12 + if self.has_sums() { 2 } else { 0 },
            (_, false) => 8 + if self.has_sums() { 2 } else { 0 },
        }
    }

    /// Checks the superblock, which is also known to have a checksum.
    pub fn check(&self, bytes: &[u8]) -> Option<Check> {
        let check = || Check::within(!0, bytes.get(..SIZE)?, 0xfc).map(Check::big_endian);
        self.has_sums().then(check).flatten()
    }

    /// Returns the kind of checksum, if it cannot be one.
    pub fn unknown_checksum(&self, bytes: &[u8]) -> Option<u8> {
        u8_at(bytes, 0x50).filter(|kind| self.has_sums() && *kind != CRC32C)
    }
}

/// Size of the superblock of a journal.
pub(super) const SIZE: usize = 1024;

const SIXTY_FOUR_BIT: u32 = 0x2;
const CSUM_V2: u32 = 0x8;
const CSUM_V3: u32 = 0x10;
const FAST_COMMIT: u32 = 0x20;

/// Number of blocks for fast commits if the superblock does not say.
const DEFAULT_FAST_BLOCKS: u64 = 256;

/// The only type of checksums that journals of Linux have.
const CRC32C: u8 = 4;
