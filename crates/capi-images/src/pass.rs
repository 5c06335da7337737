//! Passes over images: checksums and values.

use std::ffi::{OsStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr;

use blksum::expect::{Found, Reading, Value};

use crate::boundary::{run, utf8};
use crate::error_object::Error;
use crate::failure::Failure;
use crate::handle;
use crate::image::{Image, Opened};
use crate::job::{Watch, blksum_progress};
use crate::options::{Options, settings};

/// `blksum_image_checksum()`.
///
/// # Safety
///
/// Objects are null or came from this library. `md` is null or has room for `BLKSUM_MAX_MD_SIZE` bytes, `md_len` and `error`
/// are null or can be written, and `progress` can be called with `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_checksum(
    image: *const Image,
    opts: *const Options,
    progress: blksum_progress,
    user_data: *mut c_void,
    md: *mut c_uchar,
    md_len: *mut c_uint,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let (image, settings) = (handle::value(image)?, settings(opts)?);
            let parameters = settings.parameters()?;
            if md.is_null() {
                return Err(Failure::argument("the buffer for the checksum is NULL"));
            }
            let digest = Watch { progress, user_data }.run(move |progress| {
                blksum::checksum(image.content(), &parameters, &settings.tuning(), progress)
                    .map_err(|error| Failure::of_pass(&error, &image.name, OsStr::new("")))
            })?;
            write_digest(digest.as_bytes(), md, md_len);
            Ok(0)
        })
    }
}

/// Writes a digest and its length for C.
///
/// # Safety
///
/// `md` has room for `BLKSUM_MAX_MD_SIZE` bytes, and `md_len` is null or can be written.
pub(crate) unsafe fn write_digest(digest: &[u8], md: *mut c_uchar, md_len: *mut c_uint) {
    // SAFETY: the caller's promise. No digest is longer.
    unsafe {
        ptr::copy_nonoverlapping(digest.as_ptr(), md, digest.len());
        if !md_len.is_null() {
            md_len.write(digest.len() as c_uint);
        }
    }
}

/// `blksum_image_expect()`.
///
/// # Safety
///
/// Like [`blksum_image_checksum`]. `value` is null or a string, and `tag` is null or has room for `tag_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_expect(
    image: *const Image,
    value: *const c_char,
    opts: *const Options,
    progress: blksum_progress,
    user_data: *mut c_void,
    tag: *mut c_char,
    tag_size: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let (image, settings) = (handle::value(image)?, settings(opts)?);
            let value: Value = utf8(value, "value")?
                .parse()
                .map_err(|error| Failure::argument(format!("the value {error}")))?;
            let search = settings.search();
            if search.digests(&value).is_empty() {
                return Err(Failure::argument("no digest of the option digest is that long"));
            }
            let found = Watch { progress, user_data }.run(move |progress| {
                let (bytes, tuning) = (image.bytes()?, settings.tuning());
                let bytes = bytes.as_ref().map(|bytes| bytes as &dyn blkimage::Source);
                let selected = &image.selected;
                blksum::expect::find(&value, &search, selected, bytes, &tuning, progress)
                    .map(|found| described(&image, &found))
                    .map_err(|error| Failure::of_pass(&error, &image.name, OsStr::new("")))
            })?;
            let (verdict, text) = found;
            if !tag.is_null() && tag_size > 0 {
                let length = text.len().min(tag_size - 1);
                ptr::copy_nonoverlapping(text.as_ptr(), tag.cast(), length);
                tag.add(length).write(0);
            }
            Ok(verdict)
        })
    }
}

/// Returns the verdict of a search, and the tag of what equals the value.
fn described(image: &Opened, found: &Found) -> (c_int, String) {
    let tag = |reading: &Reading| reading.tag(image.tagged()).to_string();
    match (found.matched, found.doubted) {
        (Some(matched), _) => (EQUAL, tag(&matched.reading)),
        (None, Some((reading, _))) => (UNKNOWN, tag(&reading)),
        (None, None) => (DIFFERENT, String::new()),
    }
}

/// `BLKSUM_EQUAL`.
pub(crate) const EQUAL: c_int = 0;

/// `BLKSUM_DIFFERENT`.
pub(crate) const DIFFERENT: c_int = 1;

/// `BLKSUM_UNKNOWN`.
pub(crate) const UNKNOWN: c_int = 2;
