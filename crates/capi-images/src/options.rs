//! `struct blksum_opts` and its functions.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::boundary::{bytes, quiet, run, utf8};
use crate::error_object::Error;
use crate::failure::Failure;
use crate::handle::{self, Handle};
use crate::settings::Settings;

/// `struct blksum_opts`.
pub enum Options {}

impl Handle for Options {
    type Value = Mutex<Settings>;
    const TAG: u32 = u32::from_be_bytes(*b"opts");
    const NOUN: &'static str = "object for options";
}

/// Returns the settings of options. Null are the defaults.
///
/// # Safety
///
/// `opts` is null or came from this library.
pub(crate) unsafe fn settings(opts: *const Options) -> Result<Settings, Failure> {
    if opts.is_null() {
        return Ok(Settings::default());
    }
    // SAFETY: the caller's promise.
    let settings = unsafe { handle::value(opts) }?;
    let settings = settings.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(settings.clone())
}

/// Changes options, or keeps them as they are.
///
/// # Safety
///
/// `opts` is null or came from this library.
unsafe fn change(
    opts: *mut Options,
    change: impl FnOnce(&mut Settings) -> Result<(), Failure>,
) -> Result<c_int, Failure> {
    // SAFETY: the caller's promise.
    let settings = unsafe { handle::value(opts.cast_const()) }?;
    let mut settings = settings.lock().unwrap_or_else(PoisonError::into_inner);
    let mut changed = settings.clone();
    change(&mut changed)?;
    *settings = changed;
    Ok(0)
}

/// `blksum_opts_new()`.
#[unsafe(no_mangle)]
pub extern "C" fn blksum_opts_new() -> *mut Options {
    quiet(ptr::null_mut(), || Ok(handle::create(Mutex::new(Settings::default()))))
}

/// `blksum_opts_free()`.
///
/// # Safety
///
/// `opts` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_opts_free(opts: *mut Options) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(opts) }
}

/// `blksum_opts_set()`.
///
/// # Safety
///
/// Objects are null or came from this library, strings are null or end with NUL, and `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_opts_set(
    opts: *mut Options,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let name = utf8(name, "name of the option")?;
            let value = if value.is_null() { None } else { Some(utf8(value, name)?) };
            change(opts, |settings| settings.set(name, value))
        })
    }
}

/// `blksum_opts_set_number()`.
///
/// # Safety
///
/// Like [`blksum_opts_set`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_opts_set_number(
    opts: *mut Options,
    name: *const c_char,
    value: u64,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let name = utf8(name, "name of the option")?;
            change(opts, |settings| settings.set_number(name, value))
        })
    }
}

/// `blksum_opts_set_bytes()`.
///
/// # Safety
///
/// Like [`blksum_opts_set`], and `value` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_opts_set_bytes(
    opts: *mut Options,
    name: *const c_char,
    value: *const c_void,
    size: usize,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let name = utf8(name, "name of the option")?;
            let value = bytes(value, size)?;
            change(opts, |settings| settings.set_bytes(name, value))
        })
    }
}
