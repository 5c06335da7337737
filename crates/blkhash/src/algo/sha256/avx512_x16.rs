//! SHA-256 of sixteen inputs, one in each 32-bit lane of AVX-512.
//!
//! Each function of FIPS 180-4 takes `vprord` and one `vpternlogd`, and the sixteen words of the
//! message window stay in registers. Words go into the lanes four at a time, with 128-bit loads,
//! inserts and unpacks. Gathers cost more.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::constants::{BLOCK, K, Words};
use super::lanes::{rounds, transpose};
use crate::algo::simd::avx512::{
    add_32 as add, load_32, rotate_right_32 as rotate_right, splat_32 as splat, store_32, xor3,
};
use crate::cpu::Avx512;

/// Number of inputs side by side.
pub(super) const LANES: usize = 16;

/// Compresses `blocks` blocks at the start of each input into the state of the same index.
pub(super) fn compress(
    _token: Avx512,
    states: &mut [Words; LANES],
    inputs: [&[u8]; LANES],
    blocks: usize,
) {
    for input in inputs {
        assert!(input.len() >= blocks * BLOCK);
    }
    // SAFETY: `_token` proves avx512f and avx512bw.
    unsafe { compress_blocks(states, inputs, blocks) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn compress_blocks(states: &mut [Words; LANES], inputs: [&[u8]; LANES], blocks: usize) {
    let mut vectors: [__m512i; 8] =
        std::array::from_fn(|word| load_32(&std::array::from_fn(|lane| states[lane][word])));
    for block in 0..blocks {
        vectors = rounds!(vectors, load(inputs, block * BLOCK));
    }
    for (word, vector) in vectors.into_iter().enumerate() {
        let mut row = [0; LANES];
        store_32(&mut row, vector);
        for (state, value) in states.iter_mut().zip(row) {
            state[word] = value;
        }
    }
}

/// Loads the sixteen words at `offset` of each input. Every input has 64 bytes there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(inputs: [&[u8]; LANES], offset: usize) -> [__m512i; 16] {
    let swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203));
    let mut words = [_mm512_setzero_si512(); 16];
    for (quarter, words) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let load = |lane: usize| {
            // SAFETY: `compress` asserted that each input has this block.
            unsafe { _mm_loadu_si128(inputs[lane].as_ptr().add(offset + 16 * quarter).cast()) }
        };
        let column = |lane: usize| {
            let column = _mm512_castsi128_si512(load(lane));
            let column = _mm512_inserti32x4::<1>(column, load(lane + 4));
            let column = _mm512_inserti32x4::<2>(column, load(lane + 8));
            let column = _mm512_inserti32x4::<3>(column, load(lane + 12));
            _mm512_shuffle_epi8(column, swap)
        };
        *words = transpose!(
            [column(0), column(1), column(2), column(3)],
            _mm512_unpacklo_epi32,
            _mm512_unpackhi_epi32,
            _mm512_unpacklo_epi64,
            _mm512_unpackhi_epi64
        );
    }
    words
}

#[inline]
#[target_feature(enable = "avx512f")]
fn shift_right<const N: u32>(a: __m512i) -> __m512i {
    _mm512_srli_epi32::<N>(a)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn choose(e: __m512i, f: __m512i, g: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xca>(e, f, g)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn majority(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xe8>(a, b, c)
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Sha224, Sha256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn equals_soft_in_every_lane() {
        equals_soft(Sha224, "avx512-x16");
        equals_soft(Sha256, "avx512-x16");
    }
}
