//! SipHash-2-4 with a key of zeros. The digest is in little endian, as in the reference code.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

use super::hash::Hash;

#[derive(Clone)]
pub(super) struct SipHash(SipHasher24);

impl SipHash {
    pub(super) fn new() -> Self {
        Self(SipHasher24::new_with_key(&[0; 16]))
    }
}

impl Hash for SipHash {
    fn update(&mut self, input: &[u8]) {
        self.0.write(input);
    }

    fn finalize_into(self, digest: &mut [u8]) {
        digest.copy_from_slice(&self.0.finish().to_le_bytes());
    }
}
