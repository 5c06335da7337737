//! `struct blksum_map`: block maps, and blocks of content next to them.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_uchar, c_uint, c_void};
use std::fs::File;
use std::io;
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blkmap::{BlockCheck, BlockVerdict, Map, Writer};
use blksum::Progress;
use blksum::map::{Info, Made, NewName, new_file};

use crate::boundary::{bytes, put, run, string};
use crate::error_object::{Error, text};
use crate::failure::{Failure, Kind};
use crate::handle::{self, Handle};
use crate::image::{Image, Opened};
use crate::job::{Watch, blksum_progress};
use crate::options::{Options, settings};
use crate::pass::{DIFFERENT, EQUAL, UNKNOWN, write_digest};
use crate::process::Process;
use crate::settings::Settings;

/// `struct blksum_map`.
pub enum BlockMap {}

/// An open map.
pub(crate) struct OpenMap {
    pub(crate) map: Map,
    pub(crate) name: OsString,
    digest_name: CString,
    /// Made for the first question about single blocks, because it reads the hashes of all pages.
    check: Mutex<Option<Arc<BlockCheck>>>,
}

impl Handle for BlockMap {
    type Value = OpenMap;
    const TAG: u32 = u32::from_be_bytes(*b"map ");
    const NOUN: &'static str = "map";
}

impl OpenMap {
    fn open(name: &OsStr, settings: &Settings) -> Result<Self, Failure> {
        let failed = |error: blkmap::Error| Failure::of_map(&error, name);
        let file = regular_file(Path::new(name)).map_err(failed)?;
        let map = blkindex::open(file, name).map_err(failed)?.map;
        if let Some(key) = settings.key() {
            map.check_seal(key).map_err(failed)?;
        }
        let digest_name = text(map.header().algorithm.name());
        Ok(Self { map, name: name.to_owned(), digest_name, check: Mutex::default() })
    }

    fn check(&self) -> Result<Arc<BlockCheck>, Failure> {
        let mut check = self.check.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = &*check {
            return Ok(Arc::clone(check));
        }
        let new = BlockCheck::new(self.map.clone()).map_err(|error| self.failed(&error))?;
        Ok(Arc::clone(check.insert(Arc::new(new))))
    }

    fn failed(&self, error: &blkmap::Error) -> Failure {
        Failure::of_map(error, &self.name)
    }

    /// Returns the verdict for C, and the number of the block that is the reason.
    fn verdict(
        &self,
        found: blkmap::Result<BlockVerdict>,
    ) -> Result<(c_int, Option<u64>), Failure> {
        match found {
            Ok(BlockVerdict::Equal) => Ok((EQUAL, None)),
            Ok(BlockVerdict::Different(block)) => Ok((DIFFERENT, Some(block))),
            Ok(BlockVerdict::Unknown(block)) => Ok((UNKNOWN, Some(block))),
            // Not the map is wrong, but the range.
            Err(error @ blkmap::Error::Mismatch(_)) => Err(Failure::argument(error.to_string())),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

/// Opens a regular file. Others, such as pipes, could block.
fn regular_file(path: &Path) -> blkmap::Result<File> {
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(blkmap::Error::Magic) }
}

/// `blksum_map_open()`.
///
/// # Safety
///
/// Objects are null or came from this library, strings are null or end with NUL, and `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_open(
    path: *const c_char,
    opts: *const Options,
    error: *mut *mut Error,
) -> *mut BlockMap {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let (name, settings) = (string(path, "path of the map")?.to_owned(), settings(opts)?);
            Ok(handle::create(Watch::NONE.run(move |_| OpenMap::open(&name, &settings))?))
        })
    }
}

/// `blksum_map_close()`.
///
/// # Safety
///
/// `map` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_close(map: *mut BlockMap) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(map) }
}

/// `blksum_map_size()`.
///
/// # Safety
///
/// Like [`blksum_map_open`], and `size` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_size(
    map: *const BlockMap,
    size: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            put(size, handle::value(map)?.map.commit().image_size(), "size")?;
            Ok(0)
        })
    }
}

/// `blksum_map_block_size()`.
///
/// # Safety
///
/// Like [`blksum_map_size`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_block_size(
    map: *const BlockMap,
    size: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            put(size, handle::value(map)?.map.header().block_size.into(), "size")?;
            Ok(0)
        })
    }
}

/// `blksum_map_digest_name()`.
///
/// # Safety
///
/// Like [`blksum_map_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_digest_name(
    map: *const BlockMap,
    error: *mut *mut Error,
) -> *const c_char {
    // SAFETY: the caller's promise. The text lives as long as the map.
    unsafe { run(error, ptr::null(), || Ok(handle::value(map)?.digest_name.as_ptr())) }
}

/// `blksum_map_is_complete()`.
///
/// # Safety
///
/// Like [`blksum_map_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_is_complete(
    map: *const BlockMap,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(c_int::from(handle::value(map)?.map.is_complete()))) }
}

/// `blksum_map_digest()`.
///
/// # Safety
///
/// Like [`blksum_map_open`]. `md` is null or has room for `BLKSUM_MAX_MD_SIZE` bytes, and `md_len` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_digest(
    map: *const BlockMap,
    block: u64,
    md: *mut c_uchar,
    md_len: *mut c_uint,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let map = handle::value(map)?;
            if md.is_null() {
                return Err(Failure::argument("the buffer for the digest is NULL"));
            }
            let blocks = map.map.commit().blocks();
            if block >= blocks {
                let message = format!("there is no block {block}: the image has {blocks}");
                return Err(Failure::argument(message));
            }
            let digest = map.check()?.digest(block).map_err(|error| map.failed(&error))?;
            let Some(digest) = digest else { return Ok(0) };
            write_digest(digest.as_bytes(), md, md_len);
            Ok(1)
        })
    }
}

/// `blksum_map_check()`.
///
/// # Safety
///
/// Like [`blksum_map_open`]. `buf` is null or has `len` bytes, and `block` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_check(
    map: *const BlockMap,
    buf: *const c_void,
    len: usize,
    offset: u64,
    block: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let (map, content) = (handle::value(map)?, bytes(buf, len)?);
            let (verdict, at) = map.verdict(map.check()?.check(offset, content))?;
            put_block(block, at);
            Ok(verdict)
        })
    }
}

/// `blksum_map_check_zeros()`.
///
/// # Safety
///
/// Like [`blksum_map_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_check_zeros(
    map: *const BlockMap,
    offset: u64,
    len: u64,
    block: *mut u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let map = handle::value(map)?;
            let (verdict, at) = map.verdict(map.check()?.check_zeros(offset, len))?;
            put_block(block, at);
            Ok(verdict)
        })
    }
}

/// Writes the number of a block, if there is one and C wants it.
///
/// # Safety
///
/// `to` is null or can be written.
unsafe fn put_block(to: *mut u64, block: Option<u64>) {
    if let Some(block) = block
        && !to.is_null()
    {
        // SAFETY: the caller's promise.
        unsafe { to.write(block) };
    }
}

/// `blksum_map_create()`.
///
/// # Safety
///
/// Like [`blksum_map_open`], and `progress` can be called with `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_create(
    path: *const c_char,
    image: *const Image,
    opts: *const Options,
    progress: blksum_progress,
    user_data: *mut c_void,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let (image, settings) = (handle::value(image)?, settings(opts)?);
            let path = string(path, "path of the map")?.to_owned();
            let (output, process) = (Arc::new(Output::default()), Process::current());
            let created = Arc::clone(&output);
            let watch = Watch { progress, user_data };
            let work = move |progress: &_| create(&path, &image, &settings, &created, progress);
            watch.run(work).inspect_err(|_| {
                // A child that the callback forked leaves the file to its parent.
                if process == Process::current() {
                    output.abandon();
                }
            })?;
            Ok(0)
        })
    }
}

/// The new file that a thread writes. Another one can remove it meanwhile, as after a cancellation that the first one does not notice.
#[derive(Default)]
struct Output(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Missing,
    Created(NewName),
    Abandoned,
}

impl Output {
    fn create(&self, path: &Path, image: &Opened) -> io::Result<File> {
        let mut state = self.state();
        if matches!(*state, State::Abandoned) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let (file, name) = new_file(path, image.selected.image().files().map(Path::as_os_str))?;
        *state = State::Created(name);
        Ok(file)
    }

    /// Removes the file, which is not created later either.
    fn abandon(&self) {
        if let State::Created(name) = mem::replace(&mut *self.state(), State::Abandoned) {
            name.remove();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a map to a new file. The caller removes it if that fails.
fn create(
    path: &OsStr,
    image: &Opened,
    settings: &Settings,
    output: &Output,
    progress: &Progress,
) -> Result<(), Failure> {
    let header = settings.header()?;
    let content = image.content();
    let info = Info::new(Made::Read).describe(&image.subject());
    let file = output
        .create(Path::new(path), image)
        .map_err(|error| Failure::of_system(Kind::Open, path, &error))?;
    let writer = Writer::new(file, header, content.size()).map_err(blksum::Error::from);
    let written = writer.and_then(|writer| {
        let writer = writer.sealed_with(settings.key().cloned());
        blksum::map::write(writer, content, .., &info, &settings.tuning(), progress)
    });
    written.map(drop).map_err(|error| Failure::of_pass(&error, &image.name, path))
}

const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
