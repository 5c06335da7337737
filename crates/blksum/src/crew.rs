//! The threads of a pass, each of which takes the next chunk of a plan and works on it.
//! docs/inside/decisions/threads.md says why reads block.

use std::sync::atomic::Ordering;

use blkhash::engine::Stopped;

use crate::look_ahead::{LookAhead, Planned, Planner};
use crate::sync::thread::{self, Scope};
use crate::sync::{AtomicUsize, Mutex};
use crate::{Error, Progress, Tuning};

/// The work on chunks, shared by the threads.
pub(crate) trait Work: Sync {
    type Planner: Planner;
    /// Memory of one thread.
    type Space: Default;

    /// Works on one chunk and hands in the result.
    fn take(
        &self,
        chunk: &<Self::Planner as Planner>::Chunk,
        space: &mut Self::Space,
    ) -> Result<(), Stop>;

    /// Abandons the run. Threads that wait to hand in a result return [`Stop::Abandoned`].
    fn abandon(&self);
}

/// Reason why a thread stops before the end of the content.
pub(crate) enum Stop {
    /// The current chunk could not be planned or read.
    Failed(Error),
    /// A sink rejected the chunk with this number.
    Sink(u64, Error),
    /// Another thread failed.
    Abandoned,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Stopped> for Stop {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Abandoned => Self::Abandoned,
            Stopped::Sink { number, error } => Self::Sink(number, Error::Sink(error)),
        }
    }
}

/// Works on all chunks of `plan`, on the caller's thread and on others that are started if there is
/// data for them. Returns the first error in the order of the content.
pub(crate) fn run<W: Work>(
    work: &W,
    plan: W::Planner,
    threads: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let crew = Crew {
        work,
        progress,
        chunks: LookAhead::new(plan, threads - 1),
        idle_threads: AtomicUsize::new(threads - 1),
        failure: Mutex::new(None),
    };
    thread::scope(|scope| crew.run(scope));
    match crew.failure.into_inner().expect("no thread panicked") {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// Returns the number of threads, and how many of them may compute at once, for a source that wants
/// `queue_depth` reads in flight.
pub(crate) fn threads(queue_depth: usize, tuning: &Tuning) -> (usize, usize) {
    let computing = tuning.threads.clamp(1, MAX_THREADS);
    (computing.max(queue_depth.min(MAX_THREADS)), computing)
}

struct Crew<'a, W: Work> {
    work: &'a W,
    progress: &'a Progress,
    chunks: LookAhead<W::Planner>,
    /// Number of threads that may still be started.
    idle_threads: AtomicUsize,
    /// First error in the order of the content, with the number of its chunk.
    failure: Mutex<Option<(u64, Error)>>,
}

impl<W: Work> Crew<'_, W> {
    /// Works on this thread, and on others that it starts, until nothing is left.
    fn run<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let _guard = AbandonOnPanic(self.work);
        let mut chunk = Default::default();
        if let Err(stop) = self.work(scope, &mut chunk) {
            match stop {
                Stop::Failed(error) => self.fail(chunk.number(), error),
                Stop::Sink(number, error) => self.fail(number, error),
                Stop::Abandoned => {}
            }
            self.work.abandon();
        }
    }

    fn fail(&self, number: u64, error: Error) {
        let mut failure = self.failure.lock().expect("no thread panicked");
        if failure.as_ref().is_none_or(|(first, _)| number < *first) {
            *failure = Some((number, error));
        }
    }

    fn work<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        chunk: &mut <W::Planner as Planner>::Chunk,
    ) -> Result<(), Stop> {
        let mut space = W::Space::default();
        while let Some(is_more) = self.chunks.next(chunk)? {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled.into());
            }
            if chunk.data_length() > 0 && is_more {
                self.start_thread(scope);
            }
            self.work.take(chunk, &mut space)?;
        }
        Ok(())
    }

    /// Starts another thread if the limit and the system allow it.
    fn start_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let taken = self
            .idle_threads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |idle| idle.checked_sub(1));
        if taken.is_ok() {
            // If the thread does not start, the others do its work.
            let _ = thread::Builder::new()
                .name("blksum".to_owned())
                .spawn_scoped(scope, move || self.run(scope));
        }
    }
}

/// Ends the other threads if this one panics, because they would wait for its chunk.
struct AbandonOnPanic<'a, W: Work>(&'a W);

impl<W: Work> Drop for AbandonOnPanic<'_, W> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandon();
        }
    }
}

/// Maximum number of threads that read an image, and of those that hash it. More threads would only
/// cost memory.
/// Limit in threads.
const MAX_THREADS: usize = 1024;

#[cfg(all(test, shuttle))]
mod models;
