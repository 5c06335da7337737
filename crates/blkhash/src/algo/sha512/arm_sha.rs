//! SHA-512 with the SHA-512 instructions of AArch64, for one input or two side by side. The rounds of
//! one input wait for each other, and leave the unit idle meanwhile.
//!
//! State and message words of two inputs take 24 of the 32 registers. More inputs do not fit.

#![cfg(target_arch = "aarch64")]
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::constants::{BLOCK, K, Words};
use crate::cpu::Sha512;

/// Compresses `blocks` blocks at the start of each input into the state of the same index.
pub(super) fn compress<const N: usize>(
    _token: Sha512,
    states: &mut [Words; N],
    inputs: [&[u8]; N],
    blocks: usize,
) {
    for input in inputs {
        assert!(input.len() >= blocks * BLOCK);
    }
    // SAFETY: `_token` proves sha3, which includes SHA-512.
    unsafe { compress_blocks(states, inputs, blocks) }
}

#[target_feature(enable = "sha3")]
fn compress_blocks<const N: usize>(states: &mut [Words; N], inputs: [&[u8]; N], blocks: usize) {
    let mut state = [[vdupq_n_u64(0); 4]; N];
    for n in 0..N {
        state[n] = load_state(&states[n]);
    }
    for block in 0..blocks {
        let before = state;
        // SAFETY: `compress` asserted that each input has this block.
        let mut w = inputs.map(|input| unsafe { load_words(input, block * BLOCK) });
        macro_rules! two_rounds {
            ($($i:literal)*) => {$(
                let k = load_constants::<$i>();
                for n in 0..N {
                    rounds(&mut state[n], vaddq_u64(w[n][$i % 8], k));
                    replace_words::<$i>(&mut w[n]);
                }
            )*};
        }
        two_rounds!(0 1 2 3 4 5 6 7);
        two_rounds!(8 9 10 11 12 13 14 15);
        two_rounds!(16 17 18 19 20 21 22 23);
        two_rounds!(24 25 26 27 28 29 30 31);
        two_rounds!(32 33 34 35 36 37 38 39);
        for n in 0..N {
            state[n] = std::array::from_fn(|i| vaddq_u64(state[n][i], before[n][i]));
        }
    }
    for n in 0..N {
        store_state(&mut states[n], state[n]);
    }
}

/// Computes two rounds with the sums of their message words and constants.
#[inline]
#[target_feature(enable = "sha3")]
fn rounds(state: &mut [uint64x2_t; 4], sums: uint64x2_t) {
    let [ab, cd, ef, gh] = *state;
    let sums = vaddq_u64(vextq_u64::<1>(sums, sums), gh);
    let t1 = vsha512hq_u64(sums, vextq_u64::<1>(ef, gh), vextq_u64::<1>(cd, ef));
    *state = [vsha512h2q_u64(t1, cd, ab), ab, vaddq_u64(cd, t1), ef];
}

/// Replaces the message words that the two rounds of step `I` took by the ones of sixteen rounds later.
#[inline]
#[target_feature(enable = "sha3")]
fn replace_words<const I: usize>(w: &mut [uint64x2_t; 8]) {
    if I < 32 {
        let [w0, w1, _, _, w4, w5, _, w7] = std::array::from_fn(|i| w[(I + i) % 8]);
        let sums = vsha512su0q_u64(w0, w1);
        w[I % 8] = vsha512su1q_u64(sums, w7, vextq_u64::<1>(w4, w5));
    }
}

/// Loads the constants of the two rounds of step `I`.
#[inline]
#[target_feature(enable = "sha3")]
fn load_constants<const I: usize>() -> uint64x2_t {
    let constants = const { &[K[2 * I], K[2 * I + 1]] };
    // SAFETY: two words, 16 bytes.
    unsafe { vld1q_u64(constants.as_ptr()) }
}

/// Loads the sixteen words of a block.
///
/// # Safety
///
/// The input must have 128 bytes at `offset`.
#[inline]
#[target_feature(enable = "sha3")]
unsafe fn load_words(input: &[u8], offset: usize) -> [uint64x2_t; 8] {
    let mut words = [vdupq_n_u64(0); 8];
    for (i, word) in words.iter_mut().enumerate() {
        // SAFETY: the caller promises it.
        let bytes = unsafe { vld1q_u8(input.as_ptr().add(offset + 16 * i)) };
        *word = vreinterpretq_u64_u8(vrev64q_u8(bytes));
    }
    words
}

/// Returns the state as the instructions take it: pairs of words from `a b` to `g h`.
#[inline]
#[target_feature(enable = "sha3")]
fn load_state(state: &Words) -> [uint64x2_t; 4] {
    // SAFETY: each pair has two words, 16 bytes.
    std::array::from_fn(|i| unsafe { vld1q_u64(state[2 * i..][..2].as_ptr()) })
}

#[inline]
#[target_feature(enable = "sha3")]
fn store_state(state: &mut Words, vectors: [uint64x2_t; 4]) {
    for (pair, vector) in state.chunks_exact_mut(2).zip(vectors) {
        // SAFETY: a pair has two words, 16 bytes.
        unsafe { vst1q_u64(pair.as_mut_ptr(), vector) }
    }
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Sha384, Sha512, Sha512_224, Sha512_256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn one_stream_equals_soft() {
        equals_soft(Sha384, "arm_sha");
        equals_soft(Sha512, "arm_sha");
        equals_soft(Sha512_224, "arm_sha");
        equals_soft(Sha512_256, "arm_sha");
    }

    #[test]
    fn two_streams_equal_soft() {
        equals_soft(Sha384, "arm_sha-x2");
        equals_soft(Sha512, "arm_sha-x2");
        equals_soft(Sha512_224, "arm_sha-x2");
        equals_soft(Sha512_256, "arm_sha-x2");
    }
}
