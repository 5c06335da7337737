//! SHA-512's compression function, written as in FIPS 180-4.

#![cfg(any(test, target_arch = "aarch64"))]

use super::constants::{BLOCK, Block, K, Words};
use crate::algo::sha256::soft::soft;
use crate::cpu::Portable;

soft!(u64, [1, 8, 7], [19, 61, 6], [14, 18, 41], [28, 34, 39]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::sha512::constants::SHA512;

    /// Also where no kernel uses it.
    #[test]
    fn equals_rustcrypto() {
        let token = Portable::detect().unwrap();
        let input: Vec<u8> = (0..9 * BLOCK).map(|i| ((i * i) >> 3) as u8).collect();
        for (blocks, start) in (0..=8).flat_map(|blocks| [(blocks, 0), (blocks, 1)]) {
            let (mut ours, mut theirs) = ([SHA512], SHA512);
            compress(token, &mut ours, [&input[start..]], blocks);
            let (whole, _) = input[start..].as_chunks::<BLOCK>();
            sha2::block_api::compress512(&mut theirs, &whole[..blocks]);
            assert_eq!(ours, [theirs], "{blocks} blocks");
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn equals_rustcrypto_as_an_implementation() {
        use sha2::Digest;

        use crate::Algorithm::{Sha384, Sha512, Sha512_224, Sha512_256};
        use crate::algo::kernel_tests::soft_equals;

        soft_equals(Sha384, |input| sha2::Sha384::digest(input).to_vec());
        soft_equals(Sha512, |input| sha2::Sha512::digest(input).to_vec());
        soft_equals(Sha512_224, |input| sha2::Sha512_224::digest(input).to_vec());
        soft_equals(Sha512_256, |input| sha2::Sha512_256::digest(input).to_vec());
    }
}
