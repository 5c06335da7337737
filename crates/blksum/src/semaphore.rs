//! Limits the number of hashing threads if more threads read.

use std::sync::PoisonError;

use crate::sync::{Condvar, Mutex, MutexGuard};

/// Admits a limited number of threads at once.
pub(crate) struct Semaphore {
    free: Mutex<usize>,
    freed: Condvar,
}

/// Admission of one thread. Dropping it frees the permit.
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

    /// A number is always consistent, so a poisoned lock is safe to use.
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

#[cfg(all(test, shuttle))]
mod models;
