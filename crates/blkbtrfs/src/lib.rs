//! Verifies the checksums and the structure of a btrfs file system offline.
//!
//! [`FileSystem::open`] takes the devices of a file system, each a [`blkimage::Source`]. [`verify`]
//! checks that every block of it holds what was written: superblocks, tree blocks and data, on all
//! mirrors. Nothing is ever written, and no field on the devices is trusted. Each problem is a
//! [`Finding`] or an [`Error`], and memory and time are bounded.
//!
//! The damaged blocks of a file system in an image, and the files that they belong to:
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//!
//! use blkbtrfs::{Device, FileSystem, Options, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let image = blkimage::OpenOptions::new().open("disk.qcow2")?;
//! let device = Device { name: "disk.qcow2".to_owned(), source: Arc::new(image) };
//! let filesystem = FileSystem::open(vec![device])?;
//! let watch = |_| ControlFlow::Continue(());
//! let summary = verify(&filesystem, &Options::default(), &watch, &|finding| {
//!     println!("{:?}: {:?}", finding.category(), finding.owners);
//! })?;
//! println!("damaged: {}, all was read: {}", !summary.is_clean(), summary.is_complete());
//! # Ok(())
//! # }
//! ```
//!
//! [`find`] finds file systems on disks and in their partitions, and [`group`] puts the devices of each
//! together. [`FileSystems`] does both, and verifies all that it finds.
//!
//! [`Finder`] names the files in ranges of a device, and says what is free.

#![deny(clippy::missing_errors_doc)]

mod backref;
mod bytes;
mod checksum;
mod chunk;
mod devices;
mod error;
mod filesystem;
mod find;
mod finder;
mod locate;
mod name_hash;
mod raid6;
mod rebuild;
mod report;
mod rules;
mod space;
mod superblock;
mod tree;
mod used;
mod uuid;
mod verify;

pub use backref::{Owner, Owners};
pub use checksum::{Checksum, ChecksumType};
pub use chunk::Profile;
pub use devices::Device;
pub use error::{Error, Result};
pub use filesystem::{Allocation, FileSystem};
pub use find::{Candidate, Found, Group, Part, Unverified, find, group};
pub use finder::{FileAt, FilesAt, Finder};
pub use name_hash::{NoObscureName, name_hash, obscure_name};
pub use report::{FileSystems, Report, Verdict};
pub use space::{Space, Usage};
pub use superblock::{DeviceItem, Superblock, SuperblockDefect, has_magic};
pub use tree::{BlockDefect, Parent, object::tree_name};
pub use used::{Unprotected, Used};
pub use uuid::Uuid;
pub use verify::{
    Category, Finding, Options, Place, Problem, Subject, Summary, Verified, Watch, verify,
};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
