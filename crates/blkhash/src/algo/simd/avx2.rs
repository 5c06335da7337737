//! Vectors of 256 bits.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// Adds 32-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub fn add_32(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(a, b)
}

/// Adds 64-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub fn add_64(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi64(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub fn xor(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub fn xor3(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    xor(xor(a, b), c)
}

/// Copies a word to each 32-bit lane.
#[inline]
#[target_feature(enable = "avx2")]
pub fn splat_32(word: u32) -> __m256i {
    _mm256_set1_epi32(word as i32)
}

/// Copies a word to each 64-bit lane.
#[inline]
#[target_feature(enable = "avx2")]
pub fn splat_64(word: u64) -> __m256i {
    _mm256_set1_epi64x(word as i64)
}

#[inline]
#[target_feature(enable = "avx2")]
pub fn load_32(words: &[u32; 8]) -> __m256i {
    // SAFETY: the words are 32 bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub fn load_64(words: &[u64; 4]) -> __m256i {
    // SAFETY: the words are 32 bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub fn store_32(words: &mut [u32; 8], vector: __m256i) {
    // SAFETY: the words are 32 bytes.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub fn store_64(words: &mut [u64; 4], vector: __m256i) {
    // SAFETY: the words are 32 bytes.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}
