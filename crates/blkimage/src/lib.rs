//! Disk images as their guests see them, read only.
//!
//! [`OpenOptions::open`] opens an image and every file it refers to, and returns an [`Image`]: a
//! [`Source`] of extents and bytes. Raw, qcow, qcow2, vmdk, vhdx, vpc, vdi, qed, parallels, ewf, partclone, rbd and simg are read
//! natively, other formats through a confined `qemu-nbd`. [`OpenOptions::open_location`] also opens the export of an NBD server, and
//! images on HTTP and S3 servers.
//!
//! Images are hostile input. Whatever a file contains, the result is its guest content or an
//! [`Error`], in bounded memory and time. Only files that [`Follow`] allows are opened. An error
//! is never turned into zeros.
//!
//! The data of an image, without reading its zeros:
//!
//! ```
//! use blkimage::{ExtentKind, OpenOptions, Source};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("disk.raw");
//! # std::fs::write(&path, [7; 100_000])?;
//! let image = OpenOptions::new().open(&path)?;
//! let mut offset = 0;
//! while offset < image.size() {
//!     let extent = image.extent(offset, 1 << 20)?;
//!     if extent.kind == ExtentKind::Data {
//!         let mut data = vec![0; extent.length as usize];
//!         image.read_exact_at(&mut data, offset)?;
//!     }
//!     offset += extent.length;
//! }
//! image.check_unchanged()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! All are on by default. Without them the crate reads the native formats, and never forks or connects.
//!
//! - `compressed`: files that are compressed as a whole, such as `disk.raw.xz`.
//! - `http`: objects on HTTP and S3 servers.
//! - `nbd`: exports of NBD servers. libnbd is loaded when the first URI is opened.
//! - `oci`: disks in OCI images, in layouts and archives.
//! - `qemu-nbd`: other formats, through `qemu-nbd`.

#![deny(clippy::missing_errors_doc)]

/// Tests share code with `tests/`.
#[cfg(test)]
extern crate self as blkimage;

mod acquisition;
mod advice;
mod archive_names;
mod backup;
mod bitmap;
mod buffer;
mod caches;
mod chain;
pub mod check;
#[cfg(feature = "compressed")]
mod compressed;
mod compression;
mod container;
mod error;
mod extent;
mod format_name;
mod formats;
mod hint;
mod holes;
mod identity;
mod image;
mod implanted;
mod layer;
// Only the code that opens URIs uses all of it.
#[cfg_attr(not(all(feature = "http", feature = "nbd")), allow(dead_code))]
mod location;
pub mod lzo;
mod member;
mod open;
mod option_table;
mod options;
mod origin;
pub mod partition;
mod probe;
mod qemu_locks;
mod recognise;
mod references;
mod same_file;
mod secret;
mod slice;
mod snapshot;
mod source;
mod stated;
mod storage;
mod tar;
mod unknown_name;
mod walk;
mod warnings;

use blksys as sys;

pub use acquisition::{Acquisition, CaseField};
pub use backup::Backup;
pub use bitmap::Bitmap;
#[cfg(feature = "http")]
pub use blkhttp::{
    ChecksumAlgorithm, ChecksumKind, HttpOptions, S3Options, StoredChecksum, StoredPart,
};
pub use buffer::Buffer;
#[cfg(feature = "compressed")]
pub use compressed::Decompressed;
pub use compression::Compression;

pub use container::{Container, Manifest, container_of, is_container, member_name};
pub use error::{Error, ErrorKind, Result};
pub use extent::{Extent, ExtentKind};
pub use format_name::FormatName;
pub use hint::Hint;
pub use holes::Holes;
pub use identity::{FileId, VolumeId};
pub use image::Image;
pub use implanted::{FragmentSum, Implanted};
pub use location::{Location, Transport, Uri, is_beside_url, url_beside};
pub use member::{Member, MemberFile, VpcSizes};
pub use open::stated::states_checksums;
#[cfg(feature = "http")]
pub use open::url::{AtUrl, Stream};
pub use open::{detect, detect_file};
pub use option_table::{InvalidValue, OpenOption, OptionKind, OptionValue, Topic};
pub use options::{Cache, Follow, OpenOptions, Reader, VpcSize};
pub use origin::{Dirty, Origin, OriginKind, Place};
pub use probe::{Format, PROBE_SIZE, detect_within, probe};
pub use qemu_locks::{lock_for_reading, lock_for_writing};
pub use recognise::{FileKind, HEAD_SIZE, Way, check_raw, check_unnamed};
pub use same_file::Identity;
pub use secret::Secret;
pub use slice::Slice;
pub use snapshot::Snapshot;
pub use source::{Announcer, Source, longest_extent};
pub use stated::{Stated, StatedDigest, StatedSum, SumOf};
pub use storage::local::mapped::Lent;
#[cfg(feature = "nbd")]
pub use storage::nbd::{export::NbdExport, options::NbdOptions};
pub use storage::{Memory, ReadMethod, ServedObject, Storage};
pub use tar::is_tar;
pub use unknown_name::UnknownName;
pub use warnings::Warning;

/// Runs the example of README.md as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
