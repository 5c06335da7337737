//! Buffers that C lends.

use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::Arc;
use std::thread;

use crate::boundary::PANICKED;
use crate::completions::{Completion, Completions};

/// A buffer that C lends until this value is dropped, which adds a completion.
pub(crate) struct Lent {
    data: *const u8,
    length: usize,
    completions: Arc<Completions>,
    user_data: *mut c_void,
}

// SAFETY: the bytes do not change until this is dropped (`Lent::new`), so any thread may read them.
// `user_data` is never followed.
unsafe impl Send for Lent {}
// SAFETY: as above, and nothing can be changed through a reference.
unsafe impl Sync for Lent {}

impl Lent {
    /// Lends the `length` bytes at `data`.
    ///
    /// # Safety
    ///
    /// The bytes are readable and do not change until this is dropped.
    pub(crate) unsafe fn new(
        data: *const u8,
        length: usize,
        completions: Arc<Completions>,
        user_data: *mut c_void,
    ) -> Self {
        Self { data, length, completions, user_data }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: `Lent::new` requires that the bytes are readable until this is dropped.
        unsafe { slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let error = if thread::panicking() { PANICKED as c_int } else { 0 };
        self.completions.complete(Completion { user_data: self.user_data, error });
    }
}
