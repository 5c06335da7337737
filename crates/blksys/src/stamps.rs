//! The identity of a file, and what changes with its content.

use rustix::fs::{FileType, Stat};

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// A regular file.
    Regular,
    /// A block device.
    BlockDevice,
    /// A folder.
    Directory,
    /// A pipe, with or without a name.
    Pipe,
    /// Anything else.
    Other,
}

impl From<FileType> for NodeType {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::Regular,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Directory => Self::Directory,
            FileType::Fifo => Self::Pipe,
            _ => Self::Other,
        }
    }
}

/// The identity of a file, and the attributes that change with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The type of the file.
    pub node_type: NodeType,
    /// Device and inode.
    pub identity: (u64, u64),
    /// Major and minor number, if this is a device.
    pub device: (u32, u32),
    /// Size in bytes. 0 for a device.
    pub size: u64,
    /// Time of the last modification, in seconds since 1970 and nanoseconds. Users can set it.
    pub modified: (i64, u64),
    /// Time of the last change of content or attributes. Only the system sets it.
    pub changed: (i64, u64),
}

#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Self {
        Self {
            node_type: NodeType::from(FileType::from_raw_mode(stat.st_mode)),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            device: (rustix::fs::major(stat.st_rdev as _), rustix::fs::minor(stat.st_rdev as _)),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}
