//! `struct blkhash` and the functions that feed it.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{mem, ptr, slice};

use blkhash::{Construction, Hasher, Parameters};
use nix::errno::Errno;

use crate::boundary::{boxed, catch, status, value};
use crate::completions::Completions;
use crate::options::{Options, string};
use crate::process::Process;

/// `struct blkhash`: a hash in progress.
pub struct Hash {
    /// `None` after it was finalized.
    hasher: Mutex<Option<Hasher>>,
    parameters: Parameters,
    /// The first error as an errno value, 0 before.
    error: AtomicI32,
    /// The asynchronous updates, if the options have a queue depth.
    pub(crate) completions: Option<Arc<Completions>>,
    threads: usize,
    implementation: CString,
    /// The process that runs the threads of the hash. A child has none of them.
    process: Process,
}

impl Hash {
    fn new(options: &Options) -> Result<Self, Errno> {
        let parameters = options.parameters()?;
        let threads = options.threads.into();
        let digester = options.digester();
        let blocks = match parameters.construction() {
            Construction::Linear => 1,
            _ => (FULL_BATCH / parameters.block_size().get()).max(1),
        };
        let completions = match options.queue_depth {
            0 => None,
            depth => Some(Arc::new(Completions::new(depth as usize)?)),
        };
        let implementation = digester.implementation_for(blocks).name();
        Ok(Self {
            hasher: Mutex::new(Some(Hasher::with_digester(parameters, digester, threads))),
            parameters,
            error: AtomicI32::new(0),
            completions,
            threads,
            implementation: CString::new(implementation).map_err(|_| Errno::EINVAL)?,
            process: Process::current(),
        })
    }

    /// Returns the hash if it belongs to this process and has no error. Does not take its lock.
    pub(crate) fn usable(hash: Option<&Self>) -> Result<&Self, Errno> {
        let hash = Self::own(hash)?;
        hash.check_error()?;
        Ok(hash)
    }

    /// Returns the hash if it is not null and belongs to this process.
    fn own(hash: Option<&Self>) -> Result<&Self, Errno> {
        hash.filter(|hash| hash.process == Process::current()).ok_or(Errno::EINVAL)
    }

    fn check_error(&self) -> Result<(), Errno> {
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(Errno::from_raw(error)),
        }
    }

    /// Returns the hasher after earlier calls have ended, if none of them failed.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Hasher>>, Errno> {
        let hasher = self.hasher.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_error()?;
        Ok(hasher)
    }

    /// Calls `take` with the hasher. An error other than EAGAIN is kept for all later calls, because
    /// a part of the content is missing. Calls from several threads wait for each other.
    pub(crate) fn with_hasher(
        hash: Option<&Self>,
        take: impl FnOnce(&Self, &mut Hasher) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let hash = Self::own(hash)?;
        let mut hasher = hash.lock()?;
        let hasher = hasher.as_mut().ok_or(Errno::EINVAL)?;
        hash.keep_error(catch(|| take(hash, hasher)))
    }

    fn finalize(hash: Option<&Self>, md_value: *mut u8) -> Result<usize, Errno> {
        let hash = Self::own(hash)?;
        let mut hasher = hash.lock()?;
        if hasher.is_some() && md_value.is_null() {
            return hash.keep_error(Err(Errno::EINVAL));
        }
        let hasher = hasher.take().ok_or(Errno::EINVAL)?;
        let checked = hash.parameters.check_length(hasher.length()).map_err(|_| Errno::EINVAL);
        hash.keep_error(checked)?;
        let digest = hash.keep_error(catch(|| Ok(hasher.finalize())))?;
        let bytes = digest.as_bytes();
        // SAFETY: `blkhash_final` requires room for BLKHASH_MAX_MD_SIZE bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), md_value, bytes.len()) };
        Ok(bytes.len())
    }

    fn keep_error<T>(&self, result: Result<T, Errno>) -> Result<T, Errno> {
        if let Err(error) = result
            && error != Errno::EAGAIN
        {
            self.error.store(error as i32, Ordering::Release);
        }
        result
    }

    /// Returns the size in bytes from which a buffer is not copied. The caller waits until such a
    /// buffer is hashed.
    fn in_place_size(&self) -> usize {
        if self.threads > 1 { 4 * FULL_BATCH } else { usize::MAX }
    }
}

/// `blkhash_new()`.
#[unsafe(no_mangle)]
pub extern "C" fn blkhash_new() -> *mut Hash {
    boxed(catch(|| Hash::new(&Options::new(DEFAULT_DIGEST)?)))
}

/// `blkhash_new_streams4()`.
///
/// # Safety
///
/// `digest_name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_new_streams4(
    block_size: usize,
    digest_name: *const c_char,
) -> *mut Hash {
    boxed(catch(|| {
        // SAFETY: the caller's promise.
        let mut options = Options::new(unsafe { string(digest_name) }?)?;
        options.construction = Construction::default();
        options.set_block_size(block_size as u64)?;
        Hash::new(&options)
    }))
}

/// `blkhash_new_opts()`.
///
/// # Safety
///
/// `opts` is null or from `blkhash_opts_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_new_opts(opts: *const Options) -> *mut Hash {
    // SAFETY: the caller's promise.
    let options = unsafe { opts.as_ref() };
    boxed(catch(|| Hash::new(options.ok_or(Errno::EINVAL)?)))
}

/// `blkhash_update()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash. `buf` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_update(h: *mut Hash, buf: *const c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    status(Hash::with_hasher(hash, |hash, hasher| {
        checked_length(buf, len, hasher)?;
        if len >= hash.in_place_size() {
            // SAFETY: the caller's promise; `buf` is not null and `len` fits in an isize.
            hasher.update_in_place(unsafe { slice::from_raw_parts(buf.cast(), len) });
        } else if len > 0 {
            // SAFETY: the caller's promise; `buf` is not null and `len` fits in an isize.
            hasher.update(unsafe { slice::from_raw_parts(buf.cast(), len) });
        }
        Ok(())
    }))
}

/// `blkhash_zero()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_zero(h: *mut Hash, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    status(Hash::with_hasher(hash, |_, hasher| {
        check_total(len, hasher)?;
        hasher.zero(len as u64);
        Ok(())
    }))
}

/// `blkhash_final()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash. `md_value` is null or has room
/// for `BLKHASH_MAX_MD_SIZE` bytes. `md_len` is null or points to room for its value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_final(
    h: *mut Hash,
    md_value: *mut c_uchar,
    md_len: *mut c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    status(Hash::finalize(hash, md_value).map(|length| {
        // SAFETY: the caller's promise.
        if let Some(md_len) = unsafe { md_len.as_mut() } {
            *md_len = length as c_uint;
        }
    }))
}

/// `blkhash_free()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_free(h: *mut Hash) {
    if h.is_null() {
        return;
    }
    // SAFETY: `boxed` created it, and the caller gives up ownership.
    let hash = unsafe { Box::from_raw(h) };
    if hash.process == Process::current() {
        let _ = catch(|| {
            drop(hash);
            Ok(())
        });
    } else {
        // A thread of the parent may have held any lock when it forked.
        mem::forget(hash);
    }
}

/// `blkhash_implementation()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_implementation(h: *const Hash) -> *const c_char {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    value(hash.map(|hash| hash.implementation.as_ptr()).ok_or(Errno::EINVAL), ptr::null())
}

/// Checks that the `len` bytes at `buf` can be appended.
pub(crate) fn checked_length(buf: *const c_void, len: usize, hasher: &Hasher) -> Result<(), Errno> {
    if (buf.is_null() && len > 0) || isize::try_from(len).is_err() {
        return Err(Errno::EINVAL);
    }
    check_total(len, hasher)
}

/// Checks that the content can grow by `len` bytes.
fn check_total(len: usize, hasher: &Hasher) -> Result<(), Errno> {
    hasher.length().checked_add(len as u64).map(drop).ok_or(Errno::EOVERFLOW)
}

/// The digest of `blkhash_new`.
const DEFAULT_DIGEST: &CStr = c"sha256";

/// Bytes that a thread hashes together.
const FULL_BATCH: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The content that was passed to the failing call is missing.
    #[test]
    fn a_call_that_waits_for_a_failing_call_fails() {
        let hash = Hash::new(&Options::new(DEFAULT_DIGEST).unwrap()).unwrap();
        let failing = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let result = Hash::with_hasher(Some(&hash), |_, _| {
                    failing.wait();
                    // The other thread waits for the lock by now, or comes later. It fails either
                    // way.
                    thread::sleep(Duration::from_millis(100));
                    Err(Errno::EIO)
                });
                assert_eq!(result, Err(Errno::EIO));
            });
            failing.wait();
            let result = Hash::with_hasher(Some(&hash), |_, hasher| {
                hasher.update(b"x");
                Ok(())
            });
            assert_eq!(result, Err(Errno::EIO));
        });
        assert_eq!(Hash::finalize(Some(&hash), ptr::null_mut()), Err(Errno::EIO));
    }
}
