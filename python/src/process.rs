//! Detects the use of an object in a process that was forked from the one that created it.
//!
//! A child has the memory of its parent and none of its threads. A thread that is missing may hold a lock or may
//! have been asked for a result, and the connection to a server is shared. An object is therefore used and dropped
//! only by the process that created it.

use std::mem;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use pyo3::prelude::*;

use crate::errors::{self, Failure};

/// The identity of a process, which differs from its parents' and children's.
///
/// The ID is not enough, because a child in its own PID namespace may have the ID of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    id: u32,
    generation: u32,
}

impl Process {
    /// Returns the identity of the calling process.
    pub fn current() -> Self {
        Self { id: std::process::id(), generation: GENERATION.load(SeqCst) }
    }
}

/// Python calls this in a child, after `os.fork()`.
#[pyfunction(name = "_forked")]
pub fn forked() {
    GENERATION.fetch_add(1, SeqCst);
}

/// A value that only the process that created it uses and drops.
pub struct Owned<T> {
    /// `None` only while it is dropped.
    value: Option<T>,
    process: Process,
}

impl<T> Owned<T> {
    pub fn new(value: T) -> Self {
        Self { value: Some(value), process: Process::current() }
    }

    /// Returns the value on a thread that does not run Python.
    ///
    /// # Errors
    ///
    /// Fails in another process.
    pub fn here(&self) -> Result<&T, Failure> {
        self.value().ok_or_else(|| Failure::Other("belongs to another process".into()))
    }

    fn value(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.process == Process::current())
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// Fails in another process. `what` names the value for the message.
    pub fn get(&self, py: Python<'_>, what: &str) -> PyResult<&T> {
        self.value().ok_or_else(|| {
            let message = format!(
                "this {what} belongs to the process that created it: create another one after the fork"
            );
            errors::fork(py, &message)
        })
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != Process::current() {
            mem::forget(self.value.take());
        }
    }
}

/// The number of forks that led to this process.
static GENERATION: AtomicU32 = AtomicU32::new(0);
