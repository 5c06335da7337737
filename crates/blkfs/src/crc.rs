//! CRC-32C with the initial values that file systems use.

use crc_fast::{CrcAlgorithm, Digest};

/// Returns the state of CRC-32C after `bytes`, from the state `seed` on. Nothing is inverted: the usual CRC-32C is
/// `!crc32c(!0, bytes)`.
pub(crate) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(seed));
    digest.update(bytes);
    !(digest.finalize() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the catalogue of CRCs, and a split anywhere.
    #[test]
    fn check_value() {
        let bytes = b"123456789";
        assert_eq!(!crc32c(!0, bytes), 0xe306_9283);
        for split in 0..bytes.len() {
            let (head, rest) = bytes.split_at(split);
            assert_eq!(!crc32c(crc32c(!0, head), rest), 0xe306_9283);
        }
        assert_eq!(crc32c(0x1234_5678, b""), 0x1234_5678);
    }
}
