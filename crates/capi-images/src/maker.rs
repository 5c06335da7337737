//! `struct blksum_maker`: maps of content that comes in any order.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use blkmap::{Collector, Key, Writer};
use blksum::map::{Info, Made};

use crate::boundary::{bytes, put, run, string};
use crate::error_object::Error;
use crate::failure::{Failure, Kind};
use crate::handle::{self, Handle};
use crate::job::Watch;
use crate::options::{Options, settings};

/// `struct blksum_maker`.
pub enum Maker {}

/// A map in progress.
pub(crate) struct InProgress {
    collector: Collector,
    image_size: u64,
    key: Option<Key>,
}

impl Handle for Maker {
    type Value = InProgress;
    const TAG: u32 = u32::from_be_bytes(*b"make");
    const NOUN: &'static str = "maker of a map";
}

impl InProgress {
    /// Writes the map to a file without a name, which gets its name when it is complete.
    fn write(&self, path: &OsStr) -> Result<(), Failure> {
        let path = Path::new(path);
        let of_system =
            |error: &std::io::Error| Failure::of_system(Kind::Open, path.as_os_str(), error);
        let failed = |error: blkmap::Error| match error {
            blkmap::Error::Content(_) => Failure::new(Kind::Changed, error.to_string()),
            error => Failure::of_map(&error, path.as_os_str()),
        };
        let left = self.collector.left();
        if left > 0 {
            let message = format!("{}: {left} blocks did not come", path.display());
            return Err(Failure::new(Kind::MapIncomplete, message));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
        let file = file.map_err(|error| of_system(&error))?;
        let output = file.as_file().try_clone().map_err(|error| of_system(&error))?;
        let writer = Writer::new(output, *self.collector.header(), self.image_size);
        let writer = writer.map_err(failed)?.sealed_with(self.key.clone());
        let info = Info::new(Made::Read).to_string();
        self.collector.write(writer, &info).map_err(failed)?;
        file.persist_noclobber(path).map_err(|error| of_system(&error.error))?;
        Ok(())
    }
}

/// Tells ranges that are no blocks from other failures.
fn failed(error: &blkmap::Error) -> Failure {
    match error {
        blkmap::Error::Mismatch(_) => Failure::argument(error.to_string()),
        error => Failure::of_map(error, OsStr::new("temporary file")),
    }
}

/// `blksum_maker_new()`.
///
/// # Safety
///
/// Objects are null or came from this library, and `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_maker_new(
    size: u64,
    opts: *const Options,
    error: *mut *mut Error,
) -> *mut Maker {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let settings = settings(opts)?;
            let collector = Collector::new(settings.header()?, size);
            let collector = collector.map_err(|error| failed(&error))?;
            let key = settings.key().cloned();
            Ok(handle::create(InProgress { collector, image_size: size, key }))
        })
    }
}

/// `blksum_maker_free()`.
///
/// # Safety
///
/// `maker` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_maker_free(maker: *mut Maker) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(maker) }
}

/// `blksum_maker_add()`.
///
/// # Safety
///
/// Like [`blksum_maker_new`], and `buf` is null or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_maker_add(
    maker: *const Maker,
    buf: *const c_void,
    len: usize,
    offset: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let (maker, content) = (handle::value(maker)?, bytes(buf, len)?);
            maker.collector.add(offset, content).map_err(|error| failed(&error))?;
            Ok(0)
        })
    }
}

/// `blksum_maker_add_zeros()`.
///
/// # Safety
///
/// Like [`blksum_maker_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_maker_add_zeros(
    maker: *const Maker,
    offset: u64,
    len: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let maker = handle::value(maker)?;
            maker.collector.add_zeros(offset, len).map_err(|error| failed(&error))?;
            Ok(0)
        })
    }
}

/// `blksum_maker_left()`.
///
/// # Safety
///
/// Like [`blksum_maker_new`], and `blocks` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_maker_left(
    maker: *const Maker,
    blocks: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            put(blocks, handle::value(maker)?.collector.left(), "number of blocks")?;
            Ok(0)
        })
    }
}

/// `blksum_maker_write()`.
///
/// # Safety
///
/// Like [`blksum_maker_new`], and `path` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_maker_write(
    maker: *const Maker,
    path: *const c_char,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let maker = handle::value(maker)?;
            let path = string(path, "path of the map")?.to_owned();
            Watch::NONE.run(move |_| maker.write(&path))?;
            Ok(0)
        })
    }
}
