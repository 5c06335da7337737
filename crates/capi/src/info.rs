//! Version and digests of the library.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use blkhash::{Algorithm, BlockSize, Construction, Parameters};

/// `blkhash_version()`.
#[unsafe(no_mangle)]
pub extern "C" fn blkhash_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// `blkhash_digests()`.
///
/// # Safety
///
/// `names` is null or has room for `count` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_digests(names: *mut *const c_char, count: usize) -> usize {
    let known = digests();
    if names.is_null() {
        return known.len();
    }
    for (index, name) in known.iter().take(count).enumerate() {
        // SAFETY: `index` is less than `count`.
        unsafe { names.add(index).write(name.as_ptr()) };
    }
    known.len().min(count)
}

/// Returns the names of the digests that can make a checksum.
fn digests() -> &'static [CString] {
    static DIGESTS: OnceLock<Vec<CString>> = OnceLock::new();
    DIGESTS.get_or_init(|| {
        let usable = |&algorithm: &Algorithm| {
            Parameters::new(algorithm, Construction::Flat, BlockSize::DEFAULT).is_ok()
        };
        let names = Algorithm::ALL.iter().copied().filter(usable).map(Algorithm::name);
        names.filter_map(|name| CString::new(name).ok()).collect()
    })
}
