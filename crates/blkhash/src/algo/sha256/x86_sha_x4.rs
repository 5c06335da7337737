//! SHA-256 of four inputs with the SHA instructions of x86.
//!
//! On AMD `sha256rnds2` takes four cycles and one can start in each, so that two inputs leave half
//! of the unit idle. The message words of more inputs do not fit into the sixteen registers that the
//! SHA instructions can name. AVX-512VL has sixteen more, where the words wait.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::*;

use super::constants::{BLOCK, K, Words};
use super::x86_sha::{begin_words, finish_words, load_state, load_words, store_state};
use crate::cpu::ShaAvx512;

/// Number of inputs side by side.
pub(super) const LANES: usize = 4;

/// Compresses `blocks` blocks at the start of each input into the state of the same index.
pub(super) fn compress(
    _token: ShaAvx512,
    states: &mut [Words; LANES],
    inputs: [&[u8]; LANES],
    blocks: usize,
) {
    for input in inputs {
        assert!(input.len() >= blocks * BLOCK);
    }
    // SAFETY: `_token` proves sha, sse4.1, ssse3, avx512f and avx512vl.
    unsafe { compress_blocks(states, inputs, blocks) }
}

#[target_feature(enable = "sha,sse4.1,ssse3,avx512f,avx512bw,avx512vl")]
fn compress_blocks(states: &mut [Words; LANES], inputs: [&[u8]; LANES], blocks: usize) {
    let mut abef = [_mm_setzero_si128(); LANES];
    let mut cdgh = abef;
    for n in 0..LANES {
        (abef[n], cdgh[n]) = load_state(&states[n]);
    }
    for block in 0..blocks {
        let (abef_before, cdgh_before) = (abef, cdgh);
        // SAFETY: `compress` asserted that each input has this block.
        let mut w = inputs.map(|input| unsafe { load_words(input, block * BLOCK) });
        macro_rules! four_rounds {
            ($i:literal) => {
                for n in 0..LANES {
                    rounds::<$i>(&mut abef[n], &mut cdgh[n], w[n][$i % 4]);
                    finish_words::<$i>(&mut w[n]);
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
        for n in 0..LANES {
            abef[n] = _mm_add_epi32(abef[n], abef_before[n]);
            cdgh[n] = _mm_add_epi32(cdgh[n], cdgh_before[n]);
        }
    }
    for n in 0..LANES {
        store_state(&mut states[n], abef[n], cdgh[n]);
    }
}

/// Computes rounds `4 * I` to `4 * I + 3` with the message words `w`.
///
/// `sha256rnds2` takes its words from `xmm0` only. These are assembly because the compiler moves
/// the steps of several inputs apart, and then saves and restores `xmm0` between them.
#[inline]
#[target_feature(enable = "sha,avx512f,avx512vl")]
fn rounds<const I: usize>(abef: &mut __m128i, cdgh: &mut __m128i, w: __m128i) {
    let k = const { &Constants([K[4 * I], K[4 * I + 1], K[4 * I + 2], K[4 * I + 3]]) };
    // SAFETY: the caller has the features. The only memory read is the constant, which is aligned.
    unsafe {
        asm!(
            "vpaddd xmm0, {w:x}, [{k}]",
            "sha256rnds2 {cdgh}, {abef}",
            "vpshufd xmm0, xmm0, 0x0e",
            "sha256rnds2 {abef}, {cdgh}",
            w = in(zmm_reg) w,
            k = in(reg) k,
            abef = inout(xmm_reg) *abef,
            cdgh = inout(xmm_reg) *cdgh,
            out("xmm0") _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
}

/// Four round constants in a vector.
#[repr(align(16))]
struct Constants(#[allow(dead_code, reason = "the assembly reads it")] [u32; 4]);

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Sha224, Sha256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn four_streams_equal_soft() {
        equals_soft(Sha224, "x86_sha-x4");
        equals_soft(Sha256, "x86_sha-x4");
    }
}
