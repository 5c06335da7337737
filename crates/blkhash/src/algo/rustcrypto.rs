//! MD5, SHA-1, SHA-2 and SHA-3, through the crates of RustCrypto. They use SHA instructions if the
//! CPU has them.

use digest::Digest;

use super::hash::Hash;

#[derive(Clone)]
pub(super) struct RustCrypto<D>(D);

impl<D: Digest> RustCrypto<D> {
    pub(super) fn new() -> Self {
        Self(D::new())
    }
}

impl<D: Digest + Clone> Hash for RustCrypto<D> {
    fn update(&mut self, input: &[u8]) {
        self.0.update(input);
    }

    fn finalize_into(self, digest: &mut [u8]) {
        digest.copy_from_slice(&self.0.finalize());
    }
}
