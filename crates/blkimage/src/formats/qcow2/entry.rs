//! Interpretation of L2 entries.

use crate::formats::fields::Entry;
use crate::formats::two_level::{HostOffset, Invalid, MapKind, Rules};
use crate::layer::Stored;

/// The parameters of an image that determine how an entry is interpreted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub version: u32,
    pub cluster_bits: u32,
    pub is_extended: bool,
    pub has_data_file: bool,
}

impl Rules for Geometry {
    const ENTRY: Entry = Entry::Be64;

    fn cluster_bits(&self) -> u32 {
        self.cluster_bits
    }

    /// An L2 table fills a cluster.
    fn l2_bits(&self) -> u32 {
        if self.is_extended { self.cluster_bits - 4 } else { self.cluster_bits - 3 }
    }

    fn entry_words(&self) -> u64 {
        if self.is_extended { 2 } else { 1 }
    }

    fn l2_offset(entry: u64) -> u64 {
        entry & OFFSET_MASK
    }

    fn check_l2_offset(&self, offset: u64) -> Result<(), Invalid> {
        if self.is_aligned(offset) { Ok(()) } else { Err("is not aligned to a cluster") }
    }

    fn piece(&self, words: &[u64], guest: u64) -> Result<(MapKind, u64), Invalid> {
        let (entry, bitmap) = match (self.is_extended, words) {
            (true, [entry, bitmap, ..]) => (*entry, *bitmap),
            (false, [entry, ..]) => (*entry, 0),
            _ => return Err("is cut off"),
        };
        let within = guest & (self.cluster_size() - 1);
        let unit = (within >> self.unit_bits()) as u32;
        let (kind, units) = self.classify(entry, bitmap, guest - within, unit)?;
        let skip = within - (u64::from(unit) << self.unit_bits());
        let length = (u64::from(units) << self.unit_bits()) - skip;
        let kind = match kind {
            MapKind::Data(host) => MapKind::Data(HostOffset(host.0 + skip)),
            other => other,
        };
        Ok((kind, length))
    }
}

impl Geometry {
    /// Returns the binary logarithm of the smallest unit that an entry describes, in bytes.
    pub fn unit_bits(&self) -> u32 {
        if self.is_extended { self.cluster_bits - 5 } else { self.cluster_bits }
    }

    /// Returns the number of units in a cluster.
    pub fn units(&self) -> u32 {
        if self.is_extended { 32 } else { 1 }
    }

    pub fn is_aligned(&self, offset: u64) -> bool {
        offset & (self.cluster_size() - 1) == 0
    }

    /// Classifies the units of an entry from `unit` on. Returns their kind and number.
    ///
    /// `guest` is the guest offset of the cluster. `bitmap` is 0 without extended entries.
    pub fn classify(
        &self,
        entry: u64,
        bitmap: u64,
        guest: u64,
        unit: u32,
    ) -> Result<(MapKind, u32), Invalid> {
        let (offset, has_host, is_zero) = match self.place(entry) {
            Place::Compressed(_) if self.has_data_file => {
                return Err("compressed cluster in an image with an external data file");
            }
            Place::Compressed(stored) => {
                return Ok((MapKind::Compressed(stored), self.units() - unit));
            }
            Place::Host { offset, is_zero } => (offset, true, is_zero),
            Place::None { is_zero } => (0, false, is_zero),
        };
        if has_host && !self.is_aligned(offset) {
            return Err("host offset is not aligned to a cluster");
        }
        if has_host && self.has_data_file && offset != guest {
            return Err("host offset in the external data file is not the guest offset");
        }
        let data = MapKind::Data(HostOffset(offset + (u64::from(unit) << self.unit_bits())));
        if self.is_extended {
            return classify_unit(bitmap, unit, has_host.then_some(data));
        }
        if is_zero {
            return if self.version < 3 {
                Err("zero flag in an image of version 2")
            } else {
                Ok((MapKind::Zero, 1))
            };
        }
        Ok((if has_host { data } else { MapKind::Unallocated }, 1))
    }

    /// Returns the place that an entry names, whether or not a cluster may be there.
    pub fn place(&self, entry: u64) -> Place {
        if entry & COMPRESSED != 0 {
            return Place::Compressed(self.compressed(entry));
        }
        let offset = entry & OFFSET_MASK;
        let is_zero = !self.is_extended && entry & ZERO != 0;
        // Offset 0 of an external data file is a place like any other.
        let is_host_0 = self.has_data_file && entry & COPIED != 0 && !is_zero;
        if offset != 0 || is_host_0 {
            Place::Host { offset, is_zero }
        } else {
            Place::None { is_zero }
        }
    }

    fn compressed(&self, entry: u64) -> Stored {
        let sector_bits = self.cluster_bits - 8;
        let shift = 62 - sector_bits;
        let offset = entry & ((1 << shift) - 1);
        let sectors = ((entry >> shift) & ((1 << sector_bits) - 1)) + 1;
        Stored { offset, length: sectors * SECTOR - offset % SECTOR }
    }
}

/// The place that an L2 entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Compressed(Stored),
    /// A cluster at this offset, which is said to be zero if `is_zero`.
    Host {
        offset: u64,
        is_zero: bool,
    },
    None {
        is_zero: bool,
    },
}

/// Classifies subclusters by a bitmap, which shows for each of 32 whether it is allocated (low half) or
/// zero (high half).
fn classify_unit(bitmap: u64, unit: u32, data: Option<MapKind>) -> Result<(MapKind, u32), Invalid> {
    let (allocated, zero) = (bitmap as u32, (bitmap >> 32) as u32);
    if allocated & zero != 0 {
        return Err("subcluster is both allocated and zero");
    }
    if data.is_none() && allocated != 0 {
        return Err("subcluster is allocated in a cluster that is not");
    }
    let run = |bits: u32| (bits >> unit).trailing_ones().min(32 - unit);
    let is_set = |bits: u32| (bits >> unit) & 1 == 1;
    Ok(match data {
        Some(data) if is_set(allocated) => (data, run(allocated)),
        _ if is_set(zero) => (MapKind::Zero, run(zero)),
        _ => (MapKind::Unallocated, run(!(allocated | zero))),
    })
}

/// Bits of L1 and L2 entries that hold the offset.
pub(super) const OFFSET_MASK: u64 = 0x00ff_ffff_ffff_fe00;

/// The cluster or table has a reference count of 1.
pub(super) const COPIED: u64 = 1 << 63;
pub(super) const COMPRESSED: u64 = 1 << 62;
pub(super) const ZERO: u64 = 1;

/// Unit of the length of compressed clusters in bytes, for every cluster size.
const SECTOR: u64 = 512;

/// Bits of entries that must be 0. Of compressed clusters, there are none.
pub(super) const L1_RESERVED: u64 = 0x7f00_0000_0000_01ff;
pub(super) const L2_RESERVED: u64 = 0x3f00_0000_0000_01fe;
