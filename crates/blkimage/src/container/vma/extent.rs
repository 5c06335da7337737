//! An extent of a VMA archive: a header of 512 bytes, and the stored blocks of up to 59 clusters.

use super::header::{BLOCK, Header, is_sum, u64_at};

/// A cluster in an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    pub device: u8,
    pub number: u32,
    /// The blocks that are stored, from the lowest bit on. Others are zero.
    pub mask: u16,
}

impl Cluster {
    /// Returns the number of bytes that are stored.
    pub fn stored(self) -> u64 {
        u64::from(self.mask.count_ones()) * BLOCK
    }
}

/// Returns the clusters of an extent in the order of their bytes. Fails with the reason if its header is invalid.
pub(super) fn clusters(
    header: &Header,
    bytes: &[u8; EXTENT],
) -> Result<Vec<Cluster>, &'static str> {
    if !bytes.starts_with(b"VMAE") {
        return Err("has something else in the place of an extent");
    }
    if bytes[8..24] != header.uuid {
        return Err("has an extent of another archive");
    }
    if !is_sum(bytes, 24) {
        return Err("has an extent whose header does not match its MD5");
    }
    let mut clusters = Vec::with_capacity(MOST);
    for index in 0..MOST {
        let info = u64_at(bytes, 40 + 8 * index);
        let (mask, device, number) = ((info >> 48) as u16, (info >> 32) as u8, info as u32);
        if info == 0 {
            continue;
        }
        let Some(known) = header.devices.iter().find(|known| known.id == device) else {
            return Err("has a cluster of an unknown device");
        };
        if known.is_disk() && u64::from(number) >= known.clusters() {
            return Err("has a cluster past the end of its device");
        }
        clusters.push(Cluster { device, number, mask });
    }
    let blocks: u32 = clusters.iter().map(|cluster| cluster.mask.count_ones()).sum();
    match u32::from(u16::from_be_bytes([bytes[6], bytes[7]])) == blocks {
        true => Ok(clusters),
        false => Err("has an extent of another number of blocks than it states"),
    }
}

/// Size of the header of an extent, and the largest number of clusters in one.
pub(super) const EXTENT: usize = 512;
pub(super) const MOST: usize = 59;
