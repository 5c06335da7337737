//! What a walk over a file system reports.

use std::ops::ControlFlow;

/// Number of an object within a file system: an inode, a record of the MFT, or another number that its reader chose.
/// A stream of a file besides its content has a number of its own.
pub type ObjectId = u64;

/// The parts of a file system that a walk reports. What is not wanted is not read if that saves time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Call [`Visitor::extent`] for every byte of the file system that has an owner.
    pub extents: bool,
    /// Verify checksums, and call [`Visitor::matched`] and [`Visitor::mismatch`].
    pub checks: bool,
    /// Call [`Visitor::entry`] for every name in a directory.
    pub names: bool,
}

/// Receives what a walk over a file system finds, in any order.
pub trait Visitor {
    /// Receives bytes and their owner. Extents of several owners may overlap: from files that share blocks, or of a
    /// damaged file system.
    fn extent(&mut self, extent: Extent);

    /// Receives the number and the bytes of structures of one kind whose checksums match.
    fn matched(&mut self, structure: &'static str, count: u64, bytes: u64);

    /// Receives a structure whose checksum does not match.
    fn mismatch(&mut self, mismatch: Mismatch);

    /// Receives a name in a directory.
    fn entry(&mut self, entry: Entry<'_>);

    /// Receives a part that could not be read or followed. What depends on it is not reported.
    fn problem(&mut self, problem: Problem);

    /// Called now and then with the number of bytes that were read since the last call. Stops the walk with `Break`.
    fn advance(&mut self, bytes: u64) -> ControlFlow<()>;
}

/// Bytes of a file system that have one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the file system in bytes.
    pub offset: u64,
    /// Length in bytes, not 0.
    pub length: u64,
    /// The owner of the first byte. Owners of the others follow in the order of their offsets.
    pub owner: Owner,
}

/// The owner of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Content of a file, or of a stream of one.
    File {
        /// The file or stream.
        object: ObjectId,
        /// Offset within its content in bytes.
        offset: u64,
    },
    /// Entries of a directory.
    Directory {
        /// The directory.
        object: ObjectId,
    },
    /// A journal or log.
    Journal,
    /// Other metadata.
    Metadata {
        /// Name of the structure, in the words of the file system's own documentation, such as `inode table`.
        structure: &'static str,
        /// The object that it belongs to, if it belongs to one.
        object: Option<ObjectId>,
    },
    /// Nothing: the file system would allocate it.
    Free,
}

/// A structure whose checksum does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Name of the structure.
    pub structure: &'static str,
    /// Offset in the file system in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The object that it belongs to, if it belongs to one.
    pub object: Option<ObjectId>,
    /// What does not match, such as `crc32c 0x12345678, stored 0x9abcdef0`.
    pub reason: String,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The directory, or the file of a stream.
    pub parent: ObjectId,
    /// The object with the name.
    pub object: ObjectId,
    /// The name as stored, in UTF-8 where the file system stores UTF-16.
    pub name: &'a [u8],
    /// How the name follows the parent's in a path.
    pub kind: EntryKind,
}

/// How a name follows its parent's in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// An entry of a directory: after a slash.
    Child,
    /// A stream of a file: after a colon.
    Stream,
}

/// A part of a file system that could not be read or followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind.
    pub kind: ProblemKind,
    /// Name of the structure.
    pub structure: &'static str,
    /// Offset in the file system in bytes.
    pub offset: u64,
    /// The object that it belongs to, if it belongs to one.
    pub object: Option<ObjectId>,
    /// Description of what is wrong.
    pub reason: String,
}

/// Kind of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The bytes violate the rules of the file system.
    Damaged,
    /// The image could not be read there.
    Unreadable,
    /// A limit was reached, or a feature is not read.
    Skipped,
}
