//! BLAKE2b of one input, with a row of the matrix of words in each register of AVX2.
//!
//! Each step waits for the one before it. Meanwhile the message words are loaded in the order of
//! the round. Between columns and diagonals the other rows are rotated relative to the second one,
//! which is the last to be ready.

#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::chain::{BLOCK, Block, Blocks, Chain, IV, SIGMA};
use crate::algo::simd::avx2::{add_64 as add, xor};
use crate::cpu::Avx2;

/// Compresses the blocks at the start of the input into the chain.
pub(super) fn compress(
    _token: Avx2,
    [chain]: &mut [Chain; 1],
    [input]: [&[u8]; 1],
    blocks: Blocks,
) {
    let (input, _) = input.as_chunks::<BLOCK>();
    // SAFETY: `_token` proves avx2.
    unsafe { compress_blocks(chain, &input[..blocks.number], blocks) }
}

#[target_feature(enable = "avx2")]
fn compress_blocks(chain: &mut Chain, input: &[Block], blocks: Blocks) {
    let [mut h_low, mut h_high] = rows(&chain.h);
    for block in input {
        chain.count += blocks.bytes;
        let mut m = [0; 16];
        for (word, bytes) in m.iter_mut().zip(block.as_chunks().0) {
            *word = i64::from_le_bytes(*bytes);
        }
        let [c, d] = rows(&IV);
        let d = xor(d, _mm256_set_epi64x(0, blocks.last as i64, 0, chain.count as i64));
        let mut v = [h_low, h_high, c, d];
        macro_rules! round {
            ($round:literal) => {
                let word = |i: usize| m[SIGMA[$round][i]];
                let four = |a, b, c, d| _mm256_set_epi64x(word(d), word(c), word(b), word(a));
                v = mix(v, four(0, 2, 4, 6), four(1, 3, 5, 7));
                v[0] = _mm256_permute4x64_epi64::<0b10_01_00_11>(v[0]);
                v[2] = _mm256_permute4x64_epi64::<0b00_11_10_01>(v[2]);
                v[3] = _mm256_permute4x64_epi64::<0b01_00_11_10>(v[3]);
                v = mix(v, four(14, 8, 10, 12), four(15, 9, 11, 13));
                v[0] = _mm256_permute4x64_epi64::<0b00_11_10_01>(v[0]);
                v[2] = _mm256_permute4x64_epi64::<0b10_01_00_11>(v[2]);
                v[3] = _mm256_permute4x64_epi64::<0b01_00_11_10>(v[3]);
            };
        }
        round!(0);
        round!(1);
        round!(2);
        round!(3);
        round!(4);
        round!(5);
        round!(6);
        round!(7);
        round!(8);
        round!(9);
        round!(10);
        round!(11);
        h_low = xor(h_low, xor(v[0], v[2]));
        h_high = xor(h_high, xor(v[1], v[3]));
    }
    let (low, high) = chain.h.split_at_mut(4);
    // SAFETY: each half is 32 bytes.
    unsafe {
        _mm256_storeu_si256(low.as_mut_ptr().cast(), h_low);
        _mm256_storeu_si256(high.as_mut_ptr().cast(), h_high);
    }
}

/// The function G, over four columns or diagonals.
#[inline]
#[target_feature(enable = "avx2")]
fn mix([a, b, c, d]: [__m256i; 4], x: __m256i, y: __m256i) -> [__m256i; 4] {
    let a = add(add(a, x), b);
    let d = rotate_right::<32>(xor(d, a));
    let c = add(c, d);
    let b = rotate_right::<24>(xor(b, c));
    let a = add(add(a, y), b);
    let d = rotate_right::<16>(xor(d, a));
    let c = add(c, d);
    let b = rotate_right::<63>(xor(b, c));
    [a, b, c, d]
}

#[inline]
#[target_feature(enable = "avx2")]
fn rows(words: &[u64; 8]) -> [__m256i; 2] {
    let (low, high) = words.split_at(4);
    // SAFETY: each half is 32 bytes.
    unsafe { [_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast())] }
}

/// Rotates by whole bytes with shuffles, and by 63 with an addition.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn rotate_right<const N: i32>(a: __m256i) -> __m256i {
    let bytes =
        |high, low| _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low)));
    match N {
        16 => bytes(0x0908_0f0e_0d0c_0b0a, 0x0100_0706_0504_0302),
        24 => bytes(0x0a09_080f_0e0d_0c0b, 0x0201_0007_0605_0403),
        32 => _mm256_shuffle_epi32::<0b10_11_00_01>(a),
        63 => _mm256_or_si256(_mm256_srli_epi64::<63>(a), _mm256_add_epi64(a, a)),
        _ => unreachable!("BLAKE2b does not rotate by {N}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Blake2b256, Blake2b512};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn one_stream_equals_soft() {
        equals_soft(Blake2b256, "avx2");
        equals_soft(Blake2b512, "avx2");
    }
}
