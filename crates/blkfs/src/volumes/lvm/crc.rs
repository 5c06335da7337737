//! The checksum of LVM2: CRC-32 with an initial value of its own, which is not inverted at the end.

use crc_fast::{CrcAlgorithm, Digest};

/// Returns the checksum of pieces of bytes, one after the other.
pub(super) fn crc(pieces: &[&[u8]]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32IsoHdlc, INITIAL);
    pieces.iter().for_each(|piece| digest.update(piece));
    !(digest.finalize() as u32)
}

const INITIAL: u64 = 0xf597_a6cf;
