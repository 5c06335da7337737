//! SHA-256 with the SHA instructions of x86, for one input or two side by side. One input leaves
//! half of the unit idle, because each `sha256rnds2` waits for the one before it.
//!
//! Two inputs leave no port idle, because the message schedule shares one with `sha256rnds2`. So
//! each part of the schedule is computed as soon as possible, and the upper halves of the sums for
//! the rounds are loaded from memory instead of shuffled. The `black_box` keeps the sums in memory.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::constants::{BLOCK, K, Words};
use crate::cpu::Sha;

/// Compresses `blocks` blocks at the start of each input into the state of the same index.
pub(super) fn compress<const N: usize>(
    _token: Sha,
    states: &mut [Words; N],
    inputs: [&[u8]; N],
    blocks: usize,
) {
    for input in inputs {
        assert!(input.len() >= blocks * BLOCK);
    }
    // SAFETY: `_token` proves sha, sse4.1 and ssse3.
    unsafe { compress_blocks(states, inputs, blocks) }
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn compress_blocks<const N: usize>(states: &mut [Words; N], inputs: [&[u8]; N], blocks: usize) {
    let mut abef = [_mm_setzero_si128(); N];
    let mut cdgh = abef;
    for n in 0..N {
        (abef[n], cdgh[n]) = load_state(&states[n]);
    }
    for block in 0..blocks {
        let (abef_before, cdgh_before) = (abef, cdgh);
        // SAFETY: `compress` asserted that each input has this block.
        let mut w = inputs.map(|input| unsafe { load_words(input, block * BLOCK) });
        let mut sums = [_mm_setzero_si128(); N];
        macro_rules! four_rounds {
            ($i:literal) => {
                for n in 0..N {
                    let k = _mm_set_epi32(
                        K[4 * $i + 3] as i32,
                        K[4 * $i + 2] as i32,
                        K[4 * $i + 1] as i32,
                        K[4 * $i] as i32,
                    );
                    let sum = _mm_add_epi32(w[n][$i % 4], k);
                    cdgh[n] = _mm_sha256rnds2_epu32(cdgh[n], abef[n], sum);
                    sums[n] = sum;
                }
                std::hint::black_box(&mut sums);
                for n in 0..N {
                    finish_words::<$i>(&mut w[n]);
                    abef[n] = _mm_sha256rnds2_epu32(abef[n], cdgh[n], upper_half(&sums[n]));
                    begin_words::<$i>(&mut w[n]);
                }
            };
        }
        four_rounds!(0);
        four_rounds!(1);
        four_rounds!(2);
        four_rounds!(3);
        four_rounds!(4);
        four_rounds!(5);
        four_rounds!(6);
        four_rounds!(7);
        four_rounds!(8);
        four_rounds!(9);
        four_rounds!(10);
        four_rounds!(11);
        four_rounds!(12);
        four_rounds!(13);
        four_rounds!(14);
        four_rounds!(15);
        for n in 0..N {
            abef[n] = _mm_add_epi32(abef[n], abef_before[n]);
            cdgh[n] = _mm_add_epi32(cdgh[n], cdgh_before[n]);
        }
    }
    for n in 0..N {
        store_state(&mut states[n], abef[n], cdgh[n]);
    }
}

/// Loads the upper half of a vector in memory.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn upper_half(vector: &__m128i) -> __m128i {
    // SAFETY: 8 bytes at offset 8 of 16.
    unsafe { _mm_loadl_epi64((&raw const *vector).byte_add(8)) }
}

/// Loads the sixteen words of a block.
///
/// # Safety
///
/// The input must have 64 bytes at `offset`.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub(super) unsafe fn load_words(input: &[u8], offset: usize) -> [__m128i; 4] {
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let mut words = [_mm_setzero_si128(); 4];
    for (i, word) in words.iter_mut().enumerate() {
        // SAFETY: the caller promises it.
        let bytes = unsafe { _mm_loadu_si128(input.as_ptr().add(offset + 16 * i).cast()) };
        *word = _mm_shuffle_epi8(bytes, swap);
    }
    words
}

/// Completes the words of the message schedule that the four rounds after step `I` take.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub(super) fn finish_words<const I: usize>(w: &mut [__m128i; 4]) {
    if (3..15).contains(&I) {
        let [next, _, w2, w3] = four(w, I + 1);
        let sum = _mm_add_epi32(next, _mm_alignr_epi8::<4>(w3, w2));
        w[(I + 1) % 4] = _mm_sha256msg2_epu32(sum, w3);
    }
}

/// Begins the words of the message schedule that the rounds three steps after step `I` take.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub(super) fn begin_words<const I: usize>(w: &mut [__m128i; 4]) {
    if (1..13).contains(&I) {
        let [before, now, ..] = four(w, I + 3);
        w[(I + 3) % 4] = _mm_sha256msg1_epu32(before, now);
    }
}

/// Returns four vectors of the message schedule, starting with index `first`, modulo 4.
#[inline(always)]
fn four(w: &[__m128i; 4], first: usize) -> [__m128i; 4] {
    std::array::from_fn(|i| w[(first + i) % 4])
}

/// Returns the state in the order of the instructions: `a b e f` and `c d g h`, from the highest
/// word down.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub(super) fn load_state(state: &Words) -> (__m128i, __m128i) {
    let [a, b, c, d, e, f, g, h] = state.map(|word| word as i32);
    (_mm_set_epi32(a, b, e, f), _mm_set_epi32(c, d, g, h))
}

/// Stores the state in the order of the words. It shuffles, because the compiler makes slow code of
/// the extraction of single words.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub(super) fn store_state(state: &mut Words, abef: __m128i, cdgh: __m128i) {
    let feba = _mm_shuffle_epi32::<0b00_01_10_11>(abef);
    let dchg = _mm_shuffle_epi32::<0b10_11_00_01>(cdgh);
    let dcba = _mm_blend_epi16::<0xf0>(feba, dchg);
    let hgfe = _mm_alignr_epi8::<8>(dchg, feba);
    let (low, high) = state.split_at_mut(4);
    // SAFETY: both halves have four words, 16 bytes.
    unsafe {
        _mm_storeu_si128(low.as_mut_ptr().cast(), dcba);
        _mm_storeu_si128(high.as_mut_ptr().cast(), hgfe);
    }
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Sha224, Sha256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn one_stream_equals_soft() {
        equals_soft(Sha224, "x86_sha");
        equals_soft(Sha256, "x86_sha");
    }

    #[test]
    fn two_streams_equal_soft() {
        equals_soft(Sha224, "x86_sha-x2");
        equals_soft(Sha256, "x86_sha-x2");
    }
}
