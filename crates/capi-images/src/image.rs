//! `struct blksum_image`: opening, properties, extents and reads.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::{Arc, mpsc};

use blkimage::{ExtentKind, Location, Member, OpenOptions, Source, Warning};
use blksum::expect::FileBytes;
use blksum::map::Subject;
use blksum::{Content, Part, Selected};

use crate::boundary::{caught, check_buffer, put, quiet, run, string};
use crate::error_object::{Error, text};
use crate::failure::{Failure, advice};
use crate::handle::{self, Handle};
use crate::job::{Slot, spawn};
use crate::options::{Options, settings};
use crate::settings::Settings;

/// `struct blksum_image`.
pub enum Image {}

/// An open image, or a part of it.
pub(crate) struct Opened {
    pub(crate) selected: Selected,
    /// The name as the caller gave it.
    pub(crate) name: OsString,
    options: OpenOptions,
    part: Option<Part>,
    format: CString,
    warnings: Vec<CString>,
    /// Ends the thread that opened the image when it is dropped.
    #[expect(dead_code, reason = "is only dropped")]
    keeper: Option<mpsc::Sender<()>>,
}

impl Handle for Image {
    type Value = Opened;
    const TAG: u32 = u32::from_be_bytes(*b"img ");
    const NOUN: &'static str = "image";
}

impl Opened {
    /// Opens an image. One that a child process serves lives no longer than this thread.
    fn open(name: &OsStr, settings: &Settings) -> Result<Self, Failure> {
        let part = settings.part()?;
        let options = settings.open();
        let image = options.open_location(Location::new(name));
        let image = Arc::new(image.map_err(|error| Failure::of_image(&error))?);
        let format = text(image.format().name());
        let warning = |it: &Warning| match it.hint.map(advice) {
            Some(advice) => text(format!("{it}: {advice}")),
            None => text(it.to_string()),
        };
        let warnings = image.warnings().iter().map(warning).collect();
        let selected =
            Selected::new(image, part).map_err(|error| Failure::of_part(&error, name))?;
        let name = name.to_owned();
        Ok(Self { selected, name, options, part, format, warnings, keeper: None })
    }

    /// Opens an image on a thread of its own, which lives as long as the image if a child process serves it, because the
    /// kernel ends the child with the thread that started it.
    fn open_kept(name: OsString, settings: Settings) -> Result<Self, Failure> {
        let slot = Slot::new();
        let filled = Arc::clone(&slot);
        let (keeper, kept) = mpsc::channel::<()>();
        let thread = spawn(move || {
            let opened = caught(|| Self::open(&name, &settings));
            let is_served = opened.as_ref().is_ok_and(Self::is_served);
            filled.put(opened);
            if is_served {
                // Returns when the other end is dropped.
                let _ = kept.recv();
            }
        })?;
        match slot.take(None).unwrap_or_else(|| Err(Failure::internal())) {
            Ok(opened) if opened.is_served() => Ok(Self { keeper: Some(keeper), ..opened }),
            opened => {
                // The memory of the thread is returned before the call.
                let _ = thread.join();
                opened
            }
        }
    }

    fn is_served(&self) -> bool {
        self.selected.image().chain().iter().any(Member::is_served)
    }

    /// Returns the content.
    pub(crate) fn content(&self) -> &dyn Source {
        self.selected.source()
    }

    /// Describes the content for its map.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            name: &self.name,
            image: self.selected.image(),
            source: self.content(),
            snapshot: self.options.snapshot.as_deref(),
            partition: self.selected.partition(),
        }
    }

    /// Describes the content for a tag, or returns the default if a tag cannot.
    pub(crate) fn tagged(&self) -> Content {
        let content = Content {
            format: self.options.format,
            vpc_size: None,
            snapshot: self.options.snapshot.clone(),
            part: self.part,
        };
        if content.check_recordable().is_ok() { content } else { Content::default() }
    }

    /// Opens the file that stores the image, if all of the image was opened and the file has other bytes than the content.
    pub(crate) fn bytes(&self) -> Result<Option<blkimage::Image>, Failure> {
        let bytes = FileBytes::of(Location::new(&self.name), &self.options, &self.selected);
        bytes.map(|it| it.open()).transpose().map_err(|error| Failure::of_image(&error))
    }
}

/// `blksum_image_open()`.
///
/// # Safety
///
/// Objects are null or came from this library, strings are null or end with NUL, and `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_open(
    name: *const c_char,
    opts: *const Options,
    error: *mut *mut Error,
) -> *mut Image {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let name = string(name, "name of the image")?.to_owned();
            Ok(handle::create(Opened::open_kept(name, settings(opts)?)?))
        })
    }
}

/// `blksum_image_close()`.
///
/// # Safety
///
/// `image` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_close(image: *mut Image) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(image) }
}

/// `blksum_image_size()`.
///
/// # Safety
///
/// Like [`blksum_image_open`], and `size` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_size(
    image: *const Image,
    size: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            put(size, handle::value(image)?.content().size(), "size")?;
            Ok(0)
        })
    }
}

/// `blksum_image_format()`.
///
/// # Safety
///
/// Like [`blksum_image_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_format(
    image: *const Image,
    error: *mut *mut Error,
) -> *const c_char {
    // SAFETY: the caller's promise. The text lives as long as the image.
    unsafe { run(error, ptr::null(), || Ok(handle::value(image)?.format.as_ptr())) }
}

/// `blksum_image_warning()`.
///
/// # Safety
///
/// `image` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_warning(image: *const Image, index: usize) -> *const c_char {
    quiet(ptr::null(), || {
        // SAFETY: the caller's promise. The text lives as long as the image.
        let image = unsafe { handle::value(image) }?;
        Ok(image.warnings.get(index).map_or(ptr::null(), |it| it.as_ptr()))
    })
}

/// `struct blksum_extent`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// An `enum blksum_extent_kind`.
    pub kind: u32,
    /// 0.
    pub reserved: u32,
}

/// `blksum_image_extent()`.
///
/// # Safety
///
/// Like [`blksum_image_open`], and `extent` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_extent(
    image: *const Image,
    offset: u64,
    extent: *mut Extent,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let image = handle::value(image)?;
            let source = image.content();
            let found = blkimage::longest_extent(source, offset, source.size());
            let Some(found) = found.map_err(|error| Failure::of_image(&error))? else {
                return Ok(0);
            };
            let kind = match found.kind {
                ExtentKind::Data => 0,
                ExtentKind::Zero => 1,
            };
            let found = Extent { offset, length: found.length, kind, reserved: 0 };
            put(extent, found, "extent")?;
            Ok(1)
        })
    }
}

/// `blksum_image_read()`.
///
/// # Safety
///
/// Like [`blksum_image_open`], and `buf` is null or has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_read(
    image: *const Image,
    buf: *mut c_void,
    len: usize,
    offset: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let image = handle::value(image)?;
            check_buffer(buf, len)?;
            let size = image.content().size();
            if offset.checked_add(len as u64).is_none_or(|end| end > size) {
                return Err(Failure::argument(format!(
                    "{len} bytes at {offset} reach past the end of the image at {size}"
                )));
            }
            if len > 0 {
                // What C has there may be uninitialized.
                ptr::write_bytes(buf.cast::<u8>(), 0, len);
                let buf = slice::from_raw_parts_mut(buf.cast::<u8>(), len);
                let read = image.content().read_exact_at(buf, offset);
                read.map_err(|error| Failure::of_image(&error))?;
            }
            Ok(0)
        })
    }
}

/// `blksum_image_check_unchanged()`.
///
/// # Safety
///
/// Like [`blksum_image_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_check_unchanged(
    image: *const Image,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let image = handle::value(image)?;
            let checked = image.selected.image().check_unchanged();
            checked.map_err(|error| Failure::of_image(&error))?;
            Ok(0)
        })
    }
}
