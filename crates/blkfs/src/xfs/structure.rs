//! The structures that have a header: their names, magic numbers, and where the fields are that identify a block.

/// A kind of structure that is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    Superblock,
    Agf,
    Agi,
    Agfl,
    Bnobt,
    Cntbt,
    Inobt,
    Finobt,
    Rmapbt,
    Refcountbt,
    Inode,
    Bmbt,
    DirectoryData,
    DirectoryLeaf,
    DirectoryNode,
    DirectoryFree,
    AttributeLeaf,
    AttributeNode,
    AttributeValue,
    Symlink,
    Dquot,
    LogRecord,
}

/// Places of the fields of a header of version 5 in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub crc: usize,
    pub uuid: Option<usize>,
    /// The address of the block in sectors of 512 bytes.
    pub address: Option<usize>,
    pub owner: Option<Field>,
    pub lsn: usize,
}

/// Place and width of an integer.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    U16(usize),
    U32(usize),
    U64(usize),
}

impl Field {
    pub fn get(self, bytes: &[u8]) -> Option<u64> {
        use crate::bytes::{be16_at, be32_at, be64_at};
        match self {
            Self::U16(at) => be16_at(bytes, at).map(u64::from),
            Self::U32(at) => be32_at(bytes, at).map(u64::from),
            Self::U64(at) => be64_at(bytes, at),
        }
    }

    /// Overwrites the integer with the lower bits of `value`, if it is within the bytes.
    pub fn set(self, bytes: &mut [u8], value: u64) {
        let (at, width) = match self {
            Self::U16(at) => (at, 2),
            Self::U32(at) => (at, 4),
            Self::U64(at) => (at, 8),
        };
        if let Some(place) = bytes.get_mut(at..at + width) {
            place.copy_from_slice(&value.to_be_bytes()[8 - width..]);
        }
    }
}

impl Structure {
    pub const COUNT: usize = Self::LogRecord as usize + 1;

    pub const ALL: [Self; Self::COUNT] = [
        Self::Superblock,
        Self::Agf,
        Self::Agi,
        Self::Agfl,
        Self::Bnobt,
        Self::Cntbt,
        Self::Inobt,
        Self::Finobt,
        Self::Rmapbt,
        Self::Refcountbt,
        Self::Inode,
        Self::Bmbt,
        Self::DirectoryData,
        Self::DirectoryLeaf,
        Self::DirectoryNode,
        Self::DirectoryFree,
        Self::AttributeLeaf,
        Self::AttributeNode,
        Self::AttributeValue,
        Self::Symlink,
        Self::Dquot,
        Self::LogRecord,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::Agf => "AGF",
            Self::Agi => "AGI",
            Self::Agfl => "AGFL",
            Self::Bnobt => "bnobt block",
            Self::Cntbt => "cntbt block",
            Self::Inobt => "inobt block",
            Self::Finobt => "finobt block",
            Self::Rmapbt => "rmapbt block",
            Self::Refcountbt => "refcountbt block",
            Self::Inode => "inode",
            Self::Bmbt => "bmbt block",
            Self::DirectoryData => "directory data block",
            Self::DirectoryLeaf => "directory leaf block",
            Self::DirectoryNode => "directory node block",
            Self::DirectoryFree => "directory free index block",
            Self::AttributeLeaf => "attribute leaf block",
            Self::AttributeNode => "attribute node block",
            Self::AttributeValue => "attribute value block",
            Self::Symlink => "symlink block",
            Self::Dquot => "dquot",
            Self::LogRecord => "log record",
        }
    }

    /// Returns the magic numbers that the structure may have. Those without any in version 4 have no header there.
    pub fn magic(self, is_v5: bool) -> &'static [u64] {
        let (v4, v5): (&[u64], &[u64]) = match self {
            Self::Superblock => (&[0x5846_5342], &[0x5846_5342]),
            Self::Agf => (&[0x5841_4746], &[0x5841_4746]),
            Self::Agi => (&[0x5841_4749], &[0x5841_4749]),
            Self::Agfl => (&[], &[0x5841_464c]),
            Self::Bnobt => (&[0x4142_5442], &[0x4142_3342]),
            Self::Cntbt => (&[0x4142_5443], &[0x4142_3343]),
            Self::Inobt => (&[0x4941_4254], &[0x4941_4233]),
            Self::Finobt => (&[0x4649_4254], &[0x4649_4233]),
            Self::Rmapbt => (&[], &[0x524d_4233]),
            Self::Refcountbt => (&[], &[0x5233_4643]),
            Self::Inode => (&[0x494e], &[0x494e]),
            Self::Bmbt => (&[0x424d_4150], &[0x424d_4133]),
            Self::DirectoryData => (&DIRECTORY_DATA_V4, &DIRECTORY_DATA_V5),
            Self::DirectoryLeaf => (&[0xd2f1, 0xd2ff], &[0x3df1, 0x3dff]),
            Self::DirectoryNode | Self::AttributeNode => (&[NODE_V4], &[NODE_V5]),
            Self::DirectoryFree => (&[0x5844_3246], &[0x5844_4633]),
            Self::AttributeLeaf => (&[0xfbee], &[0x3bee]),
            Self::AttributeValue => (&[], &[0x5841_524d]),
            Self::Symlink => (&[], &[0x5853_4c4d]),
            Self::Dquot => (&[0x4451], &[0x4451]),
            Self::LogRecord => (&[], &[]),
        };
        if is_v5 { v5 } else { v4 }
    }

    pub fn magic_field(self) -> Field {
        match self {
            Self::Inode | Self::Dquot => Field::U16(0),
            Self::DirectoryLeaf
            | Self::DirectoryNode
            | Self::AttributeLeaf
            | Self::AttributeNode => Field::U16(8),
            _ => Field::U32(0),
        }
    }

    pub fn header(self) -> Header {
        let header = |crc, uuid, address, owner, lsn| Header { crc, uuid, address, owner, lsn };
        match self {
            // The UUID of secondary superblocks is not compared when they are read.
            Self::Superblock => header(224, None, None, None, 240),
            Self::Agf => header(216, Some(64), None, Some(Field::U32(8)), 208),
            Self::Agi => header(312, Some(296), None, Some(Field::U32(8)), 320),
            Self::Agfl => header(32, Some(8), None, Some(Field::U32(4)), 24),
            Self::Bnobt
            | Self::Cntbt
            | Self::Inobt
            | Self::Finobt
            | Self::Rmapbt
            | Self::Refcountbt => header(52, Some(32), Some(16), Some(Field::U32(48)), 24),
            Self::Bmbt => header(64, Some(40), Some(24), Some(Field::U64(56)), 32),
            Self::Inode => header(100, Some(160), None, Some(Field::U64(152)), 112),
            Self::DirectoryData | Self::DirectoryFree => {
                header(4, Some(24), Some(8), Some(Field::U64(40)), 16)
            }
            Self::DirectoryLeaf
            | Self::DirectoryNode
            | Self::AttributeLeaf
            | Self::AttributeNode => header(12, Some(32), Some(16), Some(Field::U64(48)), 24),
            Self::AttributeValue | Self::Symlink => {
                header(12, Some(16), Some(40), Some(Field::U64(32)), 48)
            }
            Self::Dquot => header(108, Some(120), None, None, 112),
            Self::LogRecord => header(32, Some(304), None, None, 16),
        }
    }
}

/// Magic number of a node of a directory's or an attribute fork's tree.
pub const NODE_V4: u64 = 0xfebe;
pub const NODE_V5: u64 = 0x3ebe;

/// Magic numbers of a directory of one block, and of a data block of a larger one.
pub const DIRECTORY_DATA_V4: [u64; 2] = [0x5844_3242, 0x5844_3244];
pub const DIRECTORY_DATA_V5: [u64; 2] = [0x5844_4233, 0x5844_4433];
