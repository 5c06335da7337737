//! Checksums that a file states.

use crate::formats::fields::array;

/// A checksum: its type, its size in bits, and room for 128 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    None,
    Crc32(u32),
    /// One of this type, which is not known.
    Unknown(u32),
}

impl Sum {
    /// Decodes a checksum of at least [`SIZE`](Self::SIZE) bytes.
    pub fn read(bytes: &[u8]) -> Self {
        let number = |at| u32::from_be_bytes(array(bytes, at));
        match (number(0), number(4)) {
            (0, _) => Self::None,
            (CRC32, 32) => Self::Crc32(number(8)),
            (other, _) => Self::Unknown(other),
        }
    }

    pub const SIZE: usize = 136;
}

const CRC32: u32 = 2;
