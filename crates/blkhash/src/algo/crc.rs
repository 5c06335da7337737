//! Cyclic redundancy checks, through crc-fast (carry-less multiplication where the CPU has it).

use crc_fast::CrcAlgorithm;

use super::Hash;

/// Any CRC; its digest is the value in big endian, as wide as the digest asked for.
#[derive(Clone)]
pub(super) struct Crc(crc_fast::Digest);

impl Crc {
    pub(super) fn crc32() -> Self {
        Self(crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc))
    }

    pub(super) fn crc32c() -> Self {
        Self(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    pub(super) fn crc64() -> Self {
        Self(crc_fast::Digest::new(CrcAlgorithm::Crc64Ecma182))
    }

    pub(super) fn crc64nvme() -> Self {
        Self(crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme))
    }
}

impl Hash for Crc {
    fn update(&mut self, input: &[u8]) {
        self.0.update(input);
    }

    fn finalize_into(self, digest: &mut [u8]) {
        let value = self.0.finalize().to_be_bytes();
        digest.copy_from_slice(&value[value.len() - digest.len()..]);
    }
}
