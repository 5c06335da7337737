//! SHA-256 with the SHA instructions of AArch64, for one input, or for two or four side by side. The
//! rounds of one input wait for each other, and leave the unit idle meanwhile.
//!
//! State and message words of four inputs take 24 of the 32 registers.

#![cfg(target_arch = "aarch64")]
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::constants::{BLOCK, K, Words};
use crate::cpu::Sha2;

/// Compresses `blocks` blocks at the start of each input into the state of the same index.
pub(super) fn compress<const N: usize>(
    _token: Sha2,
    states: &mut [Words; N],
    inputs: [&[u8]; N],
    blocks: usize,
) {
    for input in inputs {
        assert!(input.len() >= blocks * BLOCK);
    }
    // SAFETY: `_token` proves sha2.
    unsafe { compress_blocks(states, inputs, blocks) }
}

#[target_feature(enable = "sha2")]
fn compress_blocks<const N: usize>(states: &mut [Words; N], inputs: [&[u8]; N], blocks: usize) {
    let mut abcd = [vdupq_n_u32(0); N];
    let mut efgh = abcd;
    for n in 0..N {
        (abcd[n], efgh[n]) = load_state(&states[n]);
    }
    for block in 0..blocks {
        let (abcd_before, efgh_before) = (abcd, efgh);
        // SAFETY: `compress` asserted that each input has this block.
        let mut w = inputs.map(|input| unsafe { load_words(input, block * BLOCK) });
        macro_rules! four_rounds {
            ($i:literal) => {
                let k = load_constants::<$i>();
                for n in 0..N {
                    let sum = vaddq_u32(w[n][$i % 4], k);
                    let next = vsha256hq_u32(abcd[n], efgh[n], sum);
                    efgh[n] = vsha256h2q_u32(efgh[n], abcd[n], sum);
                    abcd[n] = next;
                    replace_words::<$i>(&mut w[n]);
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
            abcd[n] = vaddq_u32(abcd[n], abcd_before[n]);
            efgh[n] = vaddq_u32(efgh[n], efgh_before[n]);
        }
    }
    for n in 0..N {
        store_state(&mut states[n], abcd[n], efgh[n]);
    }
}

/// Replaces the message words that the four rounds of step `I` took by the ones of sixteen rounds later.
#[inline]
#[target_feature(enable = "sha2")]
fn replace_words<const I: usize>(w: &mut [uint32x4_t; 4]) {
    if I < 12 {
        let [w0, w1, w2, w3] = std::array::from_fn(|i| w[(I + i) % 4]);
        w[I % 4] = vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
    }
}

/// Loads the constants of the four rounds of step `I`.
#[inline]
#[target_feature(enable = "sha2")]
fn load_constants<const I: usize>() -> uint32x4_t {
    let constants = const { &[K[4 * I], K[4 * I + 1], K[4 * I + 2], K[4 * I + 3]] };
    // SAFETY: four words, 16 bytes.
    unsafe { vld1q_u32(constants.as_ptr()) }
}

/// Loads the sixteen words of a block.
///
/// # Safety
///
/// The input must have 64 bytes at `offset`.
#[inline]
#[target_feature(enable = "sha2")]
unsafe fn load_words(input: &[u8], offset: usize) -> [uint32x4_t; 4] {
    let mut words = [vdupq_n_u32(0); 4];
    for (i, word) in words.iter_mut().enumerate() {
        // SAFETY: the caller promises it.
        let bytes = unsafe { vld1q_u8(input.as_ptr().add(offset + 16 * i)) };
        *word = vreinterpretq_u32_u8(vrev32q_u8(bytes));
    }
    words
}

/// Returns the state as the instructions take it: the words `a` to `d`, and `e` to `h`.
#[inline]
#[target_feature(enable = "sha2")]
fn load_state(state: &Words) -> (uint32x4_t, uint32x4_t) {
    let (low, high) = state.split_at(4);
    // SAFETY: both halves have four words, 16 bytes.
    unsafe { (vld1q_u32(low.as_ptr()), vld1q_u32(high.as_ptr())) }
}

#[inline]
#[target_feature(enable = "sha2")]
fn store_state(state: &mut Words, abcd: uint32x4_t, efgh: uint32x4_t) {
    let (low, high) = state.split_at_mut(4);
    // SAFETY: both halves have four words, 16 bytes.
    unsafe {
        vst1q_u32(low.as_mut_ptr(), abcd);
        vst1q_u32(high.as_mut_ptr(), efgh);
    }
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Sha224, Sha256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn one_stream_equals_soft() {
        equals_soft(Sha224, "arm_sha");
        equals_soft(Sha256, "arm_sha");
    }

    #[test]
    fn two_streams_equal_soft() {
        equals_soft(Sha224, "arm_sha-x2");
        equals_soft(Sha256, "arm_sha-x2");
    }

    #[test]
    fn four_streams_equal_soft() {
        equals_soft(Sha224, "arm_sha-x4");
        equals_soft(Sha256, "arm_sha-x4");
    }
}
