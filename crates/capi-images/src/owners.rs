//! `struct blksum_owners`: which file or structure the bytes of an image belong to.

use std::ffi::{CString, c_char, c_int};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use blkfs::{Contents, Span, Usage};
use blkimage::Source;

use crate::boundary::{put, quiet, run};
use crate::check::name;
use crate::error_object::{Error, text};
use crate::failure::{Failure, Kind};
use crate::handle::{self, Handle};
use crate::image::{Image, Opened};
use crate::job::Watch;
use crate::options::{Options, settings};

/// `struct blksum_owners`.
pub enum Owners {}

/// The owners of a range.
pub(crate) struct Found {
    extents: Vec<Extent>,
    remarks: Vec<CString>,
}

/// An extent, with the texts that its pointers lead to.
struct Extent {
    offset: u64,
    length: u64,
    partition: Option<u32>,
    file_system: Option<CString>,
    usage: Usage,
    structure: Option<CString>,
    object: Option<u64>,
    file_offset: Option<u64>,
    names: Vec<CString>,
}

impl Handle for Owners {
    type Value = Found;
    const TAG: u32 = u32::from_be_bytes(*b"ownr");
    const NOUN: &'static str = "list of owners";
}

/// `struct blksum_owned`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Owned {
    /// Kind of the file system, or null.
    pub file_system: *const c_char,
    /// Name of the structure of metadata, or null.
    pub structure: *const c_char,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Number of the inode or file record, or `UINT64_MAX`.
    pub object: u64,
    /// Offset in the content of the file, or `UINT64_MAX`.
    pub file_offset: u64,
    /// An `enum blksum_owner_kind`.
    pub kind: u32,
    /// Number of the partition, or 0.
    pub partition: u32,
}

impl Found {
    fn of(image: &Opened, range: Range<u64>, limit: usize) -> Result<Self, Failure> {
        let disk: Arc<dyn Source> = Arc::new(image.selected.source().clone());
        let contents = Contents::of(&disk);
        if !contents.has_files() {
            check_unchanged(&*disk)?;
            let message = format!("{}: has no file system that is read", image.name.display());
            return Err(Failure::new(Kind::Format, message));
        }
        let (mut extents, mut is_beyond_limit) = (Vec::new(), false);
        contents.spans(range.start..range.end.min(disk.size()), &mut |span| match extents.len()
            < limit
        {
            true => extents.push(Extent::new(span)),
            false => is_beyond_limit = true,
        });
        // The bytes of the file systems were read, and may have changed since.
        check_unchanged(&*disk)?;
        // A part of the extents looks like all.
        if is_beyond_limit {
            let message =
                format!("there are more than {limit} extents: the option limit returns more");
            return Err(Failure::new(Kind::Limit, message));
        }
        let remarks = contents.remarks().into_iter().map(|(partition, remark)| {
            let place = partition.map(|number| format!("partition {number}: ")).unwrap_or_default();
            text(place + &remark)
        });
        Ok(Self { extents, remarks: remarks.collect() })
    }
}

fn check_unchanged(disk: &dyn Source) -> Result<(), Failure> {
    disk.check_unchanged().map_err(|error| Failure::of_image(&error))
}

impl Extent {
    fn new(span: &Span) -> Self {
        let Span { offset, length, partition, file_system, ref holder, .. } = *span;
        Self {
            offset,
            length,
            partition,
            file_system: file_system.map(text),
            usage: holder.usage,
            structure: holder.structure.map(text),
            object: holder.object,
            file_offset: holder.offset,
            names: holder.paths.iter().map(|path| name(path)).collect(),
        }
    }

    fn to_c(&self) -> Owned {
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |it| it.as_ptr());
        Owned {
            file_system: pointer(&self.file_system),
            structure: pointer(&self.structure),
            offset: self.offset,
            length: self.length,
            object: self.object.unwrap_or(u64::MAX),
            file_offset: self.file_offset.unwrap_or(u64::MAX),
            kind: match self.usage {
                Usage::File => 0,
                Usage::Metadata => 1,
                Usage::Journal => 2,
                Usage::Free => 3,
                Usage::Unknown => 4,
            },
            partition: self.partition.unwrap_or(0),
        }
    }
}

/// `blksum_image_owners()`.
///
/// # Safety
///
/// Objects are null or came from this library, and `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_owners(
    image: *const Image,
    offset: u64,
    length: u64,
    opts: *const Options,
    error: *mut *mut Error,
) -> *mut Owners {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let (image, settings) = (handle::value(image)?, settings(opts)?);
            let range = offset..offset.saturating_add(length);
            let limit = settings.limit();
            let found = Watch::NONE.run(move |_| Found::of(&image, range, limit))?;
            Ok(handle::create(found))
        })
    }
}

/// `blksum_owners_count()`.
///
/// # Safety
///
/// Like [`blksum_image_owners`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_owners_count(owners: *const Owners, error: *mut *mut Error) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(handle::value(owners)?.extents.len() as i64)) }
}

/// `blksum_owners_get()`.
///
/// # Safety
///
/// Like [`blksum_image_owners`], and `owned` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_owners_get(
    owners: *const Owners,
    index: usize,
    owned: *mut Owned,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise. The texts live as long as the object.
    unsafe {
        run(error, -1, || {
            let extents = &handle::value(owners)?.extents;
            let found = extents.get(index).ok_or_else(|| {
                Failure::argument(format!("there is no extent {index} of {}", extents.len()))
            })?;
            put(owned, found.to_c(), "extent")?;
            Ok(0)
        })
    }
}

/// `blksum_owners_name()`.
///
/// # Safety
///
/// `owners` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_owners_name(
    owners: *const Owners,
    index: usize,
    name: usize,
) -> *const c_char {
    quiet(ptr::null(), || {
        // SAFETY: the caller's promise. The text lives as long as the object.
        let owners = unsafe { handle::value(owners) }?;
        let name = owners.extents.get(index).and_then(|it| it.names.get(name));
        Ok(name.map_or(ptr::null(), |it| it.as_ptr()))
    })
}

/// `blksum_owners_remark()`.
///
/// # Safety
///
/// `owners` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_owners_remark(
    owners: *const Owners,
    index: usize,
) -> *const c_char {
    quiet(ptr::null(), || {
        // SAFETY: the caller's promise. The text lives as long as the object.
        let owners = unsafe { handle::value(owners) }?;
        Ok(owners.remarks.get(index).map_or(ptr::null(), |it| it.as_ptr()))
    })
}

/// `blksum_owners_free()`.
///
/// # Safety
///
/// `owners` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_owners_free(owners: *mut Owners) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(owners) }
}
