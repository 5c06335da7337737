//! BLAKE2b and BLAKE2s, through blake2b_simd and blake2s_simd: inputs side by side in the lanes of
//! AVX2.

use super::Hash;

/// Defines a [`Hash`] over one of the two crates, which have the same shape.
macro_rules! blake2 {
    ($name:ident, $library:ident) => {
        #[derive(Clone)]
        pub(super) struct $name($library::State);

        impl $name {
            pub(super) fn new(digest_size: usize) -> Self {
                Self($library::Params::new().hash_length(digest_size).to_state())
            }
        }

        impl Hash for $name {
            fn update(&mut self, input: &[u8]) {
                self.0.update(input);
            }

            fn finalize_into(self, digest: &mut [u8]) {
                digest.copy_from_slice(self.0.finalize().as_bytes());
            }

            fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
                use $library::many::{MAX_DEGREE, update_many};
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
    };
}

blake2!(Blake2b, blake2b_simd);
blake2!(Blake2s, blake2s_simd);
