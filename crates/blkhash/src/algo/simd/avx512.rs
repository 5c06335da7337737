//! Vectors of 512 bits.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// Adds 32-bit lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn add_32(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

/// Adds 64-bit lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn add_64(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi64(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub fn xor(a: __m512i, b: __m512i) -> __m512i {
    _mm512_xor_si512(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(a, b, c)
}

/// Rotates 32-bit lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn rotate_right_32<const N: i32>(a: __m512i) -> __m512i {
    _mm512_ror_epi32::<N>(a)
}

/// Rotates 64-bit lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn rotate_right_64<const N: i32>(a: __m512i) -> __m512i {
    _mm512_ror_epi64::<N>(a)
}

/// Copies a word to each 32-bit lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn splat_32(word: u32) -> __m512i {
    _mm512_set1_epi32(word as i32)
}

/// Copies a word to each 64-bit lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn splat_64(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_32(words: &[u32; 16]) -> __m512i {
    // SAFETY: the words are 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_64(words: &[u64; 8]) -> __m512i {
    // SAFETY: the words are 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub fn store_32(words: &mut [u32; 16], vector: __m512i) {
    // SAFETY: the words are 64 bytes.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub fn store_64(words: &mut [u64; 8], vector: __m512i) {
    // SAFETY: the words are 64 bytes.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}
