//! The qcow header, validated before anything else is read, and the rules for entries.

use crate::error::{ErrorKind, Result};
use crate::formats::empty::check_empty;
use crate::formats::fields::{Entry, Head, check_inside};
use crate::formats::table_cache::Table;
use crate::formats::two_level::{HostOffset, Invalid, L1Table, MapKind, Rules};
use crate::layer::Stored;
use crate::storage::HostFile;

/// A validated header.
#[derive(Debug)]
pub(super) struct Header {
    pub geometry: Geometry,
    /// Virtual size in bytes, rounded down to sectors as in QEMU.
    pub size: u64,
    pub l1: L1Table,
    /// Name of the backing file, if any. Its format is not recorded.
    pub backing: Option<Vec<u8>>,
}

/// The parameters of an image that determine how an entry is interpreted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    cluster_bits: u32,
    l2_bits: u32,
}

impl Header {
    pub fn read(file: &HostFile) -> Result<Self> {
        if file.read_head(MAGIC.len())? != MAGIC {
            return Err(file.error(ErrorKind::Format, "is not a qcow image").at(0));
        }
        let head = Head::read(file, 0, SIZE)?;
        let (version, size, encryption) = (head.be32(4), head.be64(24), head.be32(36));
        if version != 1 {
            let reason = format!("is a qcow image of version {version}, and not of version 1");
            return Err(file.error(ErrorKind::Unsupported, reason).at(4));
        }
        if encryption != 0 {
            let reason = "is encrypted, which is not read";
            return Err(file.error(ErrorKind::Unsupported, reason).at(36));
        }
        let geometry = Geometry::new(file, &head)?;
        if size < MIN_SIZE {
            return Err(file.corrupt(format!("virtual size {size} is too small")).at(24));
        }
        let entries = size.div_ceil(1 << geometry.l1_span_bits());
        if entries > MAX_L1_ENTRIES {
            return Err(file.corrupt(format!("virtual size {size} is too large")).at(24));
        }
        let l1 = L1Table { offset: head.be64(40), entries };
        check_inside(file, l1.offset, entries * 8, "L1 table")?;
        let size = size / SECTOR * SECTOR;
        let table = Table { offset: l1.offset, length: entries * 8, entry: Entry::Be64 };
        check_empty(file, size, table, |entry| entry != 0)?;
        let (name, length) = (head.be64(8), head.be32(16));
        let backing = (name != 0).then(|| head.name("backing file", name, length)).transpose()?;
        let backing = backing.filter(|name| !name.is_empty());
        Ok(Self { geometry, size, l1, backing })
    }
}

impl Geometry {
    fn new(file: &HostFile, head: &Head<'_>) -> Result<Self> {
        let [cluster_bits, l2_bits] = [head.bytes()[32], head.bytes()[33]].map(u32::from);
        if !CLUSTER_BITS.contains(&cluster_bits) {
            let reason =
                format!("cluster size of {cluster_bits} bits is not between 9 and 16 bits");
            return Err(file.corrupt(reason).at(32));
        }
        if !L2_BITS.contains(&l2_bits) {
            let reason = format!("L2 table of {l2_bits} bits is not between 6 and 13 bits");
            return Err(file.corrupt(reason).at(33));
        }
        Ok(Self { cluster_bits, l2_bits })
    }

    /// Interprets the entry of a compressed cluster: the offset in the lower bits, and above it the
    /// length in bytes.
    fn compressed(&self, entry: u64) -> Stored {
        let shift = 63 - self.cluster_bits;
        let length = (entry >> shift) & (self.cluster_size() - 1);
        Stored { offset: entry & ((1 << shift) - 1), length }
    }
}

impl Rules for Geometry {
    const ENTRY: Entry = Entry::Be64;

    fn cluster_bits(&self) -> u32 {
        self.cluster_bits
    }

    fn l2_bits(&self) -> u32 {
        self.l2_bits
    }

    /// Tables need no alignment, because they may follow compressed clusters. A table past the end is an
    /// error when it is read.
    fn check_l2_offset(&self, _offset: u64) -> Result<(), Invalid> {
        Ok(())
    }

    fn piece(&self, words: &[u64], guest: u64) -> Result<(MapKind, u64), Invalid> {
        let within = guest & (self.cluster_size() - 1);
        let kind = match words[0] {
            0 => MapKind::Unallocated,
            entry if entry & COMPRESSED != 0 => match self.compressed(entry) {
                Stored { length: 0, .. } => return Err("compressed cluster has no bytes"),
                stored => MapKind::Compressed(stored),
            },
            offset if !offset.is_multiple_of(SECTOR) => {
                return Err("host offset is not aligned to a sector");
            }
            offset => MapKind::Data(HostOffset(offset + within)),
        };
        Ok((kind, self.cluster_size() - within))
    }
}

const MAGIC: &[u8] = b"QFI\xfb";
const SIZE: usize = 48;
/// QEMU counts virtual sizes and host offsets in sectors.
const SECTOR: u64 = 512;

/// Limits of QEMU.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=16;
const L2_BITS: std::ops::RangeInclusive<u32> = 6..=13;
const MIN_SIZE: u64 = 2;

/// Maximum number of entries of an L1 table, as in QEMU. They take 2 GiB of the file, and are read in windows.
/// Limit in entries.
const MAX_L1_ENTRIES: u64 = i32::MAX as u64 / 8;

const COMPRESSED: u64 = 1 << 63;
