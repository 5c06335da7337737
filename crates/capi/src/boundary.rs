//! Converts errors for C. They become errno values, and a panic becomes an error.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use nix::errno::Errno;

/// Calls `call` and converts a panic, which is a bug of this library, to an error.
///
/// After a panic the caller must only drop the values that `call` has changed.
pub(crate) fn catch<T>(call: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(PANICKED))
}

/// Converts the result of functions that return 0 or an error.
pub(crate) fn status(result: Result<(), Errno>) -> c_int {
    result.map_or_else(|error| error as c_int, |()| 0)
}

/// Converts the result of functions that return a count, a descriptor or a negative error.
pub(crate) fn count(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|error| -(error as c_int))
}

/// Converts the result of constructors to a pointer that C owns, or to null with errno set.
pub(crate) fn boxed<T>(result: Result<T, Errno>) -> *mut T {
    match result {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(error) => {
            error.set();
            ptr::null_mut()
        }
    }
}

/// Converts the result of getters. An error sets errno and gives `otherwise`.
pub(crate) fn value<T>(result: Result<T, Errno>, otherwise: T) -> T {
    result.unwrap_or_else(|error| {
        error.set();
        otherwise
    })
}

/// The errno value of a bug.
pub(crate) const PANICKED: Errno = Errno::ENOTRECOVERABLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(catch::<()>(|| panic!("for the test")), Err(PANICKED));
        assert_eq!(status(catch(|| panic!("for the test"))), Errno::ENOTRECOVERABLE as c_int);
        assert_eq!(count(catch(|| panic!("for the test"))), -(Errno::ENOTRECOVERABLE as c_int));
        assert!(boxed::<u8>(catch(|| panic!("for the test"))).is_null());
    }
}
