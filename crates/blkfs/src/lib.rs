//! Reads file systems offline: the owner of each byte, and whether checksums of metadata match.
//!
//! [`FileSystem::open`] recognises a file system in a [`blkimage::Source`]: ext2, ext3, ext4, XFS, NTFS, FAT or exFAT. Nothing is
//! written, no field on the disk is trusted, and memory and time are bounded.
//!
//! A file system is read by one walk over its metadata, [`FileSystem::walk`]. It reports to a [`Visitor`] the extents and
//! their owners, the structures with checksums and whether they match, the names in directories, and what it could not read.
//! [`Owners`] is the visitor that keeps a sorted list of the extents, and [`Names`] the one that makes paths.
//!
//! [`volumes`] reads what is between a disk and its file systems: LUKS and LVM.
//!
//! [`Contents`] names the partitions and files in ranges of a disk, also of btrfs.

#![deny(clippy::missing_errors_doc)]

mod backup;
mod bytes;
mod contents;
mod crc;
mod error;
mod exfat;
mod ext;
mod fat;
mod file_system;
mod kind;
mod names;
mod ntfs;
mod owners;
mod reader;
mod signature;
mod visitor;
mod volume;
pub mod volumes;
mod xfs;

pub use backup::Backup;
pub use contents::{Content, Contents, Holder, Span, Usage};
pub use error::{Error, Result};
pub use file_system::FileSystem;
pub use kind::Kind;
pub use names::Names;
pub use owners::{Owned, Owners};
pub use signature::{has_btrfs, signature};
pub use visitor::{
    Entry, EntryKind, Extent, Mismatch, ObjectId, Owner, Problem, ProblemKind, Visitor, Wanted,
};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
