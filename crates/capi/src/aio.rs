//! Asynchronous updates, which return before the buffer is hashed.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::AsRawFd;
use std::slice;
use std::sync::Arc;

use nix::errno::Errno;

use crate::boundary::{count, status};
use crate::completions::Completion;
use crate::hash::{Hash, checked_length};
use crate::lent::Lent;

/// `blkhash_aio_update()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash. The `len` bytes at `buf` do not
/// change until the completion of this update was fetched, or the hash was freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_aio_update(
    h: *mut Hash,
    buf: *const c_void,
    len: usize,
    user_data: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    status(Hash::with_hasher(hash, |hash, hasher| {
        let completions = hash.completions.as_ref().ok_or(Errno::ENOTSUP)?;
        checked_length(buf, len, hasher)?;
        completions.start()?;
        let completions = Arc::clone(completions);
        // SAFETY: the caller's promise; the completion is sent only by the drop.
        hasher.update_owned(unsafe { Lent::new(buf.cast(), len, completions, user_data) });
        Ok(())
    }))
}

/// `blkhash_aio_completion_fd()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_aio_completion_fd(h: *mut Hash) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    count(hash.ok_or(Errno::EINVAL).and_then(|hash| {
        let completions = hash.completions.as_ref().ok_or(Errno::ENOTSUP)?;
        Ok(completions.fd().as_raw_fd())
    }))
}

/// `blkhash_aio_completions()`.
///
/// # Safety
///
/// `h` is null or was returned by a function that creates a hash. `out` is null or has room for
/// `count` completions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_aio_completions(
    h: *mut Hash,
    out: *mut Completion,
    count: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    crate::boundary::count(Hash::usable(hash).and_then(|hash| {
        let completions = hash.completions.as_ref().ok_or(Errno::ENOTSUP)?;
        // There are never more completions than updates in flight.
        let count = (count as usize).min(completions.depth());
        if out.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the caller has room for that many, which may be uninitialized.
        let out = unsafe { slice::from_raw_parts_mut(out.cast(), count) };
        Ok(completions.fetch(out) as c_int)
    }))
}
