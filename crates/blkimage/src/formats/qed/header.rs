//! The qed header, validated before anything else is read, and the rules for offsets.

use crate::error::{ErrorKind, Result};
use crate::formats::empty::check_empty;
use crate::formats::fields::{Entry, Head};
use crate::formats::table_cache::Table;
use crate::formats::two_level::{HostOffset, Invalid, L1Table, MapKind, Rules};
use crate::probe::Format;
use crate::storage::HostFile;

/// A validated header.
#[derive(Debug)]
pub(super) struct Header {
    pub geometry: Geometry,
    /// Virtual size in bytes.
    pub size: u64,
    pub l1: L1Table,
    /// Name of the backing file, if any, and its format if that is recorded.
    pub backing: Option<(Vec<u8>, Option<Format>)>,
    /// Whether the image was not closed.
    pub needs_check: bool,
}

/// The parameters of an image that determine which offsets are valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    cluster_bits: u32,
    /// Binary logarithm of the number of clusters in a table of either level.
    table_bits: u32,
    /// Size of the header in bytes. Tables and clusters are after it.
    header: u64,
    /// Size of the file in bytes, rounded down to clusters.
    end: u64,
}

impl Header {
    pub fn read(file: &HostFile) -> Result<Self> {
        if file.read_head(MAGIC.len())? != MAGIC {
            return Err(file.error(ErrorKind::Format, "is not a qed image").at(0));
        }
        let head = Head::read(file, 0, SIZE)?;
        let (features, size) = (head.le64(16), head.le64(48));
        if features & !KNOWN_FEATURES != 0 {
            let reason = format!("uses unknown features {:#x}", features & !KNOWN_FEATURES);
            return Err(file.error(ErrorKind::Unsupported, reason).at(16));
        }
        let geometry = Geometry::new(file, &head)?;
        if !size.is_multiple_of(SECTOR) {
            return Err(file.corrupt("virtual size is not a multiple of 512").at(48));
        }
        // QEMU computes this limit in 64 bits. Where it overflows, no image is read.
        let limit = 1_u64.checked_shl(geometry.l2_bits() + geometry.l1_span_bits()).unwrap_or(0);
        if size > limit.min(MAX_SIZE) {
            let reason = format!("virtual size {size} is larger than its tables can map");
            return Err(file.corrupt(reason).at(48));
        }
        let l1 = head.le64(40);
        if let Err(reason) = geometry.check_l2_offset(l1) {
            return Err(file.corrupt(format!("L1 table offset {l1:#x} {reason}")).at(40));
        }
        let table = Table { offset: l1, length: 8 << geometry.l2_bits(), entry: Entry::Le64 };
        check_empty(file, size, table, |entry| entry != 0)?;
        // Entries past the virtual size map no guest bytes.
        let entries = size.div_ceil(1 << geometry.l1_span_bits());
        Ok(Self {
            geometry,
            size,
            l1: L1Table { offset: l1, entries },
            backing: geometry.read_backing(file, &head, features)?,
            needs_check: features & NEED_CHECK != 0,
        })
    }
}

impl Geometry {
    fn new(file: &HostFile, head: &Head<'_>) -> Result<Self> {
        let (cluster, table, header) = (head.le32(4), head.le32(8), head.le32(12));
        if !cluster.is_power_of_two() || !CLUSTER_SIZES.contains(&cluster) {
            let reason = format!("cluster size {cluster} is not a power of 2 from 4 KiB to 64 MiB");
            return Err(file.corrupt(reason).at(4));
        }
        if !TABLE_SIZES.contains(&table) {
            let reason = format!("tables of {table} clusters are not read, only of 2, 4, 8 or 16");
            return Err(file.error(ErrorKind::Unsupported, reason).at(8));
        }
        if header.checked_mul(cluster).is_none() {
            return Err(file.corrupt("header is larger than 4 GiB").at(12));
        }
        let cluster_bits = cluster.ilog2();
        Ok(Self {
            cluster_bits,
            table_bits: table.ilog2(),
            header: u64::from(header) << cluster_bits,
            end: file.size() >> cluster_bits << cluster_bits,
        })
    }

    /// Fails unless a cluster can be at `offset`.
    fn check_cluster(&self, offset: u64) -> Result<(), Invalid> {
        match offset {
            _ if offset & (self.cluster_size() - 1) != 0 => Err("is not aligned to a cluster"),
            _ if offset < self.header => Err("lies in the header"),
            _ if offset >= self.end => Err("lies past the end of the file"),
            _ => Ok(()),
        }
    }

    fn read_backing(
        &self,
        file: &HostFile,
        head: &Head<'_>,
        features: u64,
    ) -> Result<Option<(Vec<u8>, Option<Format>)>> {
        let (offset, length) = (u64::from(head.le32(56)), head.le32(60));
        if features & BACKING_FILE == 0 {
            return Ok(None);
        }
        if offset + u64::from(length) > self.header {
            return Err(file.corrupt("backing file name does not lie in the header").at(56));
        }
        if length == 0 {
            return Ok(None);
        }
        let name = head.name("backing file", offset, length)?;
        Ok(Some((name, (features & BACKING_IS_RAW != 0).then_some(Format::Raw))))
    }
}

impl Rules for Geometry {
    const ENTRY: Entry = Entry::Le64;

    fn cluster_bits(&self) -> u32 {
        self.cluster_bits
    }

    fn l2_bits(&self) -> u32 {
        self.cluster_bits + self.table_bits - 3
    }

    /// Tables of both levels have one size.
    fn check_l2_offset(&self, offset: u64) -> Result<(), Invalid> {
        self.check_cluster(offset)?;
        let last = ((1 << self.table_bits) - 1) << self.cluster_bits;
        self.check_cluster(offset + last)
    }

    fn piece(&self, words: &[u64], guest: u64) -> Result<(MapKind, u64), Invalid> {
        let within = guest & (self.cluster_size() - 1);
        let kind = match words[0] {
            0 => MapKind::Unallocated,
            1 => MapKind::Zero,
            offset => {
                self.check_cluster(offset)?;
                MapKind::Data(HostOffset(offset + within))
            }
        };
        Ok((kind, self.cluster_size() - within))
    }
}

const MAGIC: &[u8] = b"QED\0";
/// Size of the fields that are read.
const SIZE: usize = 64;
const SECTOR: u64 = 512;

/// Limits of QEMU. It creates images with tables of one cluster, but does not open them.
const CLUSTER_SIZES: std::ops::RangeInclusive<u32> = 4 << 10..=64 << 20;
const TABLE_SIZES: [u32; 4] = [2, 4, 8, 16];
/// Maximum virtual size in QEMU.
const MAX_SIZE: u64 = i64::MAX as u64 >> 30 << 30;

const BACKING_FILE: u64 = 1 << 0;
/// The image was open for writing. If the writer crashed, some writes may be lost.
const NEED_CHECK: u64 = 1 << 1;
const BACKING_IS_RAW: u64 = 1 << 2;
const KNOWN_FEATURES: u64 = BACKING_FILE | NEED_CHECK | BACKING_IS_RAW;
