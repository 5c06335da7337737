//! `bytes` objects that other threads hash after `update()` has returned.
//!
//! They cannot change, so they need no copy. A thread that hashes does not touch the interpreter: it says that it is
//! done, and a later call of Python drops the reference.

#![allow(unsafe_code)]

use std::slice;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The objects that threads of one hash read, and how many bytes wait for them.
#[derive(Default)]
pub struct Lent {
    objects: Vec<(Py<PyBytes>, Weak<()>)>,
    waiting: Arc<Waiting>,
}

/// The bytes of an object, which [`Lent`] keeps alive until this is dropped.
pub struct Bytes {
    data: *const u8,
    length: usize,
    /// Part of `length` that is counted in `waiting`: all or nothing.
    counted: usize,
    waiting: Arc<Waiting>,
    /// Ends with this.
    _alive: Arc<()>,
}

/// Number of bytes that are not hashed yet.
#[derive(Default)]
struct Waiting {
    bytes: Mutex<usize>,
    fewer: Condvar,
}

impl Lent {
    /// Keeps `object` until its bytes are dropped.
    pub fn lend(&mut self, object: &Bound<'_, PyBytes>) -> Bytes {
        self.release();
        let alive = Arc::new(());
        self.objects.push((object.clone().unbind(), Arc::downgrade(&alive)));
        let (data, length) = (object.as_bytes().as_ptr(), object.as_bytes().len());
        Bytes { data, length, counted: 0, waiting: Arc::clone(&self.waiting), _alive: alive }
    }

    /// Drops the objects whose bytes were dropped.
    pub fn release(&mut self) {
        self.objects.retain(|(_, alive)| alive.strong_count() > 0);
    }
}

impl Bytes {
    /// Waits until fewer than `most` bytes wait to be hashed, and counts these as well. Only for the thread that
    /// passes them on at once: nothing ends the wait if they stay where they are.
    pub fn wait(&mut self, most: usize) {
        let waiting = self.waiting.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.waiting.fewer.wait_while(waiting, |bytes| *bytes >= most);
        *waiting.unwrap_or_else(PoisonError::into_inner) += self.length;
        self.counted = self.length;
    }
}

// SAFETY: any thread may read bytes that do not change, and drop what else is in here.
unsafe impl Send for Bytes {}
// SAFETY: as above, and nothing can be changed through a reference.
unsafe impl Sync for Bytes {}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the bytes of such an object neither move nor change while there is a reference to it. `Lent` has one
        // until `_alive` is dropped, and its owner drops it after the threads that have this.
        unsafe { slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        *self.waiting.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= self.counted;
        self.waiting.fewer.notify_all();
    }
}
