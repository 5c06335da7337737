//! A bound for the threads that hash, where there are more of them that read.

use std::sync::{Condvar, Mutex};

/// Lets so many threads in at once.
pub(crate) struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A thread that was let in.
pub(crate) struct Slot<'a>(&'a Slots);

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for its turn.
    pub(crate) fn take(&self) -> Slot<'_> {
        let free = self.free.lock().expect("no thread panicked");
        let mut free = self.freed.wait_while(free, |free| *free == 0).expect("no thread panicked");
        *free -= 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().expect("no thread panicked") += 1;
        self.0.freed.notify_one();
    }
}
