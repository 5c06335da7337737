//! Checksums as numbers, and the noise that is hashed.

use blkhash::{Algorithm, BitOrder, Digester, State};

/// Size of a block in bytes, which is that of a btrfs sector.
pub const BLOCK: usize = 4096;

/// Size of a block in bits.
pub const BITS: usize = 8 * BLOCK;

/// An algorithm with a digest of up to 128 bits.
pub struct Hash {
    pub algorithm: Algorithm,
    /// Size of the digest in bits.
    pub bits: usize,
    digester: Digester,
    start: State,
}

impl Hash {
    pub fn new(algorithm: Algorithm) -> Self {
        let digester = Digester::new(algorithm);
        let start = digester.start();
        Self { algorithm, bits: 8 * algorithm.digest_size(), digester, start }
    }

    /// Returns the digest of a block.
    pub fn of(&self, block: &[u8]) -> u128 {
        number(self.digester.digest(block).as_bytes())
    }

    /// Returns the digests of many blocks.
    pub fn of_many(&self, blocks: &[&[u8]]) -> Vec<u128> {
        let size = self.algorithm.digest_size();
        let mut digests = vec![0; blocks.len() * size];
        self.digester.finish_many(&self.start, blocks, &mut digests);
        digests.chunks_exact(size).map(number).collect()
    }
}

fn number(digest: &[u8]) -> u128 {
    digest.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Returns the order in which the bits of a byte go through the register of a CRC. Bursts are runs of
/// bits in this order. For other hashes any order will do.
pub fn bit_order(algorithm: Algorithm) -> BitOrder {
    algorithm.properties().bit_order.unwrap_or(BitOrder::LowestFirst)
}

/// Flips the bit at `position`, counted in this order.
pub fn flip(order: BitOrder, block: &mut [u8], position: usize) {
    let bit = match order {
        BitOrder::LowestFirst => position % 8,
        BitOrder::HighestFirst => 7 - position % 8,
    };
    block[position / 8] ^= 1 << bit;
}

/// Noise that is the same in every run, from SplitMix64 by Sebastiano Vigna.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut noise = self.0;
        noise = (noise ^ (noise >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        noise = (noise ^ (noise >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        noise ^ (noise >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&self.next().to_le_bytes()[..word.len()]);
        }
    }

    pub fn block(&mut self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        self.fill(&mut block);
        block
    }
}
