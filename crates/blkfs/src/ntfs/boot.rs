//! The boot sector: sizes, and where the MFT begins.

use crate::bytes::{le16_at, le64_at, u8_at};

/// The fields of a boot sector that a reader needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boot {
    /// Size of a sector in bytes.
    pub sector: u64,
    /// Size of a cluster in bytes.
    pub cluster: u64,
    /// Number of clusters.
    pub clusters: u64,
    /// Size of the volume in bytes. The backup boot sector follows it.
    pub size: u64,
    /// First cluster of the MFT.
    pub mft: u64,
    /// First cluster of the MFT mirror.
    pub mirror: u64,
    /// Size of a record of the MFT in bytes.
    pub record: usize,
    /// Serial number.
    pub serial: u64,
}

/// Number of bytes of a boot sector that have a meaning, whatever the size of a sector.
pub(super) const BOOT_SIZE: usize = 512;

/// Returns whether the bytes claim to be a boot sector of NTFS.
pub(super) fn is_ntfs(sector: &[u8]) -> bool {
    sector.get(3..11) == Some(b"NTFS    ")
}

/// Returns whether the bytes end as a boot sector does.
pub(super) fn is_marked(sector: &[u8]) -> bool {
    sector.get(510..512) == Some(&[0x55, 0xaa])
}

impl Boot {
    /// Reads a boot sector. Fails if its fields contradict each other.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        if !is_ntfs(bytes) {
            return Err("no signature of NTFS");
        }
        Self::fields(bytes).ok_or("impossible sizes in the boot sector")
    }

    fn fields(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BOOT_SIZE] = bytes.first_chunk()?;
        let sector = u64::from(le16_at(bytes, 11)?);
        let per_cluster = match u8_at(bytes, 13)? {
            exponent @ 0xe0.. => 1u64 << (256 - u32::from(exponent)),
            count => u64::from(count),
        };
        let cluster = sector.checked_mul(per_cluster)?;
        let is_valid = (256..=4096).contains(&sector)
            && sector.is_power_of_two()
            && (sector..=MAX_CLUSTER).contains(&cluster)
            && cluster.is_power_of_two();
        // Fields that FAT has and NTFS does not.
        let is_zero =
            [14..21, 22..24, 32..36].iter().all(|it| bytes[it.clone()] == [0; 7][..it.len()]);
        if !is_valid || !is_zero {
            return None;
        }
        let sectors = le64_at(bytes, 40)?;
        // The backup boot sector has to have an offset, too.
        let size = sectors.checked_mul(sector).filter(|size| *size < 1 << 62)?;
        let clusters = size / cluster;
        let (mft, mirror) = (le64_at(bytes, 48)?, le64_at(bytes, 56)?);
        let record = Self::record_size(u8_at(bytes, 64)?, cluster)?;
        let serial = le64_at(bytes, 72)?;
        let is_inside = mft < clusters && mirror < clusters;
        is_inside.then_some(Self { sector, cluster, clusters, size, mft, mirror, record, serial })
    }

    /// Returns the size of records: a number of clusters, or the exponent of a number of bytes if negative.
    fn record_size(stored: u8, cluster: u64) -> Option<usize> {
        let size = match stored.cast_signed() {
            0 => return None,
            count @ 1.. => u64::from(count.unsigned_abs()).checked_mul(cluster)?,
            exponent => 1u64.checked_shl(exponent.unsigned_abs().into())?,
        };
        let is_valid = (512..=MAX_RECORD).contains(&size) && size.is_power_of_two();
        is_valid.then_some(size as usize)
    }

    /// Returns whether another boot sector describes the same volume. The serial number and the code may differ, because
    /// programs that change them leave the backup alone.
    pub fn agrees(&self, other: &Self) -> bool {
        *self == Self { serial: self.serial, ..other.clone() }
    }
}

/// Maximum size of a cluster, as in Windows. Limit in bytes.
const MAX_CLUSTER: u64 = 2 << 20;

/// Maximum size of a record of the MFT or a block of an index.
/// Limit in bytes.
pub(super) const MAX_RECORD: u64 = 64 << 10;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a boot sector of a volume of 4 MiB.
    pub fn sector() -> Vec<u8> {
        let mut bytes = vec![0; BOOT_SIZE];
        bytes[3..11].copy_from_slice(b"NTFS    ");
        bytes[11..13].copy_from_slice(&512u16.to_le_bytes());
        bytes[13] = 8;
        bytes[40..48].copy_from_slice(&8191u64.to_le_bytes());
        bytes[48..56].copy_from_slice(&4u64.to_le_bytes());
        bytes[56..64].copy_from_slice(&500u64.to_le_bytes());
        bytes[64] = 0xf6;
        bytes[510..].copy_from_slice(&[0x55, 0xaa]);
        bytes
    }

    #[test]
    fn sizes() {
        let boot = Boot::parse(&sector()).unwrap();
        assert_eq!((boot.cluster, boot.clusters, boot.record), (4096, 1023, 1024));
        let mut bytes = sector();
        // 2^8 sectors of 512 bytes, of which there are 31, in which the MFT must be.
        bytes[13] = 0xf8;
        bytes[56..64].copy_from_slice(&30u64.to_le_bytes());
        bytes[64] = 0xf4;
        let boot = Boot::parse(&bytes).unwrap();
        assert_eq!((boot.cluster, boot.clusters, boot.record), (128 << 10, 31, 4096));
    }

    #[test]
    fn impossible_sizes() {
        for (at, value) in [
            (11, 1),
            (12, 0x20),
            (13, 0),
            (13, 3),
            (13, 0xe0),
            (14, 1),
            (22, 1),
            (47, 0xff),
            (55, 1),
            (64, 0),
            (64, 0x80),
            (64, 3),
        ] {
            let mut bytes = sector();
            bytes[at] = value;
            assert!(Boot::parse(&bytes).is_err(), "{at}");
        }
        assert!(Boot::parse(&sector()[..40]).is_err());
        assert!(Boot::parse(&[]).is_err());
    }

    #[test]
    fn another_serial_number_is_the_same_volume() {
        let (mut bytes, boot) = (sector(), Boot::parse(&sector()).unwrap());
        bytes[72] = 1;
        assert!(boot.agrees(&Boot::parse(&bytes).unwrap()));
        bytes[48] = 5;
        assert!(!boot.agrees(&Boot::parse(&bytes).unwrap()));
    }
}
