//! Superblocks: the offsets of their copies, their fields and their defects.

use std::fmt;
use std::sync::Arc;

use blkimage::Source;

use crate::bytes::{array_at, u8_at, u16_at, u32_at, u64_at};
use crate::checksum::{Checksum, ChecksumType, MAX_SIZE, Summer};
use crate::error::{Error, Result};
use crate::tree::{MAX_LEVEL, Parent, TreeRoot};
use crate::uuid::Uuid;

/// Content of a superblock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Superblock {
    /// UUID of the file system.
    pub fsid: Uuid,
    /// UUID of the file system in tree blocks, usually the same as `fsid`.
    pub metadata_uuid: Uuid,
    /// Number of the last committed transaction.
    pub generation: u64,
    /// Name given by the user, without trailing zeros.
    pub label: Vec<u8>,
    /// Type of all checksums.
    pub checksum_type: ChecksumType,
    /// Bytes covered by one data checksum.
    pub sector_size: u32,
    /// Size of a tree block in bytes.
    pub node_size: u32,
    /// Size of all devices in bytes.
    pub total_bytes: u64,
    /// Bytes in use, each counted once regardless of mirrors.
    pub bytes_used: u64,
    /// Number of devices of the file system.
    pub device_count: u64,
    /// Features that a reader must support, as a bit mask.
    pub incompatible: u64,
    /// Features that a writer must support, as a bit mask.
    pub compatible_read_only: u64,
    /// Device of this superblock.
    pub device: DeviceItem,
    pub(crate) root: TreeRoot,
    pub(crate) chunk_root: TreeRoot,
    /// Tree of log trees, if any.
    pub(crate) log_root: Option<TreeRoot>,
    pub(crate) system_chunks: Vec<u8>,
    /// Features that readers and writers may ignore, as a bit mask.
    compatible: u64,
    flags: u64,
    /// Whole superblock, for comparison with other copies.
    content: Arc<[u8]>,
}

/// A file system's description of one of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceItem {
    /// Number of the device.
    pub id: u64,
    /// Size of the device in bytes.
    pub total_bytes: u64,
    /// Bytes of the device allocated to chunks.
    pub bytes_used: u64,
    /// UUID of the device.
    pub uuid: Uuid,
    /// UUID of the file system that the device was made for. A seed has another one.
    pub fsid: Uuid,
}

impl DeviceItem {
    /// Returns `None` if `bytes` is too short.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            id: u64_at(bytes, 0)?,
            total_bytes: u64_at(bytes, 0x8)?,
            bytes_used: u64_at(bytes, 0x10)?,
            uuid: Uuid(array_at(bytes, 0x42)?),
            fsid: Uuid(array_at(bytes, 0x52)?),
        })
    }
}

/// Defect of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuperblockDefect {
    /// Cannot be read.
    Unreadable(String),
    /// Has no magic number.
    Magic,
    /// The stored checksum does not match the content.
    Checksum {
        /// Stored checksum.
        expected: Checksum,
        /// Checksum of the content.
        computed: Checksum,
    },
    /// Contains the offset of another place.
    Address(u64),
    /// Belongs to another file system.
    Fsid(Uuid),
    /// Is older than the newest one.
    Generation {
        /// Generation of the newest one.
        expected: u64,
        /// Generation found.
        found: u64,
    },
    /// Differs from the newest one: of the same transaction in a field that all copies share, or of
    /// any transaction in one that identifies the device or the format.
    Differs {
        /// Offset of the first different byte.
        offset: usize,
    },
    /// Has an invalid field.
    Invalid(String),
    /// Uses an unsupported feature.
    Unsupported(String),
}

impl fmt::Display for SuperblockDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            Self::Magic => f.write_str("has no magic number"),
            Self::Checksum { expected, computed } => {
                write!(f, "has the checksum {expected}, its content {computed}")
            }
            Self::Address(found) => write!(f, "says that it lies at {found}"),
            Self::Fsid(found) => write!(f, "is of the file system {found}"),
            Self::Generation { expected, found } => {
                write!(f, "has generation {found}, the newest one {expected}")
            }
            Self::Differs { offset } => {
                write!(f, "differs from the newest one, from byte {offset} of it on")
            }
            Self::Invalid(reason) => f.write_str(reason),
            Self::Unsupported(what) => write!(f, "uses {what}, which is not supported"),
        }
    }
}

/// Superblocks of one device by copy. `None` if the device is too short for a copy.
pub(crate) type Copies = [Option<Result<Superblock, SuperblockDefect>>; OFFSETS.len()];

/// Reads all superblocks of a device.
pub(crate) fn read_copies(source: &dyn Source) -> Copies {
    OFFSETS.map(|offset| {
        let end = offset + SIZE as u64;
        (end <= source.size()).then(|| {
            let mut bytes = vec![0; SIZE];
            match source.read_exact_at(&mut bytes, offset) {
                Ok(()) => Superblock::parse(&bytes, offset),
                Err(error) => Err(SuperblockDefect::Unreadable(error.to_string())),
            }
        })
    })
}

/// Returns the newest intact superblock of a device.
///
/// # Errors
///
/// Fails if there is none. The error describes the first defective one.
pub(crate) fn newest(copies: &Copies, name: &str) -> Result<Superblock> {
    let intact = copies.iter().flatten().filter_map(|copy| copy.as_ref().ok());
    if let Some(newest) =
        intact.reduce(|best, it| if it.generation > best.generation { it } else { best })
    {
        return Ok(newest.clone());
    }
    let mut defects = OFFSETS.iter().zip(copies).filter_map(|(offset, copy)| match copy {
        Some(Err(defect)) if *defect != SuperblockDefect::Magic => Some((*offset, defect)),
        _ => None,
    });
    match defects.next() {
        None => Err(Error::NotBtrfs { name: name.to_owned(), has_partitions: false }),
        Some((_, SuperblockDefect::Unsupported(what))) => {
            Err(Error::Unsupported(format!("{name}: {what}")))
        }
        Some((offset, defect)) => {
            Err(Error::Superblock { name: name.to_owned(), offset, defect: defect.to_string() })
        }
    }
}

/// Returns whether any copy of a superblock has its magic number, intact or not.
///
/// # Errors
///
/// Fails if the source cannot be read where a superblock may be.
pub fn has_magic(source: &dyn Source) -> blkimage::Result<bool> {
    for offset in OFFSETS {
        if offset + SIZE as u64 > source.size() {
            break;
        }
        let mut magic = [0; MAGIC.len()];
        source.read_exact_at(&mut magic, offset + MAGIC_OFFSET as u64)?;
        if magic == MAGIC {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Superblock {
    /// Reads the newest intact superblock of a device. `name` is the device's name in errors.
    ///
    /// # Errors
    ///
    /// Fails if no superblock is intact.
    pub fn read(source: &dyn Source, name: &str) -> Result<Self> {
        newest(&read_copies(source), name)
    }

    /// Parses a superblock that was read at `offset`.
    fn parse(bytes: &[u8], offset: u64) -> Result<Self, SuperblockDefect> {
        if array_at(bytes, MAGIC_OFFSET) != Some(MAGIC) {
            return Err(SuperblockDefect::Magic);
        }
        let number = u16_at(bytes, 0xc4).unwrap_or_default();
        let Some(checksum_type) = ChecksumType::from_raw(number) else {
            return Err(SuperblockDefect::Unsupported(format!("checksum type {number}")));
        };
        let summer = Summer::new(checksum_type);
        let expected = Checksum::new(&bytes[..summer.size()]);
        let computed = summer.sum(&bytes[MAX_SIZE..]);
        if expected != computed {
            return Err(SuperblockDefect::Checksum { expected, computed });
        }
        let address = u64_at(bytes, 0x30).unwrap_or_default();
        if address != offset {
            return Err(SuperblockDefect::Address(address));
        }
        let parsed = Self::fields(bytes, checksum_type);
        let superblock = parsed.ok_or_else(|| invalid("is too short"))?;
        superblock.validate()?;
        Ok(superblock)
    }

    fn fields(bytes: &[u8], checksum_type: ChecksumType) -> Option<Self> {
        let root = |at: usize, level: usize, generation: u64| {
            Some(TreeRoot {
                logical: u64_at(bytes, at)?,
                level: u8_at(bytes, level)?,
                generation,
                parent: Parent::Superblock,
            })
        };
        let generation = u64_at(bytes, 0x48)?;
        let incompatible = u64_at(bytes, 0xbc)?;
        let fsid = Uuid(array_at(bytes, 0x20)?);
        let own_uuid = incompatible & METADATA_UUID != 0;
        let label: [u8; MAX_LABEL] = array_at(bytes, 0x12b)?;
        // `validate` rejects a length that is too large.
        let system_size = u32_at(bytes, 0xa0)? as usize;
        Some(Self {
            fsid,
            metadata_uuid: if own_uuid { Uuid(array_at(bytes, 0x23b)?) } else { fsid },
            generation,
            label: label.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
            checksum_type,
            sector_size: u32_at(bytes, 0x90)?,
            node_size: u32_at(bytes, 0x94)?,
            total_bytes: u64_at(bytes, 0x70)?,
            bytes_used: u64_at(bytes, 0x78)?,
            device_count: u64_at(bytes, 0x88)?,
            incompatible,
            compatible_read_only: u64_at(bytes, 0xb4)?,
            device: DeviceItem::parse(bytes.get(0xc9..)?)?,
            root: root(0x50, 0xc6, generation)?,
            chunk_root: root(0x58, 0xc7, u64_at(bytes, 0xa4)?)?,
            // A log belongs to the next transaction, which was not committed.
            log_root: Some(root(0x60, 0xc8, generation.checked_add(1)?)?)
                .filter(|it| it.logical != 0),
            system_chunks: bytes
                .get(0x32b..0x32b + MAX_SYSTEM_CHUNKS)?
                .get(..system_size)
                .unwrap_or_default()
                .to_vec(),
            compatible: u64_at(bytes, 0xac)?,
            flags: u64_at(bytes, 0x38)?,
            content: bytes.into(),
        })
    }

    /// Returns the offset of the first byte that differs from another copy. Ignores the fields that
    /// may differ: the checksum, the address and the device. Also ignores logs unless this is the
    /// first copy, because they are written only there.
    pub(crate) fn difference(&self, other: &Self) -> Option<usize> {
        let own = [0..MAX_SIZE, 0x30..0x38, 0xc9..0xc9 + DEVICE_ITEM];
        let logs = [0x60..0x70, 0xc8..0xc9];
        let is_first = u64_at(&self.content, 0x30) == Some(OFFSETS[0]);
        let logs = if is_first { &[][..] } else { &logs[..] };
        let pairs = self.content.iter().zip(&*other.content).enumerate();
        let mut common =
            pairs.filter(|(offset, _)| !own.iter().chain(logs).any(|own| own.contains(offset)));
        common.find(|(_, (one, other))| one != other).map(|(offset, _)| offset)
    }

    /// Returns the offset of the first byte that differs from another copy on the same device, of the
    /// fields that no transaction changes: the sizes of blocks, the type of checksums, and the number
    /// and UUIDs of the device. A device has the number 0 until it has replaced another one, and then
    /// gets the number and the UUID of that.
    pub(crate) fn difference_of_identity(&self, other: &Self) -> Option<usize> {
        let device = [0xc9..0xd1, 0x10b..0x11b];
        let fixed = [0x90..0xa0, 0xc4..0xc6, 0x11b..0x12b];
        let device = if self.device.id == 0 { &[][..] } else { &device[..] };
        let mut offsets = fixed.into_iter().chain(device.iter().cloned()).flatten();
        offsets.find(|&offset| self.content[offset] != other.content[offset])
    }

    /// Returns whether the device may be the seed of another file system.
    pub fn is_seed(&self) -> bool {
        self.flags & SEEDING != 0
    }

    fn validate(&self) -> Result<(), SuperblockDefect> {
        let is_size = |size: u32| size.is_power_of_two() && (4 << 10..=64 << 10).contains(&size);
        if !is_size(self.sector_size) {
            return Err(invalid(format!("has sectors of {} bytes", self.sector_size)));
        }
        if !is_size(self.node_size) || self.node_size < self.sector_size {
            return Err(invalid(format!("has tree blocks of {} bytes", self.node_size)));
        }
        if self.system_chunks.is_empty() {
            return Err(invalid("has no system chunks, or more than fit"));
        }
        self.validate_fields()?;
        let roots = [Some(self.root), Some(self.chunk_root), self.log_root];
        for root in roots.into_iter().flatten() {
            if root.level > MAX_LEVEL || !root.logical.is_multiple_of(self.sector_size.into()) {
                return Err(invalid(format!(
                    "has a tree of level {} at {}",
                    root.level, root.logical
                )));
            }
        }
        if let Some(what) = self.unsupported() {
            return Err(SuperblockDefect::Unsupported(what));
        }
        Ok(())
    }

    /// Fails if a field has a value that the kernel refuses to mount.
    fn validate_fields(&self) -> Result<(), SuperblockDefect> {
        let field = |at| u32_at(&self.content, at).unwrap_or_default();
        let (leaf_size, stripe_size) = (field(0x98), field(0x9c));
        if leaf_size != self.node_size {
            return Err(invalid(format!("has leaves of {leaf_size} bytes")));
        }
        if !stripe_size.is_power_of_two() {
            return Err(invalid(format!("has stripes of {stripe_size} bytes")));
        }
        if self.device_count == 0 {
            return Err(invalid("has no devices"));
        }
        if self.bytes_used < 6 * u64::from(self.node_size) {
            return Err(invalid(format!("has {} bytes in use", self.bytes_used)));
        }
        if self.label.len() == MAX_LABEL {
            return Err(invalid("has a label without an end"));
        }
        if self.flags & !KNOWN_FLAGS != 0 {
            return Err(invalid(format!(
                "has the flags {:#x}, not all of which are known",
                self.flags
            )));
        }
        if self.chunk_root.generation > self.generation {
            return Err(invalid("has a chunk tree newer than itself"));
        }
        let device = &self.device;
        if device.fsid != self.metadata_uuid {
            return Err(invalid(format!("has a device of the file system {}", device.fsid)));
        }
        if device.total_bytes == 0 || device.bytes_used > device.total_bytes {
            let DeviceItem { total_bytes, bytes_used, .. } = device;
            return Err(invalid(format!("has {bytes_used} of {total_bytes} bytes in use")));
        }
        Ok(())
    }

    /// Returns the first incompatible feature that is not supported.
    fn unsupported(&self) -> Option<String> {
        let unknown = self.incompatible & !KNOWN;
        if unknown == 0 {
            return None;
        }
        let bit = unknown.trailing_zeros();
        let name = REFUSED.iter().find(|(known, _)| *known == bit);
        Some(match name {
            Some((_, name)) => format!("the feature {name}"),
            None => format!("the unknown incompatible feature {bit}"),
        })
    }

    /// Returns the names of the incompatible and read-only compatible features in use.
    pub fn features(&self) -> Vec<&'static str> {
        let named = |flags: u64, names: &[(u32, &'static str)]| {
            let set = names.iter().filter(|(bit, _)| flags >> bit & 1 == 1);
            set.map(|(_, name)| *name).collect::<Vec<_>>()
        };
        let mut features = named(self.incompatible, &FEATURES);
        features.extend(named(self.compatible_read_only, &READ_ONLY_FEATURES));
        features
    }

    /// Returns whether there may be unknown items.
    pub(crate) fn has_unknown_features(&self) -> bool {
        self.compatible != 0 || self.compatible_read_only >> READ_ONLY_FEATURES.len() != 0
    }

    pub(crate) fn has_mixed_groups(&self) -> bool {
        self.incompatible & MIXED_GROUPS != 0
    }

    pub(crate) fn has_skinny_metadata(&self) -> bool {
        self.incompatible & SKINNY_METADATA != 0
    }

    pub(crate) fn has_free_space_tree(&self) -> bool {
        self.compatible_read_only & FREE_SPACE_TREE != 0
    }

    /// Returns whether the free space tree is valid.
    pub(crate) fn has_valid_free_space_tree(&self) -> bool {
        self.has_free_space_tree() && self.compatible_read_only & FREE_SPACE_TREE_VALID != 0
    }

    /// Returns whether block groups have a tree of their own.
    pub(crate) fn has_block_group_tree(&self) -> bool {
        self.compatible_read_only & BLOCK_GROUP_TREE != 0
    }
}

fn invalid(reason: impl Into<String>) -> SuperblockDefect {
    SuperblockDefect::Invalid(reason.into())
}

/// Size of a superblock in bytes.
pub(crate) const SIZE: usize = 4096;

/// Offsets of the copies on a device.
pub(crate) const OFFSETS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

const MAGIC: [u8; 8] = *b"_BHRfS_M";
const MAGIC_OFFSET: usize = 0x40;
const MAX_SYSTEM_CHUNKS: usize = 2048;
const METADATA_UUID: u64 = 1 << 10;
const MIXED_GROUPS: u64 = 1 << 2;
const SKINNY_METADATA: u64 = 1 << 8;
const FREE_SPACE_TREE: u64 = 1 << 0;
const FREE_SPACE_TREE_VALID: u64 = 1 << 1;
const BLOCK_GROUP_TREE: u64 = 1 << 3;

/// Size of a label in bytes, including at least one zero at its end.
const MAX_LABEL: usize = 256;

/// Size of a device item in bytes.
const DEVICE_ITEM: usize = 0x62;

/// Supported flags: written, relocated, errors seen, seed, dump of metadata in two versions. A file
/// system in the middle of a change by btrfstune has other flags and is not mounted.
const SEEDING: u64 = 1 << 32;
const KNOWN_FLAGS: u64 = 0b111 | SEEDING | 0b11 << 33;

/// Supported incompatible features, named as in /sys/fs/btrfs/features.
const FEATURES: [(u32, &str); 13] = [
    (0, "mixed_backref"),
    (1, "default_subvol"),
    (2, "mixed_groups"),
    (3, "compress_lzo"),
    (4, "compress_zstd"),
    (5, "big_metadata"),
    (6, "extended_iref"),
    (7, "raid56"),
    (8, "skinny_metadata"),
    (9, "no_holes"),
    (10, "metadata_uuid"),
    (11, "raid1c34"),
    (16, "simple_quota"),
];

/// Named features that are not supported.
const REFUSED: [(u32, &str); 4] =
    [(12, "zoned"), (13, "extent_tree_v2"), (14, "raid_stripe_tree"), (17, "remap_tree")];

const READ_ONLY_FEATURES: [(u32, &str); 4] =
    [(0, "free_space_tree"), (1, "free_space_tree_valid"), (2, "verity"), (3, "block_group_tree")];

const KNOWN: u64 = {
    let mut known = 0;
    let mut index = 0;
    while index < FEATURES.len() {
        known |= 1 << FEATURES[index].0;
        index += 1;
    }
    known
};
