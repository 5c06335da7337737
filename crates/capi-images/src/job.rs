//! Runs work on a thread of the library, while the caller's thread reports progress.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use blksum::Progress;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use crate::boundary::caught;
use crate::failure::{Failure, Kind};

/// `blksum_progress`.
#[allow(non_camel_case_types, reason = "is the name in C")]
pub type blksum_progress =
    Option<unsafe extern "C" fn(user_data: *mut c_void, done: u64, total: u64) -> c_int>;

/// A callback with its argument, which stay on the caller's thread.
pub(crate) struct Watch {
    pub(crate) progress: blksum_progress,
    pub(crate) user_data: *mut c_void,
}

impl Watch {
    /// Watches nothing.
    pub(crate) const NONE: Self = Self { progress: None, user_data: std::ptr::null_mut() };

    /// Returns the result of `work`. If the callback cancels it and it does not end soon, its thread remains, and
    /// ends later.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Progress) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let progress = Arc::new(Progress::new());
        let cancelled = || Err(Failure::new(Kind::Cancelled, "cancelled"));
        if self.is_cancelled(&progress) {
            return cancelled();
        }
        let shared = Arc::clone(&progress);
        let (slot, thread) = start(move || work(&shared))?;
        let result = loop {
            let interval = self.progress.map(|_| INTERVAL);
            match slot.take(interval) {
                Some(result) => break result,
                None if self.is_cancelled(&progress) => {
                    progress.cancel();
                    if slot.take(Some(PATIENCE)).is_some() {
                        let _ = thread.join();
                    }
                    return cancelled();
                }
                None => {}
            }
        };
        // The memory of the thread is returned before the call.
        thread.join().map_err(|_| Failure::internal())?;
        if result.is_ok() {
            // Nothing is left to cancel.
            self.is_cancelled(&progress);
        }
        result
    }

    fn is_cancelled(&self, progress: &Progress) -> bool {
        let Some(callback) = self.progress else { return false };
        let (done, total) = (progress.done(), progress.total());
        // SAFETY: the header requires that the function can be called with this argument.
        unsafe { callback(self.user_data, done, total) != 0 }
    }
}

/// The place where a thread leaves its result.
///
/// A channel would make the caller's thread known to the standard library, whose memory for a thread of another language
/// looks like a leak.
pub(crate) struct Slot<T> {
    result: Mutex<Option<Result<T, Failure>>>,
    is_there: Condvar,
}

impl<T> Slot<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { result: Mutex::new(None), is_there: Condvar::new() })
    }

    pub(crate) fn put(&self, result: Result<T, Failure>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.is_there.notify_one();
    }

    /// Waits for the result, at most this long.
    pub(crate) fn take(&self, patience: Option<Duration>) -> Option<Result<T, Failure>> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |result: &mut Option<_>| result.is_none();
        match patience {
            None => {
                let waited = self.is_there.wait_while(result, is_missing);
                waited.unwrap_or_else(PoisonError::into_inner).take()
            }
            Some(time) => {
                let waited = self.is_there.wait_timeout_while(result, time, is_missing);
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            }
        }
    }
}

/// Starts work on a thread. A panic is a result.
fn start<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<(Arc<Slot<T>>, thread::JoinHandle<()>), Failure> {
    let slot = Slot::new();
    let filled = Arc::clone(&slot);
    let thread = spawn(move || filled.put(caught(work)))?;
    Ok((slot, thread))
}

/// Starts a thread that blocks signals, as do the threads that it starts. Handlers of the program run on its own threads.
/// Signals that report a fault of the thread itself stay enabled.
pub(crate) fn spawn(
    work: impl FnOnce() + Send + 'static,
) -> Result<thread::JoinHandle<()>, Failure> {
    let mut blocked = SigSet::all();
    for own in [Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGSEGV, Signal::SIGTRAP] {
        blocked.remove(own);
    }
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let spawned = thread::Builder::new().name("blksum".into()).spawn(work);
    if let Ok(before) = before {
        // The mask was valid before.
        let _ = before.thread_set_mask();
    }
    spawned.map_err(|error| Failure::new(Kind::Other, format!("no thread can be started: {error}")))
}

/// Time between two reports.
const INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time that cancelled work may take to end. A read from a dead server does not end.
/// Limit in seconds.
const PATIENCE: Duration = Duration::from_secs(1);
