//! Measures how a checksum changes when one bit of the block changes. Each bit of a good checksum
//! flips half of the time, for any bit of the block.

use blkrecord::record;

use super::{BITS, BLOCK, Checksum};
use crate::noise::Noise;

record! {
    /// Effects of single flipped bits. A bit that flips half of the time has a bias of 0, one that always
    /// or never flips has a bias of 1.
    #[derive(Clone, Copy, Debug)]
    pub struct Avalanche {
        /// bits of the block that were flipped
        pub positions: usize,
        /// blocks in which each of them was flipped
        pub blocks: usize,
        /// share of the bits of the checksum that flip
        pub mean: f64,
        /// largest bias of a bit of the checksum over all flips, from 0 to 1
        pub worst_bit: f64,
        /// largest bias of a bit of the checksum for one bit of the block
        pub worst_pair: f64,
        /// the same as it is expected by chance, which grows with the number of pairs
        pub expected_pair: f64,
    }
}

/// Flips single bits and counts which bits of the checksum change.
pub fn avalanche(checksum: &dyn Checksum) -> Avalanche {
    let bits = checksum.bits();
    let mut noise = Noise(2);
    let positions: Vec<usize> = (0..POSITIONS).map(|_| noise.below(BITS)).collect();
    let mut flips = vec![vec![0u32; bits]; POSITIONS];
    for _ in 0..BLOCKS {
        let mut block = noise.block::<BLOCK>();
        let before = checksum.of(&block);
        for (&position, flips) in positions.iter().zip(&mut flips) {
            block[position / 8] ^= 1 << (position % 8);
            let changed = checksum.of(&block) ^ before;
            block[position / 8] ^= 1 << (position % 8);
            for (bit, flips) in flips.iter_mut().enumerate() {
                *flips += (changed >> bit & 1) as u32;
            }
        }
    }
    let bias = |flips: f64, of: usize| (2.0 * flips / of as f64 - 1.0).abs();
    let all = flips.iter().flatten();
    let total: f64 = all.clone().map(|flips| f64::from(*flips)).sum();
    let per_bit = (0..bits).map(|bit| {
        let flips: f64 = flips.iter().map(|flips| f64::from(flips[bit])).sum();
        bias(flips, POSITIONS * BLOCKS)
    });
    let pairs = (POSITIONS * bits) as f64;
    Avalanche {
        positions: POSITIONS,
        blocks: BLOCKS,
        mean: total / (pairs * BLOCKS as f64),
        worst_bit: per_bit.fold(0.0, f64::max),
        worst_pair: all.map(|flips| bias(f64::from(*flips), BLOCKS)).fold(0.0, f64::max),
        // The largest of this many normal variables with a standard deviation of 1 / sqrt(BLOCKS).
        expected_pair: (2.0 * (2.0 * pairs).ln()).sqrt() / (BLOCKS as f64).sqrt(),
    }
}

const POSITIONS: usize = 64;
const BLOCKS: usize = 512;
