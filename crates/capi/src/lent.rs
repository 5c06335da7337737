//! Buffers that C lends.

use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::boundary::PANICKED;
use crate::completions::{Completion, Completions};

/// A buffer that C lends until this value is dropped.
pub(crate) struct Lent {
    data: *const u8,
    length: usize,
    lender: Lender,
}

/// The receiver of a buffer when it is returned.
pub(crate) enum Lender {
    /// The caller that fetches completions.
    Asynchronous(Arc<Completions>, *mut c_void),
    /// A thread in [`Returned::wait`].
    Waiting(Arc<Returned>),
}

/// Signals a thread that a buffer was returned. A channel would leave memory behind in that thread.
#[derive(Default)]
pub(crate) struct Returned {
    is_back: Mutex<bool>,
    changed: Condvar,
}

impl Returned {
    pub(crate) fn wait(&self) {
        let is_back = self.is_back.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(is_back, |is_back| !*is_back));
    }

    fn tell(&self) {
        *self.is_back.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
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
    pub(crate) unsafe fn new(data: *const u8, length: usize, lender: Lender) -> Self {
        Self { data, length, lender }
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
        match &self.lender {
            Lender::Asynchronous(completions, user_data) => {
                let error = if thread::panicking() { PANICKED as c_int } else { 0 };
                completions.complete(Completion { user_data: *user_data, error });
            }
            Lender::Waiting(returned) => returned.tell(),
        }
    }
}
