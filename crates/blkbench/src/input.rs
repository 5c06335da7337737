//! The input of contestants: noise at page boundaries, like the blocks of an image.

use crate::noise::Noise;

/// Bytes that begin at a page boundary.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Creates `length` bytes of noise, which only depend on `seed`.
    pub fn noise(length: usize, seed: u64) -> Self {
        let mut bytes = vec![0; length + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        Noise(seed).fill(&mut bytes[start..start + length]);
        bytes.truncate(start + length);
        Self { bytes, start }
    }

    /// Returns the bytes, cut into blocks.
    pub fn blocks(&self, block_size: usize) -> Vec<&[u8]> {
        self.bytes[self.start..].chunks_exact(block_size).collect()
    }
}

/// Goes through blocks batch by batch, and starts over at the end.
pub struct Walk<'a> {
    blocks: &'a [&'a [u8]],
    batch: usize,
    position: usize,
}

impl<'a> Walk<'a> {
    /// Starts at block `position`.
    pub fn new(blocks: &'a [&'a [u8]], batch: usize, position: usize) -> Self {
        debug_assert!(blocks.len() >= batch);
        Self { blocks, batch, position }
    }

    /// Returns the next batch.
    #[inline]
    pub fn batch(&mut self) -> &'a [&'a [u8]] {
        if self.position + self.batch > self.blocks.len() {
            self.position = 0;
        }
        let batch = &self.blocks[self.position..][..self.batch];
        self.position += self.batch;
        batch
    }

    /// Returns the index of the first block of the next batch.
    pub fn position(&self) -> usize {
        self.position
    }
}

const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_touch_each_block_once_a_round() {
        let buffer = Buffer::noise(7 * 512, 1);
        let blocks = buffer.blocks(512);
        assert_eq!(blocks[0].as_ptr().align_offset(PAGE), 0);
        let mut walk = Walk::new(&blocks, 2, 0);
        let seen: Vec<_> = (0..4).map(|_| walk.batch()[0].as_ptr()).collect();
        assert_eq!(seen[..3], [blocks[0].as_ptr(), blocks[2].as_ptr(), blocks[4].as_ptr()]);
        assert_eq!(seen[3], seen[0], "the odd block at the end is left out");
        assert_eq!(walk.position(), 2);
    }
}
