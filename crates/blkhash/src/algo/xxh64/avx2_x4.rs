//! XXH64 of four inputs, with the four accumulators of each in a register of AVX2.
//!
//! AVX2 only multiplies halves of words, so a product takes three multiplications. A single input
//! would be slower than without vectors, but four inputs hide the latency.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::stripe::{Accumulators, PRIME_1, PRIME_2, STRIPE};
use crate::algo::simd::avx2::{add_64 as add, load_64, splat_64 as splat, store_64};
use crate::cpu::Avx2;

/// Number of inputs side by side.
pub(super) const LANES: usize = 4;

/// Takes `stripes` stripes at the start of each input into the accumulators of the same index.
pub(super) fn consume(
    _token: Avx2,
    accumulators: &mut [Accumulators; LANES],
    inputs: [&[u8]; LANES],
    stripes: usize,
) {
    for input in inputs {
        assert!(input.len() >= stripes * STRIPE);
    }
    // SAFETY: `_token` proves avx2.
    unsafe { consume_stripes(accumulators, inputs, stripes) }
}

#[target_feature(enable = "avx2")]
fn consume_stripes(
    accumulators: &mut [Accumulators; LANES],
    inputs: [&[u8]; LANES],
    stripes: usize,
) {
    let mut vectors: [__m256i; LANES] = std::array::from_fn(|lane| load_64(&accumulators[lane]));
    for stripe in 0..stripes {
        for (vector, input) in vectors.iter_mut().zip(inputs) {
            // SAFETY: `consume` asserted that each input has this stripe.
            let words = unsafe { _mm256_loadu_si256(input.as_ptr().add(stripe * STRIPE).cast()) };
            *vector = round(*vector, words);
        }
    }
    for (accumulators, vector) in accumulators.iter_mut().zip(vectors) {
        store_64(accumulators, vector);
    }
}

/// Returns four accumulators after one word each.
#[inline]
#[target_feature(enable = "avx2")]
fn round(accumulators: __m256i, words: __m256i) -> __m256i {
    let sums = add(accumulators, multiply::<PRIME_2>(words));
    let rotated = _mm256_or_si256(_mm256_slli_epi64::<31>(sums), _mm256_srli_epi64::<33>(sums));
    multiply::<PRIME_1>(rotated)
}

/// Returns the low halves of the products with `FACTOR`.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply<const FACTOR: u64>(words: __m256i) -> __m256i {
    let low = splat(FACTOR & 0xffff_ffff);
    let high = splat(FACTOR >> 32);
    let swapped = _mm256_shuffle_epi32::<0b11_11_01_01>(words);
    let crossed = add(_mm256_mul_epu32(swapped, low), _mm256_mul_epu32(words, high));
    add(_mm256_mul_epu32(words, low), _mm256_slli_epi64::<32>(crossed))
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::Xxh64;
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn equals_soft_in_every_lane() {
        equals_soft(Xxh64, "avx2-x4");
    }
}
