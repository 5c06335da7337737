//! Bytes that arrived, in blocks.
//!
//! What a client of HTTP hands out are parts of its buffers, of any size, and one of a few bytes keeps a whole buffer. So bytes are copied
//! here, and what is held in memory is what is counted.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// Bytes at ascending offsets, of which parts may be missing.
#[derive(Default)]
pub(crate) struct Blocks {
    full: VecDeque<(u64, Bytes)>,
    tail: BytesMut,
    tail_at: u64,
}

impl Blocks {
    /// Adds bytes after all others. About `left` bytes will be added in all, these included.
    pub fn append(&mut self, mut at: u64, mut bytes: &[u8], left: u64) {
        if self.tail_at + self.tail.len() as u64 != at {
            self.finish_tail();
            self.tail_at = at;
        }
        while !bytes.is_empty() {
            if self.tail.capacity() == self.tail.len() {
                self.finish_tail();
                let capacity = usize::try_from(left).unwrap_or(usize::MAX);
                self.tail = BytesMut::with_capacity(capacity.clamp(bytes.len().min(BLOCK), BLOCK));
                self.tail_at = at;
            }
            let n = bytes.len().min(self.tail.capacity() - self.tail.len());
            self.tail.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            at += n as u64;
        }
    }

    /// Returns at most `most` bytes from `at` on, without a copy. `None` if the first of them is missing.
    pub fn get(&mut self, at: u64, most: usize) -> Option<Bytes> {
        if at >= self.tail_at && !self.tail.is_empty() {
            self.finish_tail();
        }
        let (start, block) = &self.full[self.find(at)?];
        let from = usize::try_from(at - start).ok()?;
        Some(block.slice(from..block.len().min(from.saturating_add(most))))
    }

    /// Returns the range of the block that contains `at`.
    pub fn block_of(&self, at: u64) -> Option<Range<u64>> {
        let (start, block) = &self.full[self.find(at)?];
        Some(*start..start + block.len() as u64)
    }

    /// Frees the block that contains `at`.
    pub fn free(&mut self, at: u64) {
        if let Some(i) = self.find(at) {
            self.full.remove(i);
        }
    }

    /// Frees all blocks that end at or before an offset, and returns the offset of the first byte that is kept.
    pub fn free_before(&mut self, offset: u64) -> u64 {
        while let Some((start, block)) = self.full.front()
            && start + block.len() as u64 <= offset
        {
            self.full.pop_front();
        }
        self.full.front().map_or(self.tail_at, |(start, _)| *start)
    }

    /// Makes the tail a block. What is left of its memory stays for the next one.
    fn finish_tail(&mut self) {
        if !self.tail.is_empty() {
            let block = self.tail.split().freeze();
            let end = self.tail_at + block.len() as u64;
            self.full.push_back((self.tail_at, block));
            self.tail_at = end;
        }
    }

    fn find(&self, at: u64) -> Option<usize> {
        let i = self.full.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let (start, block) = &self.full[i];
        (at - start < block.len() as u64).then_some(i)
    }
}

/// Maximum size of a block.
const BLOCK: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn all(blocks: &mut Blocks, range: Range<u64>, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while range.start + (bytes.len() as u64) < range.end {
            bytes.extend_from_slice(&blocks.get(range.start + bytes.len() as u64, most).unwrap());
        }
        bytes
    }

    #[test]
    fn bytes_come_back_however_they_are_added_and_read() {
        let content: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
        for step in [997, 16 << 10, 300_000, 700_000] {
            for most in [1000, 100_000, usize::MAX] {
                let mut blocks = Blocks::default();
                let (mut at, end) = (50, 50 + content.len() as u64);
                for part in content.chunks(step) {
                    blocks.append(at, part, end - at);
                    // Reads of the tail while it grows.
                    assert_eq!(blocks.get(at, 3).unwrap(), part[..3.min(part.len())]);
                    at += part.len() as u64;
                }
                assert_eq!(all(&mut blocks, 50..end, most), content);
                assert_eq!(blocks.get(49, 1), None);
                assert_eq!(blocks.get(end, 1), None);
            }
        }
    }

    #[test]
    fn gaps_are_missing_and_blocks_are_freed() {
        let mut blocks = Blocks::default();
        blocks.append(0, b"abc", 10);
        blocks.append(7, b"xyz", 3);
        assert_eq!(blocks.get(1, 9).unwrap(), "bc");
        assert_eq!(blocks.get(3, 1), None);
        assert_eq!(blocks.get(9, 9).unwrap(), "z");
        assert_eq!(blocks.block_of(8), Some(7..10));
        assert_eq!(blocks.free_before(3), 7);
        assert_eq!(blocks.get(0, 1), None);
        blocks.free(8);
        assert_eq!(blocks.get(7, 1), None);
        assert_eq!(blocks.free_before(100), 10);
    }
}
