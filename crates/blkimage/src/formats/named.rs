//! The files that a header names, and sizes that deserve a warning.

use super::fields::Head;
use super::vmdk::descriptor::{Descriptor, DiskExtent};
use crate::error::{Error, ErrorKind, Result};
use crate::probe::Format;
use crate::storage::HostFile;

/// The files that an image names.
#[derive(Default)]
pub(crate) struct Named {
    pub backing: Option<Backing>,
    pub descriptor: Option<Descriptor>,
    pub vpc: Option<VpcSize>,
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

/// The two sizes that a vpc image records, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VpcSize {
    pub current: u64,
    /// Product of cylinders, heads and sectors.
    pub geometry: u64,
    /// Whether QEMU created the image. Without `force_size`, it rounds the size up to whole cylinders.
    pub is_rounded: bool,
}

impl VpcSize {
    pub fn of(footer: &Head<'_>) -> Self {
        let [heads, sectors] = [footer.bytes()[58], footer.bytes()[59]].map(u64::from);
        let cylinders = u64::from(footer.be32(56) >> 16);
        Self {
            current: footer.be64(48),
            geometry: cylinders * heads * sectors * 512,
            is_rounded: footer.bytes()[28..32] == *b"qemu",
        }
    }

    /// Returns a warning if `size`, the number of bytes that QEMU reads, may not be the
    /// size of the original disk.
    pub fn doubt(&self, size: u64) -> Option<String> {
        let Self { current, geometry, is_rounded } = *self;
        if size != current {
            return Some(format!(
                "QEMU reads the {size} bytes of its cylinders, and not the {current} bytes that its \
                 header states: the checksum is that of {size} bytes"
            ));
        }
        (is_rounded && size == geometry).then(|| {
            format!(
                "its size of {size} bytes was rounded up to whole cylinders unless it was made with \
                 force_size=on: the disk that it was made of may be smaller and have another checksum"
            )
        })
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
