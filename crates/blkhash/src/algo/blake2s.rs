//! BLAKE2s, through blake2s_simd, which hashes inputs side by side in the lanes of AVX2.

use blake2s_simd::many::{MAX_DEGREE, update_many};
use blake2s_simd::{Params, State};

use super::hash::Hash;

#[derive(Clone)]
pub(super) struct Blake2s(State);

impl Blake2s {
    pub(super) fn new(digest_size: usize) -> Self {
        Self(Params::new().hash_length(digest_size).to_state())
    }
}

impl Hash for Blake2s {
    fn update(&mut self, input: &[u8]) {
        self.0.update(input);
    }

    fn finalize_into(self, digest: &mut [u8]) {
        digest.copy_from_slice(self.0.finalize().as_bytes());
    }

    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        if inputs.is_empty() {
            return;
        }
        let size = digests.len() / inputs.len();
        for (inputs, digests) in
            inputs.chunks(MAX_DEGREE).zip(digests.chunks_mut(size * MAX_DEGREE))
        {
            let mut states: [_; MAX_DEGREE] = std::array::from_fn(|_| self.0.clone());
            update_many(states.iter_mut().zip(inputs));
            for (state, digest) in states.iter().zip(digests.chunks_exact_mut(size)) {
                digest.copy_from_slice(state.finalize().as_bytes());
            }
        }
    }
}
