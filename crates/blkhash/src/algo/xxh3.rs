//! XXH3 with seed 0, through xxhash-rust; digests are in the canonical big endian.

use xxhash_rust::xxh3;

use super::Hash;

#[derive(Clone)]
pub(super) struct Xxh3(xxh3::Xxh3);

impl Xxh3 {
    pub(super) fn new() -> Self {
        Self(xxh3::Xxh3::new())
    }
}

impl Hash for Xxh3 {
    fn update(&mut self, input: &[u8]) {
        self.0.update(input);
    }

    fn finalize_into(self, digest: &mut [u8]) {
        digest.copy_from_slice(&self.0.digest().to_be_bytes());
    }
}

#[derive(Clone)]
pub(super) struct Xxh128(xxh3::Xxh3);

impl Xxh128 {
    pub(super) fn new() -> Self {
        Self(xxh3::Xxh3::new())
    }
}

impl Hash for Xxh128 {
    fn update(&mut self, input: &[u8]) {
        self.0.update(input);
    }

    fn finalize_into(self, digest: &mut [u8]) {
        digest.copy_from_slice(&self.0.digest128().to_be_bytes());
    }
}
