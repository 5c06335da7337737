//! Files that are not what they would be read as: raw disks.
//!
//! [`FileKind`] is the one table of what a name promises and how the content of other files begins. [`check_raw`] refuses
//! content without a known image format if its name promises one, or if it begins like another file. With an explicit
//! format, nothing is checked. A destination of a copy must not have such a name either.

mod kinds;
mod signatures;
mod text;
pub(crate) mod way;

#[cfg(test)]
mod tests;

use std::os::fd::BorrowedFd;
use std::path::Path;

pub use self::kinds::FileKind;
pub use self::way::Way;
use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::hint::Hint;
use crate::location::telling;
use crate::storage::HostFile;
#[cfg(feature = "compressed")]
use crate::storage::ReadMethod;
use crate::sys::{self, NodeType};

/// Number of bytes at the start of content that [`check_raw`] examines.
pub const HEAD_SIZE: usize = 2048;

/// Fails if content that comes once and in order, and has no known image format, is no raw disk either.
///
/// `head` is its first [`HEAD_SIZE`] bytes, or all of shorter content. `name` is the name of the file, from which
/// `compression` was undone.
///
/// # Errors
///
/// Fails if `name` promises something else, or if the content begins like another file.
pub fn check_raw(head: &[u8], name: &Path, compression: Option<Compression>) -> Result<()> {
    let promise = promise_within(name, compression);
    Content { head, name, promise, compression, reads_forward: true }.check()
}

/// Fails like [`check_raw`] for content that has no name: of a pipe. `name` is for errors.
///
/// # Errors
///
/// Fails if the content begins like another file.
pub fn check_unnamed(head: &[u8], name: &Path, compression: Option<Compression>) -> Result<()> {
    Content { head, name, promise: None, compression, reads_forward: true }.check()
}

/// Fails like [`check_raw`] for the content of a file, which begins with `head`.
pub(crate) fn check_file(file: &HostFile, head: &[u8]) -> Result<()> {
    let name = file.name();
    let compression = match file.read_method() {
        #[cfg(feature = "compressed")]
        ReadMethod::Decompressed(compression) => Some(compression),
        _ => None,
    };
    // Volumes are named after anything.
    let promise = match file.descriptor().is_some_and(is_device) {
        true => None,
        false => promise_within(name, compression),
    };
    Content { head, name, promise, compression, reads_forward: file.reads_forward() }.check()
}

/// Content that would be read as a raw disk.
struct Content<'a> {
    head: &'a [u8],
    name: &'a Path,
    promise: Option<&'static FileKind>,
    compression: Option<Compression>,
    /// Whether the end of the content was not examined.
    reads_forward: bool,
}

impl Content<'_> {
    fn check(&self) -> Result<()> {
        let (promise, compression) = (self.promise, self.compression);
        let promise = promise.filter(|kind| !kind.may_be(self.head));
        let (kind, reason) = match (FileKind::of_head(self.head), promise) {
            (None, None) => return Ok(()),
            (Some(found), promise) => {
                let found = promise.filter(|promise| promise.holds(found)).unwrap_or(found);
                let is = match found.compression() {
                    Some(method) => format!("is compressed by {method}"),
                    None => format!("is {found}"),
                };
                match promise.filter(|promise| *promise != found) {
                    Some(promise) => (found, format!("{is}, and has the name of {promise}")),
                    None => (found, is),
                }
            }
            (None, Some(promise)) if self.head.is_empty() => {
                (promise, format!("is empty, and has the name of {promise}"))
            }
            (None, Some(promise)) if promise.is_unseen() => {
                (promise, format!("has the name of {promise}"))
            }
            (None, Some(promise)) => {
                let error = |reason: String| {
                    let reason = format!("has the name of {promise}, {reason}");
                    Error::new(ErrorKind::Format, self.name, reason)
                };
                return Err(match (promise.footer(), compression) {
                    (Some(format), Some(method)) if self.reads_forward => error(format!(
                        "whose end must be read first: decompress it, or say what it is, as {format}+{method}"
                    )),
                    _ => error("and nothing in it says that it is one".into())
                        .with_hint(Hint::RawContent { compression }),
                });
            }
        };
        let error = Error::new(ErrorKind::Format, self.name, reason);
        Err(error.with_hint(Hint::NoDisk { way: kind.way(), compression }))
    }
}

/// Returns what a name promises once the compression of the file is undone.
fn promise_within(name: &Path, compression: Option<Compression>) -> Option<&'static FileKind> {
    let name = &*telling(name);
    match compression.and_then(|_| Compression::of_name(name)) {
        Some(_) => FileKind::of_name(&name.with_extension("")),
        None => FileKind::of_name(name),
    }
}

fn is_device(file: BorrowedFd<'_>) -> bool {
    sys::stamp(file).is_ok_and(|stamp| stamp.node_type == NodeType::BlockDevice)
}
