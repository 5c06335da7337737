//! Converts results for C. A failure and a panic become an error.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use crate::error_object::{self, Error};
use crate::failure::Failure;

/// Returns the result of `call`. If it fails or panics, writes an error to `*error`, and returns `otherwise`.
///
/// # Safety
///
/// `error` is null or can be written.
pub(crate) unsafe fn run<T>(
    error: *mut *mut Error,
    otherwise: T,
    call: impl FnOnce() -> Result<T, Failure>,
) -> T {
    let result = caught(call);
    let set = |to| {
        if !error.is_null() {
            // SAFETY: the caller's promise. What C has there may be uninitialized.
            unsafe { error.write(to) };
        }
    };
    match result {
        Ok(value) => {
            set(ptr::null_mut());
            value
        }
        Err(failure) => {
            if !error.is_null() {
                set(error_object::create(failure));
            }
            otherwise
        }
    }
}

/// Calls `work` and converts a panic, which is a bug of this library, to a failure.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Failure::internal()))
}

/// Returns the result of `call`, or `otherwise` if it fails or panics.
pub(crate) fn quiet<T>(otherwise: T, call: impl FnOnce() -> Result<T, Failure>) -> T {
    // SAFETY: null is allowed.
    unsafe { run(ptr::null_mut(), otherwise, call) }
}

/// Returns the string at `text`. `what` names it for messages.
///
/// # Safety
///
/// `text` is null or a string that does not change for `'a`.
pub(crate) unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a OsStr, Failure> {
    if text.is_null() {
        return Err(Failure::argument(format!("the {what} is NULL")));
    }
    // SAFETY: the caller's promise; `text` is not null.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

/// Returns the string at `text`, which must be UTF-8.
///
/// # Safety
///
/// Like [`string`].
pub(crate) unsafe fn utf8<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    let text = unsafe { string(text, what) }?;
    text.to_str().ok_or_else(|| Failure::argument(format!("the {what} is not UTF-8")))
}

/// Returns the `length` bytes at `data`.
///
/// # Safety
///
/// `data` is null or has that many bytes, which do not change for `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    check_buffer(data, length)?;
    match length {
        0 => Ok(&[]),
        // SAFETY: the caller's promise; `data` is not null.
        _ => Ok(unsafe { slice::from_raw_parts(data.cast(), length) }),
    }
}

/// Fails if there can be no `length` bytes at `data`.
pub(crate) fn check_buffer(data: *const c_void, length: usize) -> Result<(), Failure> {
    if data.is_null() && length > 0 {
        return Err(Failure::argument("the buffer is NULL"));
    }
    if isize::try_from(length).is_err() {
        return Err(Failure::argument("the buffer is longer than any memory"));
    }
    Ok(())
}

/// Writes a value to a pointer of C. `what` names it for messages.
///
/// # Safety
///
/// `to` is null or can be written.
pub(crate) unsafe fn put<T>(to: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument(format!("the pointer for the {what} is NULL")));
    }
    // SAFETY: the caller's promise. What C has there may be uninitialized.
    unsafe { to.write(value) };
    Ok(())
}
