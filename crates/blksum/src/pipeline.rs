//! One pass over an image. Each thread takes the next chunk, reads it, hashes it for all lanes and
//! hands in the results.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};

use blkhash::Stopped;
use blkimage::Source;

use crate::lane::{Hashed, Lane};
use crate::look_ahead::LookAhead;
use crate::memory::{Memory, fill};
use crate::plan::{Chunk, Piece, Plan, ZeroLimits};
use crate::semaphore::Semaphore;
use crate::tuning::MAX_BUFFER;
use crate::{Error, Progress, Tuning};

/// Feeds the content of `source` to each lane. `lends` allows hashing data in place if the source
/// lends it.
pub(crate) fn run(
    source: &dyn Source,
    lanes: Vec<Lane<'_>>,
    lends: bool,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Error> {
    let (threads, hashing_threads) = threads(source, tuning);
    let unit = lanes.iter().map(Lane::unit).max().unwrap_or(1);
    let plan = Plan::new(source, unit, tuning.clamped_read_size() as u64, limits(&lanes, tuning));
    let pass = Pass {
        source,
        progress,
        // An in-turn lane hashes after the check that lent data is intact, so it needs its own copy.
        lends: lends && !lanes.iter().any(Lane::is_in_turn),
        lanes,
        unit,
        buffer_size: plan.chunk_size().min(MAX_BUFFER as u64) as usize,
        chunks: LookAhead::new(plan, threads - 1),
        idle_threads: AtomicUsize::new(threads - 1),
        hashing: (threads > hashing_threads).then(|| Semaphore::new(hashing_threads)),
        failure: Mutex::new(None),
    };
    progress.set_total(source.size());
    thread::scope(|scope| pass.run(scope));

    if let Some((_, error)) = pass.failure.into_inner().expect("no thread panicked") {
        return Err(error);
    }
    source.check_unchanged()?;
    if pass.lanes.into_iter().all(Lane::finish) { Ok(()) } else { Err(Error::Incomplete) }
}

/// Returns the number of threads, and how many of them may hash at once.
pub(crate) fn threads(source: &dyn Source, tuning: &Tuning) -> (usize, usize) {
    let hashing = tuning.threads.clamp(1, MAX_THREADS);
    (hashing.max(source.queue_depth().min(MAX_THREADS)), hashing)
}

/// Returns the limits that suit all lanes.
fn limits(lanes: &[Lane<'_>], tuning: &Tuning) -> ZeroLimits {
    let limits = lanes.iter().map(Lane::zero_limits).reduce(|one, other| ZeroLimits {
        piece: one.piece.min(other.piece),
        alone: one.alone.min(other.alone),
        total: one.total.min(other.total),
    });
    let none = ZeroLimits { piece: u64::MAX, alone: u64::MAX, total: u64::MAX };
    let limits = limits.unwrap_or(none);
    ZeroLimits { total: tuning.max_zeros.unwrap_or(limits.total), ..limits }
}

/// State of a pass, shared by its threads.
struct Pass<'a, 's> {
    source: &'a dyn Source,
    progress: &'a Progress,
    lanes: Vec<Lane<'s>>,
    lends: bool,
    unit: u64,
    buffer_size: usize,
    chunks: LookAhead<'a>,
    /// Number of threads that may still be started.
    idle_threads: AtomicUsize,
    /// Limits the hashing threads, if there are more threads for reading.
    hashing: Option<Semaphore>,
    /// First error in the order of the content, with the number of its chunk.
    failure: Mutex<Option<(u64, Error)>>,
}

impl Pass<'_, '_> {
    /// Works on this thread, and on others that it starts, until nothing is left.
    fn run<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let _guard = AbandonOnPanic(self);
        let mut chunk = Chunk::default();
        if let Err(stop) = self.work(scope, &mut chunk) {
            match stop {
                Stop::Failed(error) => self.fail(chunk.number, error),
                Stop::Sink(number, error) => self.fail(number, error),
                Stop::Abandoned => {}
            }
            self.abandon();
        }
    }

    fn fail(&self, number: u64, error: Error) {
        let mut failure = self.failure.lock().expect("no thread panicked");
        if failure.as_ref().is_none_or(|(first, _)| number < *first) {
            *failure = Some((number, error));
        }
    }

    fn abandon(&self) {
        self.lanes.iter().for_each(Lane::abandon);
    }

    fn work<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        chunk: &mut Chunk,
    ) -> Result<(), Stop> {
        let mut memory = Memory::default();
        let mut hashed = Vec::with_capacity(self.lanes.len());
        while let Some(is_more) = self.chunks.next(chunk)? {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled.into());
            }
            if chunk.data_length > 0 && is_more {
                self.start_thread(scope);
            }
            if chunk.data_length > self.buffer_size as u64 {
                self.take_in_parts(chunk, memory.buffer(self.buffer_size))?;
            } else {
                self.hash(chunk, &mut memory, &mut hashed)?;
                for (lane, hashed) in self.lanes.iter().zip(hashed.drain(..)) {
                    lane.hand_in(chunk, hashed, memory.data())?;
                }
            }
            self.progress.advance(chunk.length, chunk.data_length);
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

    /// Gets the data of a chunk and hashes its pieces for each lane.
    fn hash(
        &self,
        chunk: &Chunk,
        memory: &mut Memory,
        hashed: &mut Vec<Hashed>,
    ) -> Result<(), Error> {
        let mut lend = self.lends.then_some(self.unit);
        loop {
            memory.fetch(self.source, chunk, lend)?;
            let permit =
                (chunk.data_length > 0).then(|| self.hashing.as_ref().map(Semaphore::acquire));
            for lane in &self.lanes {
                let mut made = lane.empty();
                lane.hash(chunk, memory.data(), &mut made);
                hashed.push(made);
            }
            drop(permit);
            if memory.is_intact() {
                return Ok(());
            }
            // Reading the data again gives either the error or the current content.
            hashed.clear();
            lend = None;
        }
    }

    /// Reads and hashes a chunk with more data than fits in the buffer.
    fn take_in_parts(&self, chunk: &Chunk, buffer: &mut [u8]) -> Result<(), Stop> {
        let mut lanes = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            lanes.push(lane.parts(chunk, buffer.len())?);
        }
        let mut reads = chunk.reads.as_slice();
        for piece in &chunk.pieces {
            match *piece {
                Piece::Zeros { length, .. } => lanes.iter_mut().for_each(|lane| lane.zero(length)),
                Piece::Data { offset, length } => {
                    let mut done = 0;
                    while done < length {
                        let left = (length - done).min(buffer.len() as u64);
                        let part = &mut buffer[..left as usize];
                        fill(self.source, part, offset + done, &mut reads)?;
                        done += left;
                        let _permit = self.hashing.as_ref().map(Semaphore::acquire);
                        lanes.iter_mut().for_each(|lane| lane.update(part, done == length));
                    }
                }
            }
        }
        for (lane, parts) in self.lanes.iter().zip(lanes) {
            lane.hand_in_parts(chunk, parts)?;
        }
        Ok(())
    }
}

/// Ends the other threads if this one panics, because they would wait for its chunk.
struct AbandonOnPanic<'p, 'a, 's>(&'p Pass<'a, 's>);

impl Drop for AbandonOnPanic<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandon();
        }
    }
}

/// Reason why a thread stops before the end of the content.
enum Stop {
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

/// More threads would only cost memory.
const MAX_THREADS: usize = 1024;
