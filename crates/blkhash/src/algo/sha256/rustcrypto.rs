//! SHA-256 through the crate sha2, which uses the instructions of AArch64 and others, for CPUs
//! without a kernel of our own.

#![cfg(any(test, not(target_arch = "x86_64")))]

use super::constants::{BLOCK, Words};
use crate::cpu::Portable;

/// Compresses the blocks at the start of the input into the state.
pub(super) fn compress(
    _token: Portable,
    [state]: &mut [Words; 1],
    [input]: [&[u8]; 1],
    blocks: usize,
) {
    let (input, _) = input.as_chunks::<BLOCK>();
    sha2::block_api::compress256(state, &input[..blocks]);
}

#[cfg(all(test, not(target_arch = "x86_64")))]
mod tests {
    use crate::Algorithm::{Sha224, Sha256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn equals_soft_as_an_implementation() {
        equals_soft(Sha224, "sha2");
        equals_soft(Sha256, "sha2");
    }
}

// On x86-64 it is not used, but it is still tested.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::constants::SHA256;
    use super::super::soft;
    use super::*;

    #[test]
    fn equals_soft() {
        let token = Portable::detect().unwrap();
        let input: Vec<u8> = (0..9 * BLOCK).map(|i| ((i * i) >> 3) as u8).collect();
        for (blocks, start) in (0..=8).flat_map(|blocks| [(blocks, 0), (blocks, 1)]) {
            let (mut ours, mut theirs) = ([SHA256], [SHA256]);
            soft::compress(token, &mut ours, [&input[start..]], blocks);
            compress(token, &mut theirs, [&input[start..]], blocks);
            assert_eq!(ours, theirs, "{blocks} blocks");
        }
    }
}
