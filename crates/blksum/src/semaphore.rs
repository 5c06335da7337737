//! A bound for the threads that hash, where there are more of them that read.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Admits up to a number of threads at once.
pub(crate) struct Semaphore {
    free: Mutex<usize>,
    freed: Condvar,
}

/// The admission of one thread, until it is dropped.
pub(crate) struct Permit<'a>(&'a Semaphore);

impl Semaphore {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Blocks until a permit is free, and takes it.
    pub(crate) fn acquire(&self) -> Permit<'_> {
        let free = self.freed.wait_while(self.free(), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Permit(self)
    }

    /// A number is whole at any time, so a poisoned lock hides nothing.
    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.freed.notify_one();
    }
}
