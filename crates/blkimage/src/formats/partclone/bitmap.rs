//! The bitmap of the blocks that are used, and their ranks.
//!
//! The bitmap is read once, in order, for its checksum and because compressed files are read in order. It is held in chunks. Those
//! in which all blocks are equal take no words.

use super::crc::{SEED, register};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{array, check_inside};
use crate::storage::HostFile;

/// The blocks that are used.
pub(super) struct Bitmap {
    blocks: u64,
    used: u64,
    chunks: Vec<Chunk>,
    words: Vec<u64>,
}

/// Some blocks in a row.
struct Chunk {
    /// Number of used blocks before.
    rank: u64,
    bits: Bits,
}

enum Bits {
    All(bool),
    /// Index of the first word.
    Mixed(u32),
}

/// Blocks in a row that are all used, or all free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of used blocks before. `None` if these are free.
    pub rank: Option<u64>,
    /// Block after the last one.
    pub end: u64,
}

impl Bitmap {
    /// Reads the bitmap of some blocks at `offset`.
    pub fn read(file: &HostFile, offset: u64, blocks: u64) -> Result<Self> {
        if blocks > MAX_BLOCKS {
            let reason = format!("is a partclone image of more than {MAX_BLOCKS} blocks");
            return Err(file.error(ErrorKind::Unsupported, reason).at(60));
        }
        let length = Self::length(blocks);
        check_inside(file, offset, length + SUM, "bitmap")?;
        let mut bitmap = Self { blocks, used: 0, chunks: Vec::new(), words: Vec::new() };
        let mut sum = SEED;
        let mut buf = vec![0; length.min(STEP) as usize];
        for start in (0..length).step_by(STEP as usize) {
            let part = &mut buf[..(length - start).min(STEP) as usize];
            file.read_exact_at(part, offset + start)?;
            sum = register(sum, part);
            // Bits after the last block mean nothing.
            if start + part.len() as u64 == length
                && let Some(last) = part.last_mut()
            {
                *last &= u8::MAX >> (length * 8 - blocks);
            }
            for chunk in part.chunks((CHUNK / 8) as usize) {
                bitmap.push(file, chunk)?;
            }
        }
        let mut stored = [0; SUM as usize];
        file.read_exact_at(&mut stored, offset + length)?;
        if sum != u32::from_le_bytes(stored) {
            let reason = "has a bitmap that does not match its CRC-32";
            return Err(file.corrupt(reason).at(offset + length));
        }
        Ok(bitmap)
    }

    /// Returns the number of bytes of a bitmap without its checksum.
    fn length(blocks: u64) -> u64 {
        blocks.div_ceil(8)
    }

    /// Returns the number of bytes of a bitmap and its checksum.
    pub fn stored(blocks: u64) -> u64 {
        Self::length(blocks) + SUM
    }

    /// Adds the next chunk.
    fn push(&mut self, file: &HostFile, bytes: &[u8]) -> Result<()> {
        let first = self.words.len();
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.words.push(u64::from_le_bytes(array(&padded, 0)));
        }
        let used: u64 = self.words[first..].iter().map(|word| u64::from(word.count_ones())).sum();
        let blocks = CHUNK.min(self.blocks - self.chunks.len() as u64 * CHUNK);
        let bits = if used == 0 || used == blocks {
            self.words.truncate(first);
            Bits::All(used > 0)
        } else if self.words.len() <= MAX_WORDS {
            Bits::Mixed(first as u32)
        } else {
            let reason = format!(
                "is a partclone image whose bitmap takes more than {} MiB",
                MAX_WORDS >> 17
            );
            return Err(file.error(ErrorKind::Unsupported, reason));
        };
        self.chunks.push(Chunk { rank: self.used, bits });
        self.used += used;
        Ok(())
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the number of used blocks.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns whether a block is used.
    pub fn is_used(&self, block: u64) -> bool {
        match self.chunks[(block / CHUNK) as usize].bits {
            Bits::All(is_used) => is_used,
            Bits::Mixed(first) => self.word(first, block) >> (block % 64) & 1 == 1,
        }
    }

    /// Returns the run from `block` on, which ends near `limit` at the latest.
    pub fn run(&self, block: u64, limit: u64) -> Run {
        let is_used = self.is_used(block);
        let limit = limit.min(self.blocks);
        let mut end = block;
        while end < limit {
            match self.chunks[(end / CHUNK) as usize].bits {
                Bits::All(found) if found != is_used => break,
                Bits::All(_) => end = (end / CHUNK + 1) * CHUNK,
                Bits::Mixed(first) => {
                    let word = self.word(first, end);
                    let others = if is_used { !word } else { word } >> (end % 64);
                    if others != 0 {
                        end += u64::from(others.trailing_zeros());
                        break;
                    }
                    end = (end / 64 + 1) * 64;
                }
            }
        }
        Run { rank: is_used.then(|| self.rank(block)), end: end.min(self.blocks) }
    }

    /// Returns the number of used blocks before `block`.
    fn rank(&self, block: u64) -> u64 {
        let chunk = &self.chunks[(block / CHUNK) as usize];
        let within = block % CHUNK;
        chunk.rank
            + match chunk.bits {
                Bits::All(is_used) => u64::from(is_used) * within,
                Bits::Mixed(first) => {
                    let last = first as usize + (within / 64) as usize;
                    let before = self.words[first as usize..last].iter();
                    let before: u64 = before.map(|word| u64::from(word.count_ones())).sum();
                    let word = self.words[last] & ((1 << (within % 64)) - 1);
                    before + u64::from(word.count_ones())
                }
            }
    }

    /// Returns the word of a block in a chunk that begins with the word `first`.
    fn word(&self, first: u32, block: u64) -> u64 {
        self.words[first as usize + (block % CHUNK / 64) as usize]
    }
}

/// Size of the checksum of the bitmap in bytes.
const SUM: u64 = 4;

/// Number of blocks in a chunk.
const CHUNK: u64 = 8192;

/// Number of bytes of the bitmap that are read at once.
const STEP: u64 = 64 << 10;

/// Maximum number of blocks of a partclone image. Ranks of 8192 of them take 16 bytes.
/// Limit in blocks.
const MAX_BLOCKS: u64 = 1 << 34;

/// Maximum number of words of the bitmap of a partclone image, 64 blocks in each, that are neither all used nor all free with
/// their neighbours.
/// Limit in words.
const MAX_WORDS: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::Memory;

    /// Reads the bitmap with these bits.
    fn read(bits: &[bool]) -> Result<Bitmap> {
        let mut bytes: Vec<u8> = bits
            .chunks(8)
            .map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit)))
            .collect();
        if let (Some(last), false) = (bytes.last_mut(), bits.len().is_multiple_of(8)) {
            *last |= 0x80;
        }
        let sum = register(SEED, &bytes);
        bytes.extend(sum.to_le_bytes());
        let file = HostFile::new("x".into(), Box::new(Memory(bytes)), Arc::default());
        Bitmap::read(&file, 0, bits.len() as u64)
    }

    #[test]
    fn runs_of_any_length() {
        let mut bits = Vec::new();
        for (number, length) in
            [1, 1, 62, 1, 64, 63, 130, 9000, 3, 8192, 8192, 16000, 5, 70_000, 24_576, 2, 1]
                .into_iter()
                .enumerate()
        {
            bits.extend(vec![number % 2 == 0; length]);
        }
        for skip in [0, 1, 7, 63, 100] {
            let bits = &bits[skip..];
            let bitmap = read(bits).unwrap();
            let ranks: Vec<u64> = bits
                .iter()
                .scan(0, |rank, bit| Some(std::mem::replace(rank, *rank + u64::from(*bit))))
                .collect();
            assert_eq!(bitmap.used(), bits.iter().filter(|bit| **bit).count() as u64);
            let mut end = bits.len();
            for block in (0..bits.len()).rev() {
                if block + 1 < bits.len() && bits[block] != bits[block + 1] {
                    end = block + 1;
                }
                let found = bitmap.run(block as u64, u64::MAX);
                let rank = bits[block].then_some(ranks[block]);
                assert_eq!(found, Run { rank, end: end as u64 }, "{skip} {block}");
                let near = bitmap.run(block as u64, block as u64 + 1);
                assert!(near.rank == rank && near.end > block as u64 && near.end <= end as u64);
            }
        }
    }

    #[test]
    fn equal_chunks_take_no_words() {
        for bit in [true, false] {
            let bitmap = read(&vec![bit; 1_000_003]).unwrap();
            assert!(bitmap.words.is_empty());
            assert_eq!(bitmap.run(5, u64::MAX).end, 1_000_003);
        }
        assert_eq!(read(&[]).unwrap().used(), 0);
    }
}
