//! Version of the library.

use std::ffi::c_char;

/// `blksum_version()`.
#[unsafe(no_mangle)]
pub extern "C" fn blksum_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
