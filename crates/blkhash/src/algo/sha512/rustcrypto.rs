//! SHA-512 through the crate sha2, for CPUs without the SHA-512 instructions of AArch64.

#![cfg(target_arch = "aarch64")]

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
    sha2::block_api::compress512(state, &input[..blocks]);
}

#[cfg(test)]
mod tests {
    use crate::Algorithm::{Sha384, Sha512, Sha512_224, Sha512_256};
    use crate::algo::kernel_tests::equals_soft;

    #[test]
    fn one_input_equals_soft() {
        equals_soft(Sha384, "sha2");
        equals_soft(Sha512, "sha2");
        equals_soft(Sha512_224, "sha2");
        equals_soft(Sha512_256, "sha2");
    }
}
