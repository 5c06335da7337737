//! Copies disk images, with a verdict: what the destination holds, and whether it is the content of the source.
//!
//! [`Copy::run`] copies a [`blkimage::Source`] to a [`Destination`]: a file or a block device ([`Local`]), or the export of an
//! NBD server. Zeros are written or deallocated as [`Zeros`] says, and never taken for granted. Afterwards the
//! destination is read back and its checksums are compared with those of what was read from the source.
//!
//! ```
//! use blkcopy::{Copy, Local};
//! use blkhash::Parameters;
//! use blkimage::OpenOptions;
//! use blksum::{Progress, Tuning};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (path, copy) = (folder.path().join("disk.raw"), folder.path().join("copy.raw"));
//! # std::fs::write(&path, [7; 100_000])?;
//! let image = OpenOptions::new().open(&path)?;
//! let file = std::fs::File::options().read(true).write(true).create_new(true).open(&copy)?;
//! let destination = Local::new(file, &copy)?;
//! let parameters = [Parameters::default()];
//! let copied = Copy::new(&parameters).run(
//!     &image,
//!     Box::new(destination),
//!     &Tuning::default(),
//!     &Progress::new(),
//!     &Progress::new(),
//! )?;
//! assert_eq!((copied.size, copied.digests.len()), (100_000, 1));
//! # Ok(())
//! # }
//! ```

#![deny(clippy::missing_errors_doc)]

mod copy;
mod destination;
mod error;
mod holds;
mod stream;
mod writer;
mod zeros;

pub use copy::{Copied, Copy, Verify};
#[cfg(feature = "nbd")]
pub use destination::Export;
pub use destination::{Destination, Local, Zeroing};
pub use error::Error;
pub use holds::holds;
pub use stream::{Received, to_stream};
pub use zeros::{UnknownZeros, Zeros};
