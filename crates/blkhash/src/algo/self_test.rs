//! Known answers that every implementation gives before it is used.
//!
//! Sixteen inputs of each length are hashed side by side, and their digests one after the other give
//! the answer: lanes, padding and streams all take part in it. `reference/` computed the answers
//! (`test-vectors/generate.py`).

use super::State;
use crate::Algorithm;

/// Whether a hash that has taken nothing yet computes its algorithm.
pub(super) fn passes(start: &State) -> bool {
    let size = start.algorithm().digest_size();
    let mut all = start.clone();
    for length in LENGTHS {
        let inputs: [[u8; MAX_LENGTH]; INPUTS] =
            std::array::from_fn(|input| std::array::from_fn(|i| ((31 * input + i) % 251) as u8));
        let inputs: [&[u8]; INPUTS] = std::array::from_fn(|input| &inputs[input][..length]);
        let mut digests = [0; INPUTS * crate::MAX_DIGEST_SIZE];
        let digests = &mut digests[..INPUTS * size];
        start.finish_many(&inputs, digests);
        all.update(digests);
    }
    answer(start.algorithm()) == all.finalize().to_string()
}

/// Lengths around the blocks of the algorithms.
const LENGTHS: [usize; 5] = [0, 1, 64, 200, MAX_LENGTH];

const MAX_LENGTH: usize = 512;

/// Enough to fill the lanes of every kernel.
const INPUTS: usize = 16;

const fn answer(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Null => "",
        Algorithm::Crc32 => "7e50f408",
        Algorithm::Crc32c => "4abc5319",
        Algorithm::Crc64 => "1ad9a1e2a7bc3042",
        Algorithm::Crc64Nvme => "8a93dbe3f9ac39e3",
        Algorithm::Xxh64 => "4dabfee37195e42d",
        Algorithm::Xxh3 => "20230f136e204547",
        Algorithm::Xxh128 => "c992f99416e7db9faf3bb28ead8100f7",
        Algorithm::SipHash => "f7d5a98652b100d7",
        Algorithm::Md5 => "776288134553622089fce2176f4e050e",
        Algorithm::Sha1 => "a2093a19b5cd7285b3e858ce376851fb9ce27c37",
        Algorithm::Sha224 => "c98cc954376f5502f1fdb3acd1d34a10017d16afc6d591ab7f5db253",
        Algorithm::Sha256 => "05b4fd0d5f172a4c76e58fa6add2f9e99a1548ca9d020c9a0c2192e1b9b85c0e",
        Algorithm::Sha384 => {
            "8cbb3371692c2720ca028e033c9857807168d4f72e683e7a0cb9435aca60e22a489e1efc6a2aebebe42975082e572004"
        }
        Algorithm::Sha512 => {
            "b86b95d512268742e6f355c46c21807cfb8ee4a7b68922b684115e40dbb687041afe2a16c37bc1d2607585ecbe13364ca2453cf6249788b3bde1cca392013c3d"
        }
        Algorithm::Sha512_224 => "175645cffc581250bc7f2d6df27ade296cdecdfcd0c1f5f1ec2f7817",
        Algorithm::Sha512_256 => "64ccdcc6e71fb109b8015c281da112ffdf0a0334c8c124ff9a7a6a58de2a7672",
        Algorithm::Sha3_224 => "651107ca7301ae89bad711a9de6c7700013ea8a27c56c872e5c272ec",
        Algorithm::Sha3_256 => "d525831b4885ff5e6c43c7d736bdf6508ef028c721f7f7017b0f9eb8c37c0dc9",
        Algorithm::Sha3_384 => {
            "099cd623b317e035baba52ad76e57c82e4275e37906267b04c2f4998a12c5f097ebc3b9ac3a028d7a22838940e28a0ec"
        }
        Algorithm::Sha3_512 => {
            "2ff1daa24f00c6c39b54bafedc9fa8723259104cc47b121356eb2243a307950a73c3bc4cf46d0383f45958111b6fc74ff3ba22bb120806d1d96cb59cecee730d"
        }
        Algorithm::Blake2b256 => "78dbc1c2851fc68d939f38031b3d5b083f7f1f0461edf6ca3f21b947f582424c",
        Algorithm::Blake2b512 => {
            "c1cd60d7ba30f17bd685d3bcd1fdb6c66ce65ed7f6810121a4c8e2def2c697fe909b55bd6291a1d945ab0ddf7c541ef08a1fb69a0c2c5e7673f41578003a0403"
        }
        Algorithm::Blake2s256 => "59dfde7662f442a159d68fc9eecf98343bb3797649708b4970f63eb4bce93e1b",
        Algorithm::Blake3 => "d3fbc6d5b43e51252ee85815d68da58f8b1db232274c639cc4c119a624e643bf",
    }
}
