//! CRC-32C over structures that contain their own checksum.

use crc_fast::{CrcAlgorithm, Digest};

use crate::formats::fields::array;

/// Returns whether the checksum at byte 4 of `bytes` is the checksum of all bytes, computed with zeros in its
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
        self.syndrome(first) == 0
    }

    /// Returns the bits in which the checksum in the first part differs from the checksum of all parts.
    pub fn syndrome(&self, first: &[u8]) -> u32 {
        self.0.finalize() as u32 ^ u32::from_le_bytes(array(first, AT))
    }

    /// Returns the bit of a structure of `length` bytes that, if it alone is flipped, leads to this
    /// syndrome. Bits are counted from the least significant one of the first byte on.
    pub fn flipped_bit(syndrome: u32, length: u64) -> Option<u64> {
        if syndrome.is_power_of_two() {
            return Some(AT as u64 * 8 + u64::from(syndrome.trailing_zeros()));
        }
        // Each bit that follows a flipped one divides the difference by x.
        let mut difference = POLYNOMIAL;
        for bit in (0..length * 8).rev() {
            if difference == syndrome {
                return Some(bit);
            }
            difference = (difference >> 1) ^ ((difference & 1) * POLYNOMIAL);
        }
        None
    }
}

/// CRC-32C, with the bits in reverse order.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const AT: usize = 4;
const SIZE: usize = 4;
