//! BLAKE2b's compression function, written as in RFC 7693.

use super::chain::{BLOCK, Block, Blocks, Chain, IV, SIGMA};
use crate::cpu::Portable;

/// Compresses the blocks at the start of the input into the chain.
pub(super) fn compress(
    _token: Portable,
    [chain]: &mut [Chain; 1],
    [input]: [&[u8]; 1],
    blocks: Blocks,
) {
    let (input, _) = input.as_chunks::<BLOCK>();
    for block in &input[..blocks.number] {
        chain.count += blocks.bytes;
        compress_block(chain, block, blocks.last);
    }
}

fn compress_block(chain: &mut Chain, block: &Block, last: u64) {
    let mut m = [0; 16];
    for (word, bytes) in m.iter_mut().zip(block.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let mut v = [0; 16];
    v[..8].copy_from_slice(&chain.h);
    v[8..].copy_from_slice(&IV);
    v[12] ^= chain.count;
    v[14] ^= last;
    for s in &SIGMA {
        mix(&mut v, [0, 4, 8, 12], m[s[0]], m[s[1]]);
        mix(&mut v, [1, 5, 9, 13], m[s[2]], m[s[3]]);
        mix(&mut v, [2, 6, 10, 14], m[s[4]], m[s[5]]);
        mix(&mut v, [3, 7, 11, 15], m[s[6]], m[s[7]]);
        mix(&mut v, [0, 5, 10, 15], m[s[8]], m[s[9]]);
        mix(&mut v, [1, 6, 11, 12], m[s[10]], m[s[11]]);
        mix(&mut v, [2, 7, 8, 13], m[s[12]], m[s[13]]);
        mix(&mut v, [3, 4, 9, 14], m[s[14]], m[s[15]]);
    }
    for (i, word) in chain.h.iter_mut().enumerate() {
        *word ^= v[i] ^ v[i + 8];
    }
}

/// The function G, over four words of `v`.
#[inline(always)]
fn mix(v: &mut [u64; 16], [a, b, c, d]: [usize; 4], x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Blake2b256, Blake2b512};
    use crate::algo::kernel_tests::soft_equals;

    #[test]
    fn equals_blake2b_simd() {
        for algorithm in [Blake2b256, Blake2b512] {
            let mut params = blake2b_simd::Params::new();
            params.hash_length(algorithm.digest_size());
            soft_equals(algorithm, |input| params.hash(input).as_bytes().to_vec());
        }
    }
}
