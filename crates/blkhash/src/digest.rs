use std::fmt;

use crate::algorithm::MAX_DIGEST_SIZE;

/// The value of a hash: up to 64 bytes, printed as hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    bytes: [u8; MAX_DIGEST_SIZE],
    length: u8,
}

impl Digest {
    /// A digest of `length` zero bytes, to be written to.
    pub(crate) fn zeroed(length: usize) -> Self {
        assert!(length <= MAX_DIGEST_SIZE, "a digest has at most {MAX_DIGEST_SIZE} bytes");
        Self { bytes: [0; MAX_DIGEST_SIZE], length: length as u8 }
    }

    /// The bytes, in the order their hexadecimal prints.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.length)]
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}
