//! A disk in a file that can be read in any order, by the place of each cluster.

use super::extent::{EXTENT, MOST, clusters};
use super::header::{BLOCK, CLUSTER, Device, Header};
use crate::container::runs::Map;
use crate::error::{ErrorKind, Result, excerpt};
use crate::storage::HostFile;

/// Where the clusters of a disk are.
pub(super) struct Disk {
    size: u64,
    /// Where each cluster begins, in units of 512 bytes, and the mask of its blocks in the low 16 bits.
    places: Vec<u64>,
}

impl Disk {
    /// Reads the headers of all extents. Fails if one is invalid, or if a cluster is there twice or not at all.
    pub fn new(file: &HostFile, header: &Header, device: &Device) -> Result<Self> {
        let count = device.clusters();
        let shown = excerpt(&device.name);
        // An extent without a stored block has the most clusters.
        let most = (file.size() / EXTENT as u64).saturating_mul(MOST as u64);
        if count > MAX_CLUSTERS {
            let reason = format!("has the disk \"{shown}\" of more than {MAX_CLUSTERS} clusters");
            return Err(file.error(ErrorKind::Unsupported, reason));
        }
        if count > most {
            return Err(file.corrupt(format!("lacks clusters of the disk \"{shown}\"")));
        }
        let mut places = vec![0; count as usize];
        let mut at = header.size;
        while at < file.size() {
            let mut bytes = [0; EXTENT];
            if file.size() - at < EXTENT as u64 {
                return Err(file.corrupt("is cut off in an extent").at(at));
            }
            file.read_exact_at(&mut bytes, at)?;
            let found = clusters(header, &bytes).map_err(|reason| file.corrupt(reason).at(at))?;
            let start = at;
            at += EXTENT as u64;
            for cluster in found {
                if cluster.device == device.id {
                    let place = &mut places[cluster.number as usize];
                    if *place != 0 {
                        let number = cluster.number;
                        let reason = format!("has cluster {number} of the disk \"{shown}\" twice");
                        return Err(file.corrupt(reason).at(start));
                    }
                    *place = (at / 512) << 16 | u64::from(cluster.mask);
                }
                at += cluster.stored();
            }
            if at > file.size() {
                return Err(file.corrupt("is cut off in an extent").at(start));
            }
        }
        match places.iter().position(|place| *place == 0) {
            None => Ok(Self { size: device.size, places }),
            Some(number) => {
                Err(file.corrupt(format!("lacks cluster {number} of the disk \"{shown}\"")))
            }
        }
    }

    /// Returns where the block with the byte at `offset` is stored. `None` if it is zero.
    fn block(&self, offset: u64) -> Option<u64> {
        let place = self.places[(offset / CLUSTER) as usize];
        let (start, mask) = ((place >> 16) * 512, place as u16);
        let bit = 1 << (offset % CLUSTER / BLOCK);
        let before = u64::from((mask & (bit - 1)).count_ones());
        (mask & bit != 0).then_some(start + before * BLOCK)
    }
}

impl Map for Disk {
    fn size(&self) -> u64 {
        self.size
    }

    fn run(&self, offset: u64, limit: u64) -> (u64, Option<u64>) {
        let limit = limit.min(self.size.saturating_sub(offset));
        let first = self.block(offset);
        let mut length = BLOCK - offset % BLOCK;
        while length < limit {
            let next = self.block(offset + length);
            let follows = match (first, next) {
                (None, None) => true,
                (Some(first), Some(next)) => next == first + offset % BLOCK + length,
                _ => false,
            };
            if !follows {
                break;
            }
            length += BLOCK;
        }
        (length.min(limit), first.map(|first| first + offset % BLOCK))
    }
}

/// Maximum number of clusters of a disk in a VMA archive: 4 TiB. Each takes 8 bytes of memory.
/// Limit in clusters.
const MAX_CLUSTERS: u64 = 1 << 26;
