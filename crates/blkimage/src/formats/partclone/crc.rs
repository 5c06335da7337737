//! The CRC-32 of partclone: the register of an ordinary one, stored without its last step.

use crc_fast::{CrcAlgorithm, Digest};

/// Returns the register after these bytes.
pub(super) fn register(seed: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32IsoHdlc, seed.into());
    digest.update(bytes);
    !(digest.finalize() as u32)
}

/// The register before the first byte.
pub(super) const SEED: u32 = u32::MAX;
