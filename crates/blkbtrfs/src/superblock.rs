//! Superblocks: where their copies lie, what they say, what may be wrong with them.

use std::fmt;
use std::sync::Arc;

use blkimage::Source;

use crate::bytes::{array_at, u8_at, u16_at, u32_at, u64_at};
use crate::checksum::{Checksum, ChecksumType, MAX_SIZE, Summer};
use crate::error::{Error, Result};
use crate::tree::{MAX_LEVEL, Parent, TreeRoot};
use crate::uuid::Uuid;

/// What a superblock says.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// Names the file system.
    pub fsid: Uuid,
    /// What tree blocks name it by: usually the same.
    pub metadata_uuid: Uuid,
    /// Counts transactions.
    pub generation: u64,
    /// Name that people gave it, without the zeros behind it.
    pub label: Vec<u8>,
    /// What its checksums are.
    pub checksum_type: ChecksumType,
    /// Bytes that a data checksum covers.
    pub sector_size: u32,
    /// Bytes of a tree block.
    pub node_size: u32,
    /// Size of all devices.
    pub total_bytes: u64,
    /// Bytes in use, each counted once however many mirrors it has.
    pub bytes_used: u64,
    /// Devices there should be.
    pub device_count: u64,
    /// Features that a reader must know.
    pub incompatible: u64,
    /// Features that a writer must know.
    pub compatible_read_only: u64,
    /// The device that it lies on.
    pub device: DeviceItem,
    pub(crate) root: TreeRoot,
    pub(crate) chunk_root: TreeRoot,
    /// The tree of log trees, if there are any.
    pub(crate) log_root: Option<TreeRoot>,
    pub(crate) system_chunks: Vec<u8>,
    /// Features that nobody has to know.
    compatible: u64,
    flags: u64,
    /// All of it, for comparison with other copies.
    content: Arc<[u8]>,
}

/// What a file system says of one of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceItem {
    /// Its number.
    pub id: u64,
    /// Its size.
    pub total_bytes: u64,
    /// Bytes of it that chunks have.
    pub bytes_used: u64,
    /// Names the device.
    pub uuid: Uuid,
    /// Names the file system that it was made for: another one for a seed.
    pub fsid: Uuid,
}

impl DeviceItem {
    /// `None` if the bytes are too few.
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

/// What is wrong with a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuperblockDefect {
    /// It cannot be read.
    Unreadable(String),
    /// Something else is there.
    Magic,
    /// It is not what was written.
    Checksum {
        /// What it says.
        expected: Checksum,
        /// What it is.
        computed: Checksum,
    },
    /// It belongs elsewhere.
    Address(u64),
    /// It is of another file system.
    Fsid(Uuid),
    /// It is older than the newest one.
    Generation {
        /// The newest one's.
        expected: u64,
        /// Its own.
        found: u64,
    },
    /// It differs from the newest one of the same transaction, in a field that all have in common.
    Differs {
        /// Where the first byte that differs is.
        offset: usize,
    },
    /// A field that cannot be.
    Invalid(String),
    /// Something that is not known here.
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

/// The superblocks of one device, by copy. `None` where the device is too short to have one.
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

/// The newest intact one of a device's superblocks.
///
/// # Errors
///
/// There is none; the error says what is wrong with the one that should be there.
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
        None => Err(Error::NotBtrfs { name: name.to_owned() }),
        Some((_, SuperblockDefect::Unsupported(what))) => {
            Err(Error::Unsupported(format!("{name}: {what}")))
        }
        Some((offset, defect)) => {
            Err(Error::Superblock { name: name.to_owned(), offset, defect: defect.to_string() })
        }
    }
}

/// Whether a superblock begins at 64 KiB of `source`, intact or not.
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
    /// The newest intact superblock of a device, which errors call `name`.
    ///
    /// # Errors
    ///
    /// There is no intact one.
    pub fn read(source: &dyn Source, name: &str) -> Result<Self> {
        newest(&read_copies(source), name)
    }

    /// Parses the superblock that was read from `offset`.
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
        // A length that is too long shows in `validate`.
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
            // A log belongs to the transaction that was not committed.
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

    /// Where the first byte is that differs from another copy, of those that all copies on all devices
    /// have in common: all but the checksum, the address, and what is said of the device. Logs are
    /// written to the first copy of a device alone.
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

    /// Whether its device may be the seed of another file system.
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

    /// Fails if a field is one that the kernel does not mount.
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

    /// The first incompatible feature that is not known here.
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

    /// Names of the incompatible and read-only compatible features in use.
    pub fn features(&self) -> Vec<&'static str> {
        let named = |flags: u64, names: &[(u32, &'static str)]| {
            let set = names.iter().filter(|(bit, _)| flags >> bit & 1 == 1);
            set.map(|(_, name)| *name).collect::<Vec<_>>()
        };
        let mut features = named(self.incompatible, &FEATURES);
        features.extend(named(self.compatible_read_only, &READ_ONLY_FEATURES));
        features
    }

    /// Whether there may be items that are not known here.
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

    /// Whether the free space tree says what is free.
    pub(crate) fn has_valid_free_space_tree(&self) -> bool {
        self.has_free_space_tree() && self.compatible_read_only & FREE_SPACE_TREE_VALID != 0
    }

    /// Whether block groups have a tree of their own.
    pub(crate) fn has_block_group_tree(&self) -> bool {
        self.compatible_read_only & BLOCK_GROUP_TREE != 0
    }
}

fn invalid(reason: impl Into<String>) -> SuperblockDefect {
    SuperblockDefect::Invalid(reason.into())
}

/// Bytes of a superblock.
pub(crate) const SIZE: usize = 4096;

/// Where its copies lie on a device.
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

/// Bytes of a label, with at least one zero at its end.
const MAX_LABEL: usize = 256;

/// Bytes of what is said of a device.
const DEVICE_ITEM: usize = 0x62;

/// Flags: written, relocated, errors seen, seed, dump of metadata in two versions. Those of changes
/// that btrfstune has begun are not mounted.
const SEEDING: u64 = 1 << 32;
const KNOWN_FLAGS: u64 = 0b111 | SEEDING | 0b11 << 33;

/// The incompatible features that are understood, as /sys/fs/btrfs/features names them.
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

/// Those that have names and are refused.
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
