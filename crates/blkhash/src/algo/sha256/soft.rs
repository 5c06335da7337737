//! SHA-256's compression function, written as in FIPS 180-4.

use super::constants::{BLOCK, Block, K, Words};
use crate::cpu::Portable;

/// Writes the compression function for a width of words, with the amounts of the functions σ0, σ1, Σ1 and Σ0, which are
/// all that SHA-256 and SHA-512 differ in besides constants.
macro_rules! soft {
    (
        $word:ty,
        [$a0:literal, $b0:literal, $c0:literal],
        [$a1:literal, $b1:literal, $c1:literal],
        [$d1:literal, $e1:literal, $f1:literal],
        [$d0:literal, $e0:literal, $f0:literal] $(,)?
    ) => {
        /// Compresses the blocks at the start of the input into the state.
        pub(super) fn compress(
            _token: Portable,
            [state]: &mut [Words; 1],
            [input]: [&[u8]; 1],
            blocks: usize,
        ) {
            let (input, _) = input.as_chunks::<BLOCK>();
            for block in &input[..blocks] {
                compress_block(state, block);
            }
        }

        fn compress_block(state: &mut Words, block: &Block) {
            let mut w = [0; 16];
            for (word, bytes) in w.iter_mut().zip(block.as_chunks().0) {
                *word = <$word>::from_be_bytes(*bytes);
            }
            let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
            for (i, k) in K.iter().enumerate() {
                if i >= 16 {
                    let (w1, w14) = (w[(i + 1) % 16], w[(i + 14) % 16]);
                    let s0 = w1.rotate_right($a0) ^ w1.rotate_right($b0) ^ (w1 >> $c0);
                    let s1 = w14.rotate_right($a1) ^ w14.rotate_right($b1) ^ (w14 >> $c1);
                    let sum = w[i % 16].wrapping_add(s0).wrapping_add(w[(i + 9) % 16]);
                    w[i % 16] = sum.wrapping_add(s1);
                }
                let s1 = e.rotate_right($d1) ^ e.rotate_right($e1) ^ e.rotate_right($f1);
                let ch = (e & f) ^ (!e & g);
                let t1 =
                    h.wrapping_add(s1).wrapping_add(ch).wrapping_add(*k).wrapping_add(w[i % 16]);
                let s0 = a.rotate_right($d0) ^ a.rotate_right($e0) ^ a.rotate_right($f0);
                let maj = (a & b) ^ (a & c) ^ (b & c);
                let t2 = s0.wrapping_add(maj);
                (h, g, f, e, d, c, b, a) =
                    (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
            }
            for (word, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                *word = word.wrapping_add(value);
            }
        }
    };
}
#[cfg(any(test, target_arch = "aarch64"))]
pub(in crate::algo) use soft;

soft!(u32, [7, 18, 3], [17, 19, 10], [6, 11, 25], [2, 13, 22]);

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use crate::Algorithm::{Sha224, Sha256};
    use crate::algo::kernel_tests::soft_equals;

    #[test]
    fn equals_rustcrypto() {
        soft_equals(Sha224, |input| sha2::Sha224::digest(input).to_vec());
        soft_equals(Sha256, |input| sha2::Sha256::digest(input).to_vec());
    }
}
