//! XXH64 of eight inputs, with the four accumulators of two inputs in each register of AVX-512.
//!
//! Stripes go into the registers without transposing. `vpmullq` has a long latency, so a single
//! register would mostly wait for itself. Four registers keep the multiplier busy. Eight registers,
//! for sixteen inputs, are no faster, and inputs a power of two apart would evict each other from
//! the L1 cache.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::stripe::{Accumulators, PRIME_1, PRIME_2, STRIPE};
use crate::algo::simd::avx512::{add_64 as add, splat_64 as splat};
use crate::cpu::Avx512;

/// Number of inputs side by side.
pub(super) const LANES: usize = 8;

/// Takes `stripes` stripes at the start of each input into the accumulators of the same index.
pub(super) fn consume(
    _token: Avx512,
    accumulators: &mut [Accumulators; LANES],
    inputs: [&[u8]; LANES],
    stripes: usize,
) {
    for input in inputs {
        assert!(input.len() >= stripes * STRIPE);
    }
    // SAFETY: `_token` proves avx512f and avx512dq.
    unsafe { consume_stripes(accumulators, inputs, stripes) }
}

#[target_feature(enable = "avx512f,avx512dq")]
fn consume_stripes(
    accumulators: &mut [Accumulators; LANES],
    inputs: [&[u8]; LANES],
    stripes: usize,
) {
    let pairs = accumulators.as_chunks_mut::<2>().0;
    let mut vectors: [__m512i; LANES / 2] = std::array::from_fn(|pair| {
        // SAFETY: the accumulators of two streams are 64 bytes.
        unsafe { _mm512_loadu_si512(pairs[pair].as_ptr().cast()) }
    });
    for stripe in 0..stripes {
        for (pair, vector) in vectors.iter_mut().enumerate() {
            let load = |lane: usize| {
                // SAFETY: `consume` asserted that each input has this stripe.
                unsafe { _mm256_loadu_si256(inputs[lane].as_ptr().add(stripe * STRIPE).cast()) }
            };
            let words = _mm512_castsi256_si512(load(2 * pair));
            let words = _mm512_inserti64x4::<1>(words, load(2 * pair + 1));
            *vector = round(*vector, words);
        }
    }
    for (pair, vector) in pairs.iter_mut().zip(vectors) {
        // SAFETY: the accumulators of two streams are 64 bytes.
        unsafe { _mm512_storeu_si512(pair.as_mut_ptr().cast(), vector) };
    }
}

/// Returns eight accumulators after one word each.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn round(accumulators: __m512i, words: __m512i) -> __m512i {
    let products = _mm512_mullo_epi64(words, splat(PRIME_2));
    let sums = _mm512_rol_epi64::<31>(add(accumulators, products));
    _mm512_mullo_epi64(sums, splat(PRIME_1))
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::Xxh64;
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn equals_soft_in_every_lane() {
        equals_soft(Xxh64, "avx512-x8");
    }
}
