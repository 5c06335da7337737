//! The qcow2 header, validated before anything else is read.

use super::bitmaps::Directory;
use super::entry::Geometry;
use super::extensions::{self, Extensions, Found};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::decompress::Compression;
use crate::formats::empty;
use crate::formats::fields::{Entry, array};
use crate::formats::table_cache::Table;
use crate::formats::two_level::{L1Table, Rules};
use crate::storage::HostFile;

/// A validated header.
#[derive(Debug)]
pub(crate) struct Header {
    /// Virtual size in bytes, rounded down to sectors as in QEMU.
    pub size: u64,
    pub l1: L1Table,
    pub compression: Compression,
    pub snapshots: SnapshotTable,
    /// Directory of bitmaps, if it is in use.
    pub(super) bitmaps: Option<Directory>,
    /// Whether a program that does not know bitmaps wrote to an image with bitmaps.
    pub(super) has_stale_bitmaps: bool,
    /// Name of the backing file, if any.
    pub backing_file: Option<Vec<u8>>,
    /// Recorded format of the backing file.
    pub backing_format: Option<Vec<u8>>,
    /// Name of the external data file, always present if one is used.
    pub data_file: Option<Vec<u8>>,
    pub(super) refcounts: RefcountTable,
    /// Place of the header of the encryption, if there is one.
    pub(super) encryption: Option<Found>,
    /// Whether the image was not closed, so that its reference counts may be too low.
    pub(super) is_dirty: bool,
    /// Whether QEMU marked the image as corrupt.
    pub is_corrupt: bool,
    version: u32,
    cluster_bits: u32,
    is_extended: bool,
}

/// The location of the snapshot table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotTable {
    pub offset: u64,
    pub count: u32,
}

/// The location of the reference counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefcountTable {
    pub offset: u64,
    /// Length of the table in clusters.
    pub clusters: u32,
    /// Binary logarithm of the width of a count in bits, at most 6.
    pub order: u32,
}

/// The purpose of reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads the content. Fails if it is encrypted or cannot be complete.
    Content,
    /// Checks the structure. Fails only if other structures cannot be found.
    Check,
}

impl Header {
    /// Reads the header to read the content of the image.
    pub fn read(file: &HostFile) -> Result<Self> {
        Self::read_for(file, Purpose::Content)
    }

    pub(super) fn read_for(file: &HostFile, purpose: Purpose) -> Result<Self> {
        let bytes = file.read_head(FIXED_SIZE)?;
        if !bytes.starts_with(b"QFI\xfb") {
            return Err(file.error(ErrorKind::Format, "is not a qcow2 image").at(0));
        }
        if bytes.len() < V2_SIZE as usize {
            return Err(file.corrupt("header is cut off"));
        }
        let fixed = Fixed::parse(&bytes);
        fixed.check_version(file, bytes.len())?;
        fixed.check_clusters(file)?;
        let mut extensions = Extensions::default();
        let end = fixed.extensions_end();
        if fixed.incompatible & !KNOWN_INCOMPATIBLE != 0 {
            // The name of a feature is useful even if the rest of the extensions is invalid.
            let _ = extensions::read(file, fixed.header_length, end, &mut extensions);
            return Err(fixed.unknown_features(file, &extensions));
        }
        fixed.check_encryption(file, purpose)?;
        let compression = fixed.compression(file)?;
        fixed.check_refcounts(file, purpose)?;
        extensions::read(file, fixed.header_length, end, &mut extensions)?;

        fixed.check_encryption_header(file, &extensions)?;
        let has_data_file = fixed.incompatible & DATA_FILE != 0;
        if has_data_file && extensions.data_file.is_none() {
            return Err(file.corrupt("external data file is used and not named"));
        }
        if !has_data_file && fixed.autoclear & DATA_FILE_RAW != 0 {
            let reason = "external data file is said to be raw, and there is none";
            return Err(file.corrupt(reason).at(88));
        }
        let header = Self {
            size: fixed.size / SECTOR * SECTOR,
            l1: L1Table { offset: fixed.l1_offset, entries: u64::from(fixed.l1_entries) },
            compression,
            snapshots: SnapshotTable {
                offset: fixed.snapshots_offset,
                count: fixed.snapshots_count,
            },
            bitmaps: extensions.bitmaps.filter(|_| fixed.autoclear & BITMAPS != 0),
            has_stale_bitmaps: extensions.bitmaps.is_some() && fixed.autoclear & BITMAPS == 0,
            backing_file: fixed.read_backing_file(file)?,
            backing_format: extensions.backing_format,
            data_file: if has_data_file { extensions.data_file } else { None },
            refcounts: RefcountTable {
                offset: fixed.refcounts_offset,
                clusters: fixed.refcounts_clusters,
                order: fixed.refcount_order,
            },
            encryption: extensions.encryption,
            is_dirty: fixed.incompatible & DIRTY != 0,
            is_corrupt: fixed.incompatible & CORRUPT != 0,
            version: fixed.version,
            cluster_bits: fixed.cluster_bits,
            is_extended: fixed.is_extended(),
        };
        match purpose {
            Purpose::Content => {
                header.check_l1(file, header.l1, header.size, L1_ENTRIES_AT)?;
                check_empty(file, header.l1, header.size)?;
            }
            Purpose::Check => {
                header.check_l1_size(file, header.l1, header.size, L1_ENTRIES_AT)?;
            }
        }
        Ok(header)
    }

    pub(super) fn geometry(&self) -> Geometry {
        Geometry {
            version: self.version,
            cluster_bits: self.cluster_bits,
            is_extended: self.is_extended,
            has_data_file: self.data_file.is_some(),
        }
    }

    /// Fails unless an L1 table is in the file and covers `size` bytes. `stated_at` is the offset of the field that
    /// holds its size.
    pub(super) fn check_l1(
        &self,
        file: &HostFile,
        l1: L1Table,
        size: u64,
        stated_at: u64,
    ) -> Result<()> {
        let needed = self.check_l1_size(file, l1, size, stated_at)?;
        let end = l1.offset.checked_add(needed * 8);
        if needed > 0 && end.is_none_or(|end| end > file.size()) {
            return Err(file.corrupt("L1 table lies past the end of the file").at(l1.offset));
        }
        Ok(())
    }

    /// Fails unless an L1 table is aligned and covers `size` bytes. Returns the number of entries that this takes.
    fn check_l1_size(
        &self,
        file: &HostFile,
        l1: L1Table,
        size: u64,
        stated_at: u64,
    ) -> Result<u64> {
        if l1.entries > MAX_L1_ENTRIES {
            return Err(file.corrupt("L1 table is larger than 32 MiB").at(stated_at));
        }
        let needed = size.div_ceil(1 << self.geometry().l1_span_bits());
        if needed > l1.entries {
            let reason = format!("L1 table is too small for the virtual size {size}");
            return Err(file.corrupt(reason).at(stated_at));
        }
        if !self.geometry().is_aligned(l1.offset) {
            return Err(file.corrupt("L1 table is not aligned to a cluster").at(l1.offset));
        }
        Ok(needed)
    }
}

/// Fails if a state of 0 bytes has L2 tables.
pub(super) fn check_empty(file: &HostFile, l1: L1Table, size: u64) -> Result<()> {
    let table = Table { offset: l1.offset, length: l1.entries * 8, entry: Entry::Be64 };
    empty::check_empty(file, size, table, |entry| Geometry::l2_offset(entry) != 0)
}

/// The fields of the header as stored.
struct Fixed {
    version: u32,
    backing_offset: u64,
    backing_size: u32,
    cluster_bits: u32,
    size: u64,
    encryption: u32,
    l1_entries: u32,
    l1_offset: u64,
    refcounts_offset: u64,
    refcounts_clusters: u32,
    snapshots_count: u32,
    snapshots_offset: u64,
    incompatible: u64,
    autoclear: u64,
    refcount_order: u32,
    header_length: u64,
    compression_type: u8,
}

impl Fixed {
    /// Parses `bytes`, which hold at least the fields of version 2.
    fn parse(bytes: &[u8]) -> Self {
        let mut padded = [0; FIXED_SIZE];
        padded[..bytes.len()].copy_from_slice(bytes);
        let word = |at: usize| u32::from_be_bytes(array(&padded, at));
        let long = |at: usize| u64::from_be_bytes(array(&padded, at));
        let version = word(4);
        let header_length = if version < 3 { V2_SIZE } else { u64::from(word(100)) };
        Self {
            version,
            backing_offset: long(8),
            backing_size: word(16),
            cluster_bits: word(20),
            size: long(24),
            encryption: word(32),
            l1_entries: word(L1_ENTRIES_AT as usize),
            l1_offset: long(40),
            refcounts_offset: long(REFCOUNTS_AT as usize),
            refcounts_clusters: word(56),
            snapshots_count: word(60),
            snapshots_offset: long(64),
            incompatible: if version < 3 { 0 } else { long(72) },
            autoclear: if version < 3 { 0 } else { long(88) },
            refcount_order: if version < 3 { V2_REFCOUNT_ORDER } else { word(96) },
            header_length,
            compression_type: if header_length > COMPRESSION_AT { padded[104] } else { 0 },
        }
    }

    fn check_version(&self, file: &HostFile, available: usize) -> Result<()> {
        match self.version {
            3 if (available as u64) < V3_SIZE => Err(file.corrupt("header is cut off")),
            3 if self.header_length < V3_SIZE || !self.header_length.is_multiple_of(8) => {
                let reason = format!("header length {} is not valid", self.header_length);
                Err(file.corrupt(reason).at(100))
            }
            2 | 3 => Ok(()),
            version => {
                let reason = format!("qcow2 version {version} is not known");
                Err(file.error(ErrorKind::Unsupported, reason).at(4))
            }
        }
    }

    fn check_clusters(&self, file: &HostFile) -> Result<()> {
        let bits = self.cluster_bits;
        if !(MIN_CLUSTER_BITS..=MAX_CLUSTER_BITS).contains(&bits) {
            let reason = format!("cluster size of {bits} bits is not between 9 and 21 bits");
            return Err(file.corrupt(reason).at(20));
        }
        if self.is_extended() && bits < MIN_EXTENDED_BITS {
            let reason = "clusters are too small for subclusters";
            return Err(file.corrupt(reason).at(20));
        }
        if self.header_length > self.cluster_size() {
            return Err(file.corrupt("header is larger than a cluster").at(100));
        }
        if self.backing_offset > self.cluster_size() {
            let reason = "backing file name does not lie in the first cluster";
            return Err(file.corrupt(reason).at(8));
        }
        Ok(())
    }

    fn check_encryption(&self, file: &HostFile, purpose: Purpose) -> Result<()> {
        let reason = match self.encryption {
            0 => return Ok(()),
            AES | LUKS if purpose == Purpose::Check => return Ok(()),
            AES => format!("is encrypted with AES, which is not read{DECRYPT}"),
            LUKS => format!("is encrypted with LUKS, which is not read{DECRYPT}"),
            method => format!("is encrypted with unknown method {method}"),
        };
        Err(file.error(ErrorKind::Unsupported, reason).at(32))
    }

    /// Fails if an image has a header of encryption and is not encrypted with LUKS, or the other way round.
    fn check_encryption_header(&self, file: &HostFile, extensions: &Extensions) -> Result<()> {
        match extensions.encryption {
            None if self.encryption == LUKS => {
                Err(file.corrupt("is encrypted and has no header of encryption").at(32))
            }
            Some(found) if self.encryption != LUKS => {
                let reason = "has a header of encryption and is not encrypted";
                Err(file.corrupt(reason).at(found.stated_at))
            }
            Some(found) if found.offset & (self.cluster_size() - 1) != 0 => {
                let reason = "header of encryption is not aligned to a cluster";
                Err(file.corrupt(reason).at(found.stated_at))
            }
            _ => Ok(()),
        }
    }

    fn compression(&self, file: &HostFile) -> Result<Compression> {
        let is_flagged = self.incompatible & COMPRESSION != 0;
        match (self.compression_type, is_flagged) {
            (0, false) => Ok(Compression::Deflate),
            (1, true) => Ok(Compression::Zstd),
            (0 | 1, _) => {
                let reason = "compression type and its incompatible feature bit contradict";
                Err(file.corrupt(reason).at(COMPRESSION_AT))
            }
            (other, _) => {
                let reason = format!("compression type {other} is not known");
                Err(file.error(ErrorKind::Unsupported, reason).at(COMPRESSION_AT))
            }
        }
    }

    /// Checks the location of the reference counts. QEMU does not open an image without them, except to check it.
    fn check_refcounts(&self, file: &HostFile, purpose: Purpose) -> Result<()> {
        if self.refcount_order > MAX_REFCOUNT_ORDER {
            return Err(file.corrupt("reference counts are wider than 64 bits").at(96));
        }
        if self.refcounts_clusters == 0 && purpose == Purpose::Content {
            return Err(file.corrupt("reference count table is missing").at(56));
        }
        let size = u64::from(self.refcounts_clusters) << self.cluster_bits;
        if size > MAX_REFCOUNT_TABLE {
            return Err(file.corrupt("reference count table is larger than 8 MiB").at(56));
        }
        if self.refcounts_offset & (self.cluster_size() - 1) != 0 {
            let reason = "reference count table is not aligned to a cluster";
            return Err(file.corrupt(reason).at(REFCOUNTS_AT));
        }
        if self.refcounts_offset > MAX_OFFSET - size {
            let reason = "reference count table lies past the largest offset";
            return Err(file.corrupt(reason).at(REFCOUNTS_AT));
        }
        Ok(())
    }

    fn unknown_features(&self, file: &HostFile, extensions: &Extensions) -> Error {
        let unknown = self.incompatible & !KNOWN_INCOMPATIBLE;
        let names: Vec<String> = (0..64)
            .filter(|bit| unknown >> bit & 1 == 1)
            .map(|bit| match extensions.incompatible_features.get(&bit) {
                Some(name) => format!("\"{name}\" (bit {bit})"),
                None => format!("bit {bit}"),
            })
            .collect();
        let reason = format!("uses unknown incompatible features: {}", names.join(", "));
        file.error(ErrorKind::Unsupported, reason).at(72)
    }

    /// Returns the end of the extensions, which is the start of the backing file name, if any.
    fn extensions_end(&self) -> u64 {
        if self.backing_offset == 0 { self.cluster_size() } else { self.backing_offset }
    }

    fn read_backing_file(&self, file: &HostFile) -> Result<Option<Vec<u8>>> {
        if self.backing_offset == 0 || self.backing_size == 0 {
            return Ok(None);
        }
        let size = u64::from(self.backing_size);
        if size > MAX_BACKING_NAME || size > self.cluster_size() - self.backing_offset {
            return Err(file.corrupt("backing file name is too long").at(16));
        }
        let mut name = vec![0; self.backing_size as usize];
        file.read_exact_at(&mut name, self.backing_offset)?;
        Ok(Some(name))
    }

    fn is_extended(&self) -> bool {
        self.incompatible & EXTENDED_L2 != 0
    }

    fn cluster_size(&self) -> u64 {
        1 << self.cluster_bits
    }
}

const V2_SIZE: u64 = 72;
const V3_SIZE: u64 = 104;
/// Size of all fields that are read. The last one is the compression type.
const FIXED_SIZE: usize = 105;
const L1_ENTRIES_AT: u64 = 36;
const REFCOUNTS_AT: u64 = 48;
const COMPRESSION_AT: u64 = 104;

/// Minimum size of a cluster as a power of two, as in QEMU.
/// Limit in bits.
const MIN_CLUSTER_BITS: u32 = 9;

/// Maximum size of a cluster as a power of two, as in QEMU. Clusters of 2 MiB need decompression buffers of 2 MiB.
/// Limit in bits.
const MAX_CLUSTER_BITS: u32 = 21;

/// 32 subclusters of at least a sector.
const MIN_EXTENDED_BITS: u32 = 14;

/// Maximum number of entries of an L1 table. QEMU refuses one of more than 32 MiB.
/// Limit in entries.
pub(super) const MAX_L1_ENTRIES: u64 = (32 << 20) / 8;

/// Limit of QEMU: counts of 64 bits.
const MAX_REFCOUNT_ORDER: u32 = 6;

/// Maximum size of the table of reference counts, as in QEMU. Only a check reads the table.
/// Limit in bytes.
const MAX_REFCOUNT_TABLE: u64 = 8 << 20;

/// Maximum length of a file in QEMU.
const MAX_OFFSET: u64 = i64::MAX as u64 >> 30 << 30;
/// Version 2 has counts of 16 bits.
const V2_REFCOUNT_ORDER: u32 = 4;

/// Maximum length of the name of a backing file, as in the specification.
/// Limit in bytes.
const MAX_BACKING_NAME: u64 = 1023;

/// QEMU counts virtual sizes in sectors.
pub(super) const SECTOR: u64 = 512;

/// The image was not closed. Only its reference counts may be wrong.
const DIRTY: u64 = 1 << 0;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;
const KNOWN_INCOMPATIBLE: u64 = DIRTY | CORRUPT | DATA_FILE | COMPRESSION | EXTENDED_L2;

/// Autoclear bits, which a writer clears if it does not support the feature.
const BITMAPS: u64 = 1 << 0;
const DATA_FILE_RAW: u64 = 1 << 1;

/// Methods of encryption.
const AES: u32 = 1;
const LUKS: u32 = 2;

/// Advice for encrypted images.
const DECRYPT: &str = ": have qemu-nbd decrypt it (--object secret), and read what that exports";
