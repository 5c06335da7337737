//! XXH3 with 64 and 128 bits and seed 0, through xxhash-rust. Digests are in the canonical big
//! endian.

use xxhash_rust::xxh3;

use super::hash::{Hash, finish_each};

/// Defines a [`Hash`] for one width of the digest.
macro_rules! xxh3 {
    ($name:ident, $digest:ident, $digest_of:path) => {
        #[derive(Clone)]
        pub(super) struct $name {
            state: xxh3::Xxh3,
            /// Whether bytes were hashed.
            started: bool,
        }

        impl $name {
            pub(super) fn new() -> Self {
                Self { state: xxh3::Xxh3::new(), started: false }
            }
        }

        impl Hash for $name {
            fn update(&mut self, input: &[u8]) {
                self.state.update(input);
                self.started = true;
            }

            fn finalize_into(self, digest: &mut [u8]) {
                digest.copy_from_slice(&self.state.$digest().to_be_bytes());
            }

            fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
                if self.started || inputs.is_empty() {
                    return finish_each(self, inputs, digests);
                }
                // Whole blocks are hashed without a state, which is larger than some blocks.
                let size = digests.len() / inputs.len();
                for (input, digest) in inputs.iter().zip(digests.chunks_exact_mut(size)) {
                    digest.copy_from_slice(&$digest_of(input).to_be_bytes());
                }
            }
        }
    };
}

xxh3!(Xxh3, digest, xxh3::xxh3_64);
xxh3!(Xxh128, digest128, xxh3::xxh3_128);
