//! CRC-32C over structures that contain their own checksum.

use crc_fast::{CrcAlgorithm, Digest};

/// Returns whether the checksum at byte 4 of `bytes` is that of all bytes, computed with zeros in its
/// place.
pub(super) fn matches(bytes: &[u8]) -> bool {
    let mut sum = Checksum::default();
    sum.start(bytes);
    sum.matches(bytes)
}

/// The checksum of a structure that is read in parts.
pub(super) struct Checksum(Digest);

impl Default for Checksum {
    fn default() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Checksum {
    /// Adds the first part, which contains the checksum.
    pub fn start(&mut self, first: &[u8]) {
        self.0.update(&first[..AT]);
        self.0.update(&[0; SIZE]);
        self.0.update(&first[AT + SIZE..]);
    }

    pub fn update(&mut self, next: &[u8]) {
        self.0.update(next);
    }

    /// Returns whether the checksum in the first part matches all parts.
    pub fn matches(&self, first: &[u8]) -> bool {
        first[AT..AT + SIZE] == (self.0.finalize() as u32).to_le_bytes()
    }
}

const AT: usize = 4;
const SIZE: usize = 4;
