//! `struct blksum_error`, which C gets for a failure.

use std::ffi::{CString, c_int};

use crate::failure::{Failure, Kind};
use crate::handle::{self, Handle};

/// `struct blksum_error`.
pub enum Error {}

/// The value of an error.
pub(crate) struct Described {
    pub(crate) kind: Kind,
    pub(crate) message: CString,
    pub(crate) errno: c_int,
    pub(crate) offset: Option<u64>,
}

impl Handle for Error {
    type Value = Described;
    const TAG: u32 = u32::from_be_bytes(*b"err ");
    const NOUN: &'static str = "error";
}

/// Creates an error for C.
pub(crate) fn create(failure: Failure) -> *mut Error {
    let Failure { kind, message, errno, offset } = failure;
    handle::create(Described { kind, message: text(message), errno, offset })
}

/// Returns a text for C. Names of files have no NUL, but what an image states may have one.
pub(crate) fn text(text: impl Into<String>) -> CString {
    CString::new(text.into().replace('\0', "\\0")).unwrap_or_default()
}
