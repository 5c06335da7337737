//! Errors on their way to C: errno values, and panics made into one.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use nix::errno::Errno;

/// Runs `call`. A panic, which is a bug of this library, becomes an error.
///
/// The caller must not use what `call` has changed after a panic, other than to drop it.
pub(crate) fn catch<T>(call: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(PANICKED))
}

/// What functions that return 0 or an error return.
pub(crate) fn status(result: Result<(), Errno>) -> c_int {
    result.map_or_else(|error| error as c_int, |()| 0)
}

/// What functions that return a count, a descriptor or a negative error return.
pub(crate) fn count(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|error| -(error as c_int))
}

/// What constructors return: a pointer for C to keep, or null with errno set.
pub(crate) fn boxed<T>(result: Result<T, Errno>) -> *mut T {
    match result {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(error) => {
            error.set();
            ptr::null_mut()
        }
    }
}

/// What getters return: `otherwise`, with errno set, where they were handed nothing.
pub(crate) fn value<T>(result: Result<T, Errno>, otherwise: T) -> T {
    result.unwrap_or_else(|error| {
        error.set();
        otherwise
    })
}

/// The errno value of a bug: the state is not recoverable.
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
