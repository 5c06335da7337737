//! The files that a header names, and sizes that deserve a warning.

use super::fields::Head;
use super::vmdk::descriptor::{Descriptor, DiskExtent};
use super::vpc::size::Sizes;
use crate::error::{Error, ErrorKind, Result};
use crate::probe::Format;
use crate::storage::HostFile;

/// The files that an image names.
#[derive(Default)]
pub(crate) struct Named {
    pub backing: Option<Backing>,
    pub descriptor: Option<Descriptor>,
    pub vpc: Option<Sizes>,
}

impl Named {
    /// Returns the extents that a descriptor names.
    pub fn extents(&self) -> &[DiskExtent] {
        self.descriptor.as_ref().map_or(&[], |descriptor| &descriptor.extents)
    }
}

/// A backing file as recorded in an image.
pub(crate) struct Backing {
    pub name: Vec<u8>,
    /// Format, if the image records it.
    pub format: Option<Format>,
}

impl Backing {
    /// Returns the parent of a VMware disk, which is always a VMware disk.
    pub fn vmdk(name: Vec<u8>) -> Self {
        Self { name, format: Some(Format::Vmdk) }
    }
}

/// Creates the error for a file that does not have the given format.
pub(crate) fn not_a(file: &HostFile, format: Format) -> Error {
    file.error(ErrorKind::Format, format!("is not a {format} image"))
}

/// Reads the first `length` bytes of an image and checks that `magic` is at `at`.
pub(crate) fn read_head<'a>(
    file: &'a HostFile,
    format: Format,
    magic: &[u8],
    at: usize,
    length: usize,
) -> Result<Head<'a>> {
    if file.size() < length as u64 {
        return Err(not_a(file, format));
    }
    let head = Head::read(file, 0, length)?;
    if head.bytes()[at..].starts_with(magic) { Ok(head) } else { Err(not_a(file, format)) }
}
