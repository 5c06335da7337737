//! Disk images as their guests see them, read only.
//!
//! [`OpenOptions::open`] opens an image with everything it refers to and gives an [`Image`], a
//! [`Source`] of extents and bytes. Raw and qcow2 are read here, other formats by a `qemu-nbd` that
//! runs confined. Images are hostile input: whatever a file says, the
//! answer is its guest content or an [`Error`], in bounded memory and time, and no file is opened
//! that [`Follow`] does not allow. An error is never turned into zeros. [`OpenOptions::open_uri`] does
//! the same for what an NBD server exports.

mod buffer;
mod caches;
mod chain;
mod error;
mod extent;
mod formats;
mod image;
mod layer;
mod location;
mod open;
mod options;
pub mod partition;
mod probe;
mod references;
mod secret;
mod slice;
mod source;
mod storage;
mod sys;
mod walk;

pub use buffer::Buffer;
pub use error::{Error, ErrorKind, Result};
pub use extent::{Extent, ExtentKind};
pub use image::Image;
pub use location::{Location, Transport, Uri};
pub use options::{Cache, Follow, Holes, OpenOptions, UnknownName};
pub use probe::{Format, PROBE_SIZE, UnknownFormat, probe};
pub use secret::Secret;
pub use slice::Slice;
pub use source::Source;
pub use storage::local::mapped::Lent;
pub use storage::nbd::options::NbdOptions;
pub use storage::{Memory, Storage};
