//! BLAKE2b of four inputs, one in each 64-bit lane of AVX2.
//!
//! Words go into the lanes two at a time, with 128-bit loads, inserts and unpacks.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::avx2::rotate_right;
use super::chain::{BLOCK, Blocks, Chain, IV, SIGMA};
use super::lanes::{A, B, B_DIAGONAL, C, C_DIAGONAL, D, D_DIAGONAL, rounds};
use crate::algo::simd::avx2::{add_64 as add, load_64, splat_64 as splat, store_64, xor};
use crate::cpu::Avx2;

/// Number of inputs side by side.
pub(super) const LANES: usize = 4;

/// Compresses the blocks at the start of each input into the chain of the same index.
pub(super) fn compress(
    _token: Avx2,
    chains: &mut [Chain; LANES],
    inputs: [&[u8]; LANES],
    blocks: Blocks,
) {
    for input in inputs {
        assert!(input.len() >= blocks.number * BLOCK);
    }
    // SAFETY: `_token` proves avx2.
    unsafe { compress_blocks(chains, inputs, blocks) }
}

#[target_feature(enable = "avx2")]
fn compress_blocks(chains: &mut [Chain; LANES], inputs: [&[u8]; LANES], blocks: Blocks) {
    let mut h: [__m256i; 8] =
        std::array::from_fn(|word| load_64(&std::array::from_fn(|lane| chains[lane].h[word])));
    let mut count = load_64(&std::array::from_fn(|lane| chains[lane].count));
    for block in 0..blocks.number {
        count = add(count, splat(blocks.bytes));
        h = rounds!(h, load(inputs, block * BLOCK), count, splat(blocks.last));
    }
    for (word, vector) in h.into_iter().enumerate() {
        let mut row = [0; LANES];
        store_64(&mut row, vector);
        for (chain, value) in chains.iter_mut().zip(row) {
            chain.h[word] = value;
        }
    }
    for chain in chains {
        chain.count += blocks.number as u64 * blocks.bytes;
    }
}

/// Loads the sixteen words at `offset` of each input. Every input has 128 bytes there.
#[inline]
#[target_feature(enable = "avx2")]
fn load(inputs: [&[u8]; LANES], offset: usize) -> [__m256i; 16] {
    let mut words = [_mm256_setzero_si256(); 16];
    for (pair, words) in words.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let load = |lane: usize| {
            // SAFETY: `compress` asserted that each input has this block.
            unsafe { _mm_loadu_si128(inputs[lane].as_ptr().add(offset + 16 * pair).cast()) }
        };
        let column = |lane: usize| {
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(load(lane)), load(lane + 2))
        };
        let (even, odd) = (column(0), column(1));
        *words = [_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd)];
    }
    words
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Blake2b256, Blake2b512};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn equals_soft_in_every_lane() {
        equals_soft(Blake2b256, "avx2-x4");
        equals_soft(Blake2b512, "avx2-x4");
    }
}
