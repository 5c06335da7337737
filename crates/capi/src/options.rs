//! `struct blkhash_opts` and its functions.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::{ptr, slice};

use blkhash::{Algorithm, BlockSize, Construction, Digester, Parameters, Salt, Status, Streams};
use nix::errno::Errno;

use crate::boundary::{boxed, catch, status, value};

/// `struct blkhash_opts`: the options of a hash.
pub struct Options {
    digest_name: CString,
    pub(crate) algorithm: Algorithm,
    pub(crate) construction: Construction,
    /// `None` is the construction's default.
    pub(crate) block_size: Option<BlockSize>,
    pub(crate) salt: Salt,
    pub(crate) threads: u8,
    pub(crate) queue_depth: c_uint,
    digester: Digester,
}

impl Options {
    pub(crate) fn new(digest_name: &CStr) -> Result<Self, Errno> {
        let algorithm = text(digest_name)?.parse().map_err(|_| Errno::EINVAL)?;
        let options = Self {
            digest_name: digest_name.to_owned(),
            algorithm,
            construction: Construction::Flat,
            block_size: None,
            salt: Salt::EMPTY,
            threads: DEFAULT_THREADS,
            queue_depth: 0,
            digester: Digester::new(algorithm),
        };
        // Some digests are not allowed for checksums.
        options.parameters().map(|_| options)
    }

    pub(crate) fn parameters(&self) -> Result<Parameters, Errno> {
        Parameters::new(self.algorithm, self.construction, self.block_size())
            .and_then(|parameters| parameters.with_salt(self.salt))
            .map_err(|_| Errno::EINVAL)
    }

    fn block_size(&self) -> BlockSize {
        self.block_size.unwrap_or(self.construction.default_block_size())
    }

    pub(crate) fn digester(&self) -> &Digester {
        &self.digester
    }

    pub(crate) fn set_block_size(&mut self, block_size: u64) -> Result<(), Errno> {
        self.block_size = Some(block_size.try_into().map_err(|_| Errno::EINVAL)?);
        Ok(())
    }

    fn set_implementation(&mut self, name: &str) -> Result<(), Errno> {
        let known = blkhash::implementations(self.algorithm);
        let wanted = known.iter().find(|it| it.name() == name).ok_or(Errno::EINVAL)?;
        if wanted.status != Status::Ready {
            return Err(Errno::ENOTSUP);
        }
        self.digester =
            Digester::with_implementation(self.algorithm, name).map_err(|_| Errno::ENOTSUP)?;
        Ok(())
    }
}

/// `blkhash_opts_new()`.
///
/// # Safety
///
/// `digest_name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_new(digest_name: *const c_char) -> *mut Options {
    // SAFETY: the caller's promise.
    boxed(catch(|| Options::new(unsafe { string(digest_name) }?)))
}

/// `blkhash_opts_free()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`], and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_free(o: *mut Options) {
    if !o.is_null() {
        // SAFETY: `boxed` created it, and the caller gives up ownership.
        let options = unsafe { Box::from_raw(o) };
        let _ = catch(|| {
            drop(options);
            Ok(())
        });
    }
}

/// `blkhash_opts_set_block_size()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_set_block_size(o: *mut Options, block_size: u32) -> c_int {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_mut() };
    set(options, |options| options.set_block_size(block_size.into()))
}

/// `blkhash_opts_set_threads()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_set_threads(o: *mut Options, threads: u8) -> c_int {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_mut() };
    set(options, |options| {
        options.threads = if threads > 0 { threads } else { return Err(Errno::EINVAL) };
        Ok(())
    })
}

/// `blkhash_opts_set_queue_depth()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_set_queue_depth(
    o: *mut Options,
    queue_depth: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_mut() };
    set(options, |options| {
        // `blkhash_aio_completions` returns an int.
        c_int::try_from(queue_depth).map_err(|_| Errno::EINVAL)?;
        options.queue_depth = queue_depth;
        Ok(())
    })
}

/// `blkhash_opts_set_streams()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_set_streams(o: *mut Options, streams: u8) -> c_int {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_mut() };
    set(options, |options| {
        let streams = Streams::new(streams.into()).ok_or(Errno::EINVAL)?;
        options.construction = Construction::Streams(streams);
        Ok(())
    })
}

/// `blkhash_opts_set_construction()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`], `construction` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_set_construction(
    o: *mut Options,
    construction: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_mut() };
    set(options, |options| {
        // SAFETY: the caller's promise.
        let name = text(unsafe { string(construction) }?)?;
        options.construction = name.parse().map_err(|_| Errno::EINVAL)?;
        Ok(())
    })
}

/// `blkhash_opts_set_salt()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`], `salt` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_set_salt(
    o: *mut Options,
    salt: *const c_void,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_mut() };
    set(options, |options| {
        if salt.is_null() && size > 0 || size > Salt::MAX {
            return Err(Errno::EINVAL);
        }
        let bytes = if size == 0 {
            &[]
        } else {
            // SAFETY: the caller's promise; `salt` is not null.
            unsafe { slice::from_raw_parts(salt.cast::<u8>(), size) }
        };
        options.salt = Salt::try_from(bytes).map_err(|_| Errno::EINVAL)?;
        Ok(())
    })
}

/// `blkhash_opts_set_implementation()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`], `implementation` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_set_implementation(
    o: *mut Options,
    implementation: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_mut() };
    set(options, |options| {
        // SAFETY: the caller's promise.
        options.set_implementation(text(unsafe { string(implementation) }?)?)
    })
}

/// `blkhash_opts_get_digest_name()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_get_digest_name(o: *const Options) -> *const c_char {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_ref() };
    options.map_or_else(
        || value(Err(Errno::EINVAL), ptr::null()),
        |options| options.digest_name.as_ptr(),
    )
}

/// `blkhash_opts_get_block_size()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_get_block_size(o: *const Options) -> u32 {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_ref() };
    options
        .map_or_else(|| value(Err(Errno::EINVAL), 0), |options| options.block_size().get() as u32)
}

/// `blkhash_opts_get_threads()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_get_threads(o: *const Options) -> u8 {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_ref() };
    options.map_or_else(|| value(Err(Errno::EINVAL), 0), |options| options.threads)
}

/// `blkhash_opts_get_queue_depth()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_get_queue_depth(o: *const Options) -> c_uint {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_ref() };
    options.map_or_else(|| value(Err(Errno::EINVAL), 0), |options| options.queue_depth)
}

/// `blkhash_opts_get_streams()`.
///
/// # Safety
///
/// `o` is null or from [`blkhash_opts_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_opts_get_streams(o: *const Options) -> u8 {
    // SAFETY: the caller's promise.
    let options = unsafe { o.as_ref() };
    options.map_or_else(
        || value(Err(Errno::EINVAL), 0),
        |options| match options.construction {
            Construction::Streams(streams) => streams.count() as u8,
            _ => 0,
        },
    )
}

fn set(
    options: Option<&mut Options>,
    set: impl FnOnce(&mut Options) -> Result<(), Errno>,
) -> c_int {
    status(catch(|| set(options.ok_or(Errno::EINVAL)?)))
}

/// Returns the string at `text`.
///
/// # Safety
///
/// `text` is null or a string that does not change for `'a`.
pub(crate) unsafe fn string<'a>(text: *const c_char) -> Result<&'a CStr, Errno> {
    if text.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller's promise; `text` is not null.
    Ok(unsafe { CStr::from_ptr(text) })
}

fn text(text: &CStr) -> Result<&str, Errno> {
    text.to_str().map_err(|_| Errno::EINVAL)
}

/// The number of threads since the first release of blkhash.
const DEFAULT_THREADS: u8 = 4;
