//! SHA-512's compression function, written as in FIPS 180-4.

#![cfg(target_arch = "aarch64")]

use super::constants::{BLOCK, Block, K, Words};
use crate::cpu::Portable;

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
        *word = u64::from_be_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (i, k) in K.iter().enumerate() {
        if i >= 16 {
            let (w1, w14) = (w[(i + 1) % 16], w[(i + 14) % 16]);
            let s0 = w1.rotate_right(1) ^ w1.rotate_right(8) ^ (w1 >> 7);
            let s1 = w14.rotate_right(19) ^ w14.rotate_right(61) ^ (w14 >> 6);
            w[i % 16] = w[i % 16].wrapping_add(s0).wrapping_add(w[(i + 9) % 16]).wrapping_add(s1);
        }
        let s1 = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
        let ch = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(ch).wrapping_add(*k).wrapping_add(w[i % 16]);
        let s0 = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
        let maj = (a & b) ^ (a & c) ^ (b & c);
        let t2 = s0.wrapping_add(maj);
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
    }
    for (word, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(value);
    }
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use crate::Algorithm::{Sha384, Sha512, Sha512_224, Sha512_256};
    use crate::algo::kernel_tests::soft_equals;

    #[test]
    fn equals_rustcrypto() {
        soft_equals(Sha384, |input| sha2::Sha384::digest(input).to_vec());
        soft_equals(Sha512, |input| sha2::Sha512::digest(input).to_vec());
        soft_equals(Sha512_224, |input| sha2::Sha512_224::digest(input).to_vec());
        soft_equals(Sha512_256, |input| sha2::Sha512_256::digest(input).to_vec());
    }
}
