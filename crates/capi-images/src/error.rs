//! The functions of `struct blksum_error`.

use std::ffi::{c_char, c_int};

use crate::boundary::quiet;
use crate::error_object::Error;
use crate::handle;

/// `blksum_error_kind()`.
///
/// # Safety
///
/// `error` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_error_kind(error: *const Error) -> c_int {
    // SAFETY: the caller's promise.
    quiet(0, || Ok(unsafe { handle::value(error) }?.kind as c_int))
}

/// `blksum_error_message()`.
///
/// # Safety
///
/// `error` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_error_message(error: *const Error) -> *const c_char {
    // SAFETY: the caller's promise. The text lives as long as the error.
    quiet(c"no error".as_ptr(), || Ok(unsafe { handle::value(error) }?.message.as_ptr()))
}

/// `blksum_error_errno()`.
///
/// # Safety
///
/// `error` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_error_errno(error: *const Error) -> c_int {
    // SAFETY: the caller's promise.
    quiet(0, || Ok(unsafe { handle::value(error) }?.errno))
}

/// `blksum_error_offset()`.
///
/// # Safety
///
/// `error` is null or came from this library, and `offset` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_error_offset(error: *const Error, offset: *mut u64) -> c_int {
    quiet(0, || {
        // SAFETY: the caller's promise.
        let Some(found) = unsafe { handle::value(error) }?.offset else { return Ok(0) };
        // SAFETY: the caller's promise.
        if let Some(offset) = unsafe { offset.as_mut() } {
            *offset = found;
        }
        Ok(1)
    })
}

/// `blksum_error_free()`.
///
/// # Safety
///
/// `error` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_error_free(error: *mut Error) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(error) }
}
