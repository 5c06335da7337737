//! Counts the blocks that share 32 bits of their checksums, to compare with chance.

use blkrecord::record;

use super::{BLOCK, Checksum};
use crate::noise::Noise;

record! {
    /// Counted collisions.
    #[derive(Clone, Copy, Debug)]
    pub struct Collisions {
        /// blocks that were compared
        pub blocks: u64,
        /// blocks whose low 32 bits repeat an earlier block's
        pub low: u64,
        /// blocks whose high 32 bits repeat an earlier block's
        pub high: u64,
        /// repetitions that are expected by chance
        pub expected: f64,
    }
}

/// Hashes blocks that differ in their first 64 bytes.
pub fn collisions(checksum: &dyn Checksum) -> Collisions {
    let mut noise = Noise(7);
    let mut buffer = vec![0; BATCH * BLOCK];
    noise.fill(&mut buffer);
    let (mut low, mut high) = (Vec::new(), Vec::new());
    while low.len() < BLOCKS {
        for block in buffer.chunks_exact_mut(BLOCK) {
            noise.fill(&mut block[..64]);
        }
        let blocks: Vec<&[u8]> = buffer.chunks_exact(BLOCK).collect();
        for digest in checksum.of_many(&blocks) {
            low.push(digest as u32);
            high.push((digest >> (checksum.bits() - 32)) as u32);
        }
    }
    let pairs = BLOCKS as f64 * (BLOCKS - 1) as f64 / 2.0;
    Collisions {
        blocks: BLOCKS as u64,
        low: repeated(low),
        high: repeated(high),
        expected: pairs / 2f64.powi(32),
    }
}

fn repeated(mut values: Vec<u32>) -> u64 {
    let all = values.len();
    values.sort_unstable();
    values.dedup();
    (all - values.len()) as u64
}

const BLOCKS: usize = 1 << 19;
const BATCH: usize = 64;
