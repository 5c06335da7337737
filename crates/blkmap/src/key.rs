//! Keys, which seal maps.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A key of 16 to 4096 bytes that seals maps with HMAC-SHA-256.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// Minimum length in bytes.
    pub const MIN: usize = 16;

    /// Maximum length in bytes.
    pub const MAX: usize = 4096;

    /// Creates a key, or returns `None` if it is too short or too long.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&bytes.len()).then_some(Self(bytes))
    }

    /// Returns the id of the key, which says nothing about the key.
    pub fn id(&self) -> [u8; 8] {
        let mac = self.mac(KEY_ID).finalize().into_bytes();
        *mac.first_chunk().expect("a MAC of 32 bytes")
    }

    pub(crate) fn tag(&self, bytes: &[u8]) -> [u8; 32] {
        self.mac(bytes).finalize().into_bytes().into()
    }

    /// Returns whether `tag` belongs to the bytes. Takes the same time for every wrong tag.
    pub(crate) fn is_tag_of(&self, tag: &[u8; 32], bytes: &[u8]) -> bool {
        self.mac(bytes).verify_slice(tag).is_ok()
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0);
        mac.expect("HMAC takes keys of every length").chain_update(bytes)
    }
}

impl fmt::Debug for Key {
    /// Does not print the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

const KEY_ID: &[u8] = b"blkmap key id 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_rfc_4231() {
        let key = Key::new(vec![0x0b; 20]).unwrap();
        let tag = key.tag(b"Hi There");
        let text: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        assert!(key.is_tag_of(&tag, b"Hi There") && !key.is_tag_of(&tag, b"Hi there"));
    }

    #[test]
    fn short_and_long_keys_are_refused() {
        for (length, is_key) in [(0, false), (15, false), (16, true), (4096, true), (4097, false)] {
            assert_eq!(Key::new(vec![1; length]).is_some(), is_key, "{length}");
        }
    }
}
