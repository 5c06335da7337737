//! SHA-256 of eight inputs, one in each 32-bit lane of AVX2.
//!
//! For CPUs without the SHA instructions, which are faster with two inputs. Words go into the lanes
//! four at a time, with 128-bit loads, inserts and unpacks.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::constants::{BLOCK, K, Words};
use super::lanes::{rounds, transpose};
use crate::algo::simd::avx2::{add_32 as add, load_32, splat_32 as splat, store_32, xor3};
use crate::cpu::Avx2;

/// Number of inputs side by side.
pub(super) const LANES: usize = 8;

/// Compresses `blocks` blocks at the start of each input into the state of the same index.
pub(super) fn compress(
    _token: Avx2,
    states: &mut [Words; LANES],
    inputs: [&[u8]; LANES],
    blocks: usize,
) {
    for input in inputs {
        assert!(input.len() >= blocks * BLOCK);
    }
    // SAFETY: `_token` proves avx2.
    unsafe { compress_blocks(states, inputs, blocks) }
}

#[target_feature(enable = "avx2")]
fn compress_blocks(states: &mut [Words; LANES], inputs: [&[u8]; LANES], blocks: usize) {
    let mut vectors: [__m256i; 8] =
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
#[target_feature(enable = "avx2")]
fn load(inputs: [&[u8]; LANES], offset: usize) -> [__m256i; 16] {
    let swap =
        _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203));
    let mut words = [_mm256_setzero_si256(); 16];
    for (quarter, words) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let load = |lane: usize| {
            // SAFETY: `compress` asserted that each input has this block.
            unsafe { _mm_loadu_si128(inputs[lane].as_ptr().add(offset + 16 * quarter).cast()) }
        };
        let column = |lane: usize| {
            let column = _mm256_castsi128_si256(load(lane));
            let column = _mm256_inserti128_si256::<1>(column, load(lane + 4));
            _mm256_shuffle_epi8(column, swap)
        };
        *words = transpose!(
            [column(0), column(1), column(2), column(3)],
            _mm256_unpacklo_epi32,
            _mm256_unpackhi_epi32,
            _mm256_unpacklo_epi64,
            _mm256_unpackhi_epi64
        );
    }
    words
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_right<const N: i32>(a: __m256i) -> __m256i {
    let count = _mm_cvtsi32_si128(N);
    let rest = _mm_cvtsi32_si128(32 - N);
    _mm256_or_si256(_mm256_srl_epi32(a, count), _mm256_sll_epi32(a, rest))
}

#[inline]
#[target_feature(enable = "avx2")]
fn shift_right<const N: i32>(a: __m256i) -> __m256i {
    _mm256_srli_epi32::<N>(a)
}

#[inline]
#[target_feature(enable = "avx2")]
fn choose(e: __m256i, f: __m256i, g: __m256i) -> __m256i {
    _mm256_xor_si256(g, _mm256_and_si256(e, _mm256_xor_si256(f, g)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn majority(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(c, _mm256_or_si256(a, b)))
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Sha224, Sha256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn equals_soft_in_every_lane() {
        equals_soft(Sha224, "avx2-x8");
        equals_soft(Sha256, "avx2-x8");
    }
}
