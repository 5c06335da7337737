//! Runs work on a thread of its own, and watches it.
//!
//! The caller's thread polls for signals, reports progress and asks for cancellation, all of which need the
//! interpreter. The work never does.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blksum::Progress;
use pyo3::prelude::*;

use crate::errors::{self, Failure};
use crate::unfinished::Unfinished;

/// Callbacks of the caller during work.
pub struct Watch<'a, 'py> {
    /// A function that is called with the number of bytes done and their total.
    pub progress: Option<&'a Bound<'py, PyAny>>,
    /// An object like `threading.Event`.
    pub cancel: Option<&'a Bound<'py, PyAny>>,
}

impl Watch<'_, '_> {
    /// Watches for signals only.
    pub const NONE: Self = Self { progress: None, cancel: None };

    /// Returns the result of `work`.
    ///
    /// # Errors
    ///
    /// Fails if the work fails or is cancelled, or if a handler of a signal, the callback or the event raises an
    /// exception. Then the work is cancelled. If it does not end soon, its thread remains, and ends later.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Progress) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        self.run_passes(py, |[progress]: &[Progress; 1]| work(progress))
    }

    /// Returns the result of `work` that takes several passes. Their progress is reported as one.
    ///
    /// # Errors
    ///
    /// Fails like [`run`](Self::run).
    pub fn run_passes<T: Send + 'static, const N: usize>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&[Progress; N]) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        self.check_cancel(py)?;
        let progress = Arc::new(std::array::from_fn(|_| Progress::new()));
        let (sender, receiver) = mpsc::sync_channel(1);
        let shared = Arc::clone(&progress);
        let spawned = thread::Builder::new().name("blkhash".into()).spawn(move || {
            // The receiver is gone if the caller was interrupted.
            let _ = sender.send(work(&shared));
        });
        spawned
            .map_err(|error| errors::other(py, &format!("no thread can be started: {error}")))?;
        let receiver = Mutex::new(receiver);
        match self.wait(py, &receiver, &*progress) {
            Ok(result) => {
                let result = result.map_err(|failure| failure.into_err(py))?;
                self.report(&*progress)?;
                Ok(result)
            }
            Err(error) => {
                progress.iter().for_each(Progress::cancel);
                let _ = py.detach(|| receive(&receiver, PATIENCE));
                Err(error)
            }
        }
    }

    /// Returns the result of `work` like [`run_passes`](Self::run_passes), and removes the files that it makes if it fails.
    pub fn write<T: Send + 'static, const N: usize>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Arc<Unfinished>, &[Progress; N]) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let files = Arc::new(Unfinished::new());
        let result = self.run_passes(py, {
            let files = Arc::clone(&files);
            move |progress| work(&files, progress)
        });
        // The work may continue for a while.
        result.inspect_err(|_| files.abandon())
    }

    /// Waits for the result.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        receiver: &Mutex<Receiver<Result<T, Failure>>>,
        progress: &[Progress],
    ) -> PyResult<Result<T, Failure>> {
        let mut reported = Instant::now();
        loop {
            match py.detach(|| receive(receiver, POLL)) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(errors::other(py, "a thread has panicked"));
                }
            }
            py.check_signals()?;
            self.check_cancel(py)?;
            if reported.elapsed() >= REPORT {
                self.report(progress)?;
                reported = Instant::now();
            }
        }
    }

    fn report(&self, progress: &[Progress]) -> PyResult<()> {
        if let Some(callback) = self.progress {
            let sum = |of: fn(&Progress) -> u64| progress.iter().map(of).sum::<u64>();
            callback.call1((sum(Progress::done), sum(Progress::total)))?;
        }
        Ok(())
    }

    fn check_cancel(&self, py: Python<'_>) -> PyResult<()> {
        match self.cancel {
            Some(event) if event.call_method0("is_set")?.is_truthy()? => Err(errors::cancelled(py)),
            _ => Ok(()),
        }
    }
}

/// Receives a value. A receiver is not Sync, hence the lock, which no other thread takes.
fn receive<T>(receiver: &Mutex<Receiver<T>>, patience: Duration) -> Result<T, RecvTimeoutError> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(patience)
}

/// Time between looks at signals and the event: short for a person.
const POLL: Duration = Duration::from_millis(50);

/// Time between reports of progress.
const REPORT: Duration = Duration::from_millis(250);

/// Maximum time that an interrupted caller waits for the work to end. A read from a dead server does not end.
const PATIENCE: Duration = Duration::from_secs(1);
