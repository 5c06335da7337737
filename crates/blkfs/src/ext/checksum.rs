//! The checksums of metadata.

use super::superblock::{Superblock, incompat, ro_compat};
use crate::crc::crc32c;

/// How a file system protects its metadata.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    kind: Kind,
    /// The state of CRC-32C that all checksums begin with, except of superblocks.
    seed: u32,
    /// The state of CRC-16 after the UUID.
    seed16: u16,
    has_wide_descriptors: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    /// CRC-16 of group descriptors (`gdt_csum`, also called `uninit_bg`).
    Descriptors,
    /// CRC-32C of everything (`metadata_csum`).
    Metadata,
}

/// A checksum of bytes, and the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Check {
    name: &'static str,
    pub computed: u32,
    pub stored: u32,
}

impl Sums {
    pub fn new(superblock: &Superblock) -> Self {
        let kind = if superblock.ro_compat(ro_compat::METADATA_CSUM) {
            Kind::Metadata
        } else if superblock.ro_compat(ro_compat::GDT_CSUM) {
            Kind::Descriptors
        } else {
            Kind::None
        };
        let seed = match superblock.incompat(incompat::CSUM_SEED) {
            true => superblock.checksum_seed,
            false => crc32c(!0, &superblock.uuid),
        };
        let has_wide_descriptors = superblock.descriptor_size > 32;
        Self { kind, seed, seed16: crc16(!0, &superblock.uuid), has_wide_descriptors }
    }

    /// Returns whether all metadata has checksums.
    pub fn has_metadata(&self) -> bool {
        self.kind == Kind::Metadata
    }

    /// Returns the state that checksums of what belongs to an inode begin with.
    pub fn inode_seed(&self, number: u64, generation: u32) -> u32 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&(number as u32).to_le_bytes());
        bytes[4..].copy_from_slice(&generation.to_le_bytes());
        crc32c(self.seed, &bytes)
    }

    /// Checks a group descriptor.
    pub fn descriptor(&self, group: u64, bytes: &[u8]) -> Option<Check> {
        let (head, rest) = bytes.split_at_checked(0x1e)?;
        let (stored, tail) = rest.split_first_chunk()?;
        let stored = u16::from_le_bytes(*stored).into();
        let number = (group as u32).to_le_bytes();
        match self.kind {
            Kind::None => None,
            Kind::Descriptors => {
                let mut crc = crc16(crc16(self.seed16, &number), head);
                if self.has_wide_descriptors {
                    crc = crc16(crc, tail);
                }
                Some(Check { name: "crc16", computed: crc.into(), stored })
            }
            Kind::Metadata => {
                let crc = crc32c(crc32c(crc32c(self.seed, &number), head), &[0; 2]);
                Some(Check::low(crc32c(crc, tail), stored))
            }
        }
    }

    /// Checks a bitmap, of whose checksum group descriptors of 32 bytes only have the low half.
    pub fn bitmap(&self, bytes: &[u8], stored: u32) -> Option<Check> {
        let computed = crc32c(self.seed, bytes);
        self.has_metadata().then(|| match self.has_wide_descriptors {
            true => Check::new(computed, stored),
            false => Check::low(computed, stored & 0xffff),
        })
    }

    /// Checks a block of extended attributes.
    pub fn attributes(&self, block: u64, bytes: &[u8]) -> Option<Check> {
        let seed = crc32c(self.seed, &block.to_le_bytes());
        self.has_metadata().then(|| Check::within(seed, bytes, 16)).flatten()
    }

    /// Checks the block of multiple mount protection.
    pub fn mmp(&self, bytes: &[u8]) -> Option<Check> {
        self.has_metadata().then(|| Check::behind(self.seed, bytes, 1020)).flatten()
    }

    /// Checks an inode, with `scratch` for a copy.
    pub fn inode(&self, number: u64, bytes: &[u8], scratch: &mut Vec<u8>) -> Option<Check> {
        let has_high = bytes.len() > 0x84 && u16::from_le_bytes([bytes[0x80], bytes[0x81]]) >= 4;
        scratch.clear();
        scratch.extend_from_slice(&(number as u32).to_le_bytes());
        scratch.extend_from_slice(bytes.get(0x64..0x68)?);
        scratch.extend_from_slice(bytes);
        let mut take = |at: usize| {
            let field = scratch.get_mut(at + 8..)?.first_chunk_mut::<2>()?;
            Some(u32::from(u16::from_le_bytes(std::mem::take(field))))
        };
        let low = take(0x7c)?;
        let high = if has_high { Some(take(0x82)?) } else { None };
        let computed = crc32c(self.seed, scratch);
        Some(match high {
            Some(high) => Check::new(computed, high << 16 | low),
            None => Check::low(computed, low),
        })
    }
}

impl Check {
    pub const fn new(computed: u32, stored: u32) -> Self {
        Self { name: "crc32c", computed, stored }
    }

    pub const fn low(computed: u32, stored: u32) -> Self {
        Self { name: "low half of crc32c", computed: computed & 0xffff, stored }
    }

    /// Checks bytes whose checksum of 32 bits is at `at`, and counts as zeros.
    pub fn within(seed: u32, bytes: &[u8], at: usize) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(at)?;
        let (stored, tail) = rest.split_first_chunk()?;
        let crc = crc32c(crc32c(crc32c(seed, head), &[0; 4]), tail);
        Some(Self::new(crc, u32::from_le_bytes(*stored)))
    }

    /// Checks the bytes before `at`, where the checksum is.
    pub fn behind(seed: u32, bytes: &[u8], at: usize) -> Option<Self> {
        let (covered, rest) = bytes.split_at_checked(at)?;
        let stored = rest.first_chunk()?;
        Some(Self::new(crc32c(seed, covered), u32::from_le_bytes(*stored)))
    }

    /// Checks a superblock.
    pub fn superblock(bytes: &[u8]) -> Option<Self> {
        Self::behind(!0, bytes, 1020)
    }

    /// Turns the order of the bytes of the stored checksum.
    pub const fn big_endian(self) -> Self {
        Self { stored: self.stored.swap_bytes(), ..self }
    }

    pub const fn is_match(&self) -> bool {
        self.computed == self.stored
    }

    pub fn reason(&self) -> String {
        format!("{} {:#x}, stored {:#x}", self.name, self.computed, self.stored)
    }
}

/// Returns the state of CRC-16 after `bytes`, from the state `crc` on: the reflected polynomial 0xa001.
fn crc16(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte),
            |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0xa001 } else { crc >> 1 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the catalogue of CRCs: CRC-16/ARC and CRC-16/MODBUS.
    #[test]
    fn check_values() {
        assert_eq!(crc16(0, b"123456789"), 0xbb3d);
        assert_eq!(crc16(!0, b"123456789"), 0x4b37);
    }

    #[test]
    fn stored_values_count_as_zeros_or_end_the_bytes() {
        let mut bytes = *b"12345678....9";
        let crc = crc32c(!0, b"12345678\0\0\0\09");
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        assert!(Check::within(!0, &bytes, 8).unwrap().is_match());
        let check = Check::behind(!0, &bytes, 8).unwrap();
        assert_eq!((check.computed, check.stored), (crc32c(!0, b"12345678"), crc));
        assert_eq!(Check::behind(!0, &bytes, 10), None);
    }
}
