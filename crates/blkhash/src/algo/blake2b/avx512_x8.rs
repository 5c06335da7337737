//! BLAKE2b of eight inputs, one in each 64-bit lane of AVX-512.
//!
//! The state and the message take all 32 registers. Words go into the lanes two at a time, with
//! 128-bit loads, inserts and unpacks. A full transpose costs more.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::chain::{BLOCK, Blocks, Chain, IV, SIGMA};
use super::lanes::{A, B, B_DIAGONAL, C, C_DIAGONAL, D, D_DIAGONAL, rounds};
use crate::algo::simd::avx512::{
    add_64 as add, load_64, rotate_right_64 as rotate_right, splat_64 as splat, store_64, xor,
};
use crate::cpu::Avx512;

/// Number of inputs side by side.
pub(super) const LANES: usize = 8;

/// Compresses the blocks at the start of each input into the chain of the same index.
pub(super) fn compress(
    _token: Avx512,
    chains: &mut [Chain; LANES],
    inputs: [&[u8]; LANES],
    blocks: Blocks,
) {
    for input in inputs {
        assert!(input.len() >= blocks.number * BLOCK);
    }
    // SAFETY: `_token` proves avx512f.
    unsafe { compress_blocks(chains, inputs, blocks) }
}

#[target_feature(enable = "avx512f")]
fn compress_blocks(chains: &mut [Chain; LANES], inputs: [&[u8]; LANES], blocks: Blocks) {
    let mut h: [__m512i; 8] =
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
#[target_feature(enable = "avx512f")]
fn load(inputs: [&[u8]; LANES], offset: usize) -> [__m512i; 16] {
    let mut words = [_mm512_setzero_si512(); 16];
    for (pair, words) in words.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let load = |lane: usize| {
            // SAFETY: `compress` asserted that each input has this block.
            unsafe { _mm_loadu_si128(inputs[lane].as_ptr().add(offset + 16 * pair).cast()) }
        };
        let column = |lane: usize| {
            let column = _mm512_castsi128_si512(load(lane));
            let column = _mm512_inserti32x4::<1>(column, load(lane + 2));
            let column = _mm512_inserti32x4::<2>(column, load(lane + 4));
            _mm512_inserti32x4::<3>(column, load(lane + 6))
        };
        let (even, odd) = (column(0), column(1));
        *words = [_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd)];
    }
    words
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Blake2b256, Blake2b512};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn equals_soft_in_every_lane() {
        equals_soft(Blake2b256, "avx512-x8");
        equals_soft(Blake2b512, "avx512-x8");
    }
}
