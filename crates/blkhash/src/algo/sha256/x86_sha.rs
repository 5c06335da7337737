//! SHA-256 with the SHA instructions of x86, one stream or two side by side: one stream leaves half
//! of the unit idle, since each `sha256rnds2` waits for the one before it.

use std::arch::x86_64::*;

use super::{BLOCK, K, Words};
use crate::cpu::Sha;

/// Takes `blocks` blocks at the start of each input into the state of the same index.
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
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let mut abef = [_mm_setzero_si128(); N];
    let mut cdgh = abef;
    for n in 0..N {
        (abef[n], cdgh[n]) = load_state(&states[n]);
    }
    for block in 0..blocks {
        let (abef_before, cdgh_before) = (abef, cdgh);
        let mut w = [[_mm_setzero_si128(); 4]; N];
        for n in 0..N {
            for (i, word) in w[n].iter_mut().enumerate() {
                // SAFETY: `compress` asserted that the input has this block.
                let bytes = unsafe {
                    _mm_loadu_si128(inputs[n].as_ptr().add(block * BLOCK + 16 * i).cast())
                };
                *word = _mm_shuffle_epi8(bytes, swap);
            }
        }
        macro_rules! four_rounds {
            ($i:literal) => {
                for n in 0..N {
                    if $i >= 4 {
                        w[n][$i % 4] = schedule(
                            w[n][$i % 4],
                            w[n][($i + 1) % 4],
                            w[n][($i + 2) % 4],
                            w[n][($i + 3) % 4],
                        );
                    }
                    let k = _mm_set_epi32(
                        K[4 * $i + 3] as i32,
                        K[4 * $i + 2] as i32,
                        K[4 * $i + 1] as i32,
                        K[4 * $i] as i32,
                    );
                    let wk = _mm_add_epi32(w[n][$i % 4], k);
                    cdgh[n] = _mm_sha256rnds2_epu32(cdgh[n], abef[n], wk);
                    abef[n] =
                        _mm_sha256rnds2_epu32(abef[n], cdgh[n], _mm_shuffle_epi32::<0x0e>(wk));
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

/// The next four words of the message schedule, from the last sixteen.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn schedule(w0: __m128i, w1: __m128i, w2: __m128i, w3: __m128i) -> __m128i {
    let sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8::<4>(w3, w2));
    _mm_sha256msg2_epu32(sum, w3)
}

/// The state as the instructions want it: `a b e f` and `c d g h`, from the highest word down.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn load_state(state: &Words) -> (__m128i, __m128i) {
    let [a, b, c, d, e, f, g, h] = state.map(|word| word as i32);
    (_mm_set_epi32(a, b, e, f), _mm_set_epi32(c, d, g, h))
}

#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn store_state(state: &mut Words, abef: __m128i, cdgh: __m128i) {
    let word = |value: i32| value as u32;
    *state = [
        word(_mm_extract_epi32::<3>(abef)),
        word(_mm_extract_epi32::<2>(abef)),
        word(_mm_extract_epi32::<3>(cdgh)),
        word(_mm_extract_epi32::<2>(cdgh)),
        word(_mm_extract_epi32::<1>(abef)),
        word(_mm_extract_epi32::<0>(abef)),
        word(_mm_extract_epi32::<1>(cdgh)),
        word(_mm_extract_epi32::<0>(cdgh)),
    ];
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
