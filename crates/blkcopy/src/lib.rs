//! Copies disk images, with a verdict: what the destination holds, and whether it is the content of the source.
//!
//! [`Job::run`] copies a [`blkimage::Source`] to a [`Destination`]: a file or a block device ([`Local`]), or the export of an
//! NBD server. Zeros are written or deallocated as [`Zeros`] says, and never assumed. Afterwards the destination is
//! read back and its checksums are compared with the checksums of what was read from the source.
//!
//! [`Job::logged`] has a map that is the log of the copy, after whose last checkpoint an interrupted copy continues. An
//! [`ExpectedMap`] is what a destination is compared with after it was read back.
//!
//! A [`Place`] is a destination that was found fit to be written to: [`Refused`] lists what is not.

#![deny(clippy::missing_errors_doc)]

mod copied;
mod copy;
mod delta;
mod destination;
mod error;
mod expected_map;
mod holds;
mod log;
mod logged;
mod place;
mod replaced;
mod stream;
mod writer;
mod zeros;

pub use copied::{Amounts, Copied};
pub use copy::{Job, Verify, What, Written};
pub use delta::{Apply, Sent, send_delta};
#[cfg(feature = "nbd")]
pub use destination::Export;
pub use destination::{Destination, Local, Syncer, Zeroing};
pub use error::Error;
pub use expected_map::{ExpectedMap, NotExpected};
pub use holds::holds;
pub use log::Log;
pub use logged::{FinishedLog, Logged, LoggedCopy, Logging};
pub use place::{Existing, FileName, Found, Others, Place, Reading, Refused, Resumed, Unlike};
pub use stream::to_stream;
pub use zeros::Zeros;

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
