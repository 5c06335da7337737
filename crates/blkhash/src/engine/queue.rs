//! Content on its way to the threads that hash it. It waits as it came, and a thread that has nothing to do takes a batch:
//! its share of what waits ([`shares`](super::share)), over several parts or of one.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::share::{BATCH_SIZE, Shares};
use crate::sync::{Condvar, Instant, Mutex, MutexGuard, yield_now};

/// A buffer that is hashed in place and then dropped.
pub(crate) type Buffer = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A part of the content. Parts begin and end at block boundaries, except at the end of the content
/// and in constructions without blocks.
pub(crate) enum Part {
    /// Copied bytes, with zero runs between them.
    Chunk(Chunk),
    /// Bytes of a lent buffer.
    Lent(Buffer, Range<usize>),
}

/// Copied bytes, with zero runs between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    /// Bytes that are not known to be zero.
    pub(crate) data: Vec<u8>,
    /// Positions in `data` and lengths of zero runs, in order.
    zero_runs: Vec<(usize, u64)>,
}

impl Chunk {
    /// Appends a zero run of `length` bytes.
    pub(crate) fn push_zeros(&mut self, length: u64) {
        let position = self.data.len();
        match self.zero_runs.last_mut() {
            _ if length == 0 => {}
            Some((last, before)) if *last == position => *before += length,
            _ => self.zero_runs.push((position, length)),
        }
    }

    /// Returns whether there are neither bytes nor zeros.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.zero_runs.is_empty()
    }

    fn clear(&mut self) {
        self.data.clear();
        self.zero_runs.clear();
    }
}

/// Bytes or zeros in a part.
pub(crate) enum Piece<'a> {
    Data(&'a [u8]),
    Zeros(u64),
}

impl Part {
    /// Calls `take` with each piece in order.
    pub(crate) fn for_each<'a>(&'a self, mut take: impl FnMut(Piece<'a>)) {
        match self {
            Self::Lent(buffer, range) => {
                take(Piece::Data(&AsRef::<[u8]>::as_ref(&**buffer)[range.clone()]));
            }
            Self::Chunk(Chunk { data, zero_runs }) => {
                let mut start = 0;
                for &(position, length) in zero_runs {
                    take(Piece::Data(&data[start..position]));
                    take(Piece::Zeros(length));
                    start = position;
                }
                take(Piece::Data(&data[start..]));
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Chunk(chunk) => chunk.data.len(),
            Self::Lent(_, range) => range.len(),
        }
    }
}

/// Consecutive parts that one thread hashes together.
#[derive(Default)]
pub(crate) struct Batch {
    /// The number of the batch in the order of the content.
    pub(crate) number: u64,
    pub(crate) parts: Vec<Part>,
    /// Bytes of those that waited.
    taken: usize,
}

impl Batch {
    pub(crate) fn push(&mut self, part: Part) {
        self.parts.push(part);
    }
}

/// The content that no thread has taken yet, in order.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Signalled when there is work for a thread that sleeps, or no more will come.
    changed: Condvar,
    shares: Shares,
}

#[derive(Default)]
struct State {
    /// Batches whose number is given, before all other parts.
    batches: VecDeque<Batch>,
    parts: VecDeque<Part>,
    /// Bytes of these parts.
    waiting: usize,
    /// Bytes that waited and that threads hash now.
    taken: usize,
    /// The number of the next batch.
    next: u64,
    /// Number of threads that have nothing to do.
    idle: usize,
    /// Number of those that sleep and were not woken up.
    asleep: usize,
    /// Number of those that were woken up and do not know it yet.
    woken: usize,
    closed: bool,
    /// Memory to reuse.
    spare_chunks: Vec<Chunk>,
}

impl State {
    fn new_batch(&mut self) -> Batch {
        let number = self.next;
        self.next += 1;
        Batch { number, ..Batch::default() }
    }

    /// Returns whether nothing waits.
    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.parts.is_empty()
    }

    /// Returns the number of batches that wait, if each has `size` bytes.
    fn count(&self, size: usize) -> usize {
        self.batches.len() + self.waiting.div_ceil(size)
    }

    fn push(&mut self, part: Part) {
        self.waiting += part.len();
        self.parts.push_back(part);
    }

    /// Takes a batch of `size` bytes, which are whole blocks, or less if less waits. A chunk is not cut: it is taken if the
    /// batch would be empty otherwise.
    fn cut(&mut self, size: usize) -> Option<Batch> {
        if let Some(batch) = self.batches.pop_front() {
            return Some(batch);
        }
        let mut batch = (!self.parts.is_empty()).then(|| self.new_batch())?;
        while let Some(part) = self.parts.front_mut() {
            let (length, room) = (part.len(), size.saturating_sub(batch.taken));
            if length <= room || batch.parts.is_empty() && matches!(part, Part::Chunk(_)) {
                batch.taken += length;
                batch.parts.extend(self.parts.pop_front());
                continue;
            }
            if let Part::Lent(buffer, range) = part
                && room > 0
            {
                let cut = range.start + room;
                batch.taken += room;
                batch.parts.push(Part::Lent(Arc::clone(buffer), range.start..cut));
                range.start = cut;
            }
            break;
        }
        self.waiting -= batch.taken;
        self.taken += batch.taken;
        Some(batch)
    }
}

impl Queue {
    /// Creates a queue.
    pub(super) fn new(shares: Shares) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), shares }
    }

    /// Returns the shares of threads.
    pub(super) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Returns the share of a thread in what is in flight.
    fn share(&self, state: &State) -> usize {
        self.shares.share(state.waiting + state.taken)
    }

    /// Returns an empty chunk.
    pub(super) fn empty_chunk(&self) -> Chunk {
        self.lock().spare_chunks.pop().unwrap_or_default()
    }

    /// Appends a part. Returns for how many more threads there is work.
    pub(super) fn push(&self, part: Part) -> usize {
        self.append(&mut self.lock(), part)
    }

    /// Appends a part if fewer than `most` batches of `size` bytes wait. Otherwise returns it in a batch for the caller to
    /// hash at once.
    pub(super) fn push_or_take(
        &self,
        part: Part,
        most: usize,
        size: usize,
    ) -> Result<usize, Batch> {
        let mut state = self.lock();
        if state.count(size) < most {
            return Ok(self.append(&mut state, part));
        }
        let mut batch = self.batch_behind(&mut state);
        batch.push(part);
        Err(batch)
    }

    fn append(&self, state: &mut State, part: Part) -> usize {
        let length = part.len();
        state.push(part);
        let wanted = self.wake(state);
        // To start a thread takes longer than to wake one up, so there is one for a full batch, or for parts that keep coming.
        wanted.saturating_sub(state.idle).min(length.div_ceil(BATCH_SIZE))
    }

    /// Returns a batch for the caller to fill and hash at once, or `None` if fewer than `most` batches of `size` bytes wait.
    pub(super) fn take_empty(&self, most: usize, size: usize) -> Option<Batch> {
        let mut state = self.lock();
        let is_busy = state.count(size) >= most;
        is_busy.then(|| self.batch_behind(&mut state))
    }

    /// Wakes up threads for what waits, if too few are awake, and returns for how many there is work.
    fn wake(&self, state: &mut State) -> usize {
        let wanted = state.waiting.div_ceil(self.share(state));
        let awake = state.idle - state.asleep;
        let woken = wanted.saturating_sub(awake).min(state.asleep);
        state.asleep -= woken;
        state.woken += woken;
        (0..woken).for_each(|_| self.changed.notify_one());
        wanted
    }

    /// Returns an empty batch after all that wait, which gets its numbers.
    fn batch_behind(&self, state: &mut State) -> Batch {
        let size = self.share(state);
        let mut batches = mem::take(&mut state.batches);
        batches.extend(std::iter::from_fn(|| state.cut(size)));
        state.batches = batches;
        state.new_batch()
    }

    /// Takes the number of a batch that the caller hashes without the queue.
    pub(super) fn take_number(&self) -> u64 {
        self.batch_behind(&mut self.lock()).number
    }

    /// Returns how many batch numbers were taken.
    pub(super) fn numbers_given(&self) -> u64 {
        self.lock().next
    }

    /// Returns the next batch, or `None` when no more will come. A thread that would hash more for each byte waits while
    /// more parts keep coming, if no other thread has nothing to do.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        state.idle += 1;
        let mut seen = (0, Instant::now());
        let batch = loop {
            let waiting = state.waiting;
            if state.is_empty() {
                if state.closed {
                    break None;
                }
                // Yields first, because more may be pushed before a sleeping thread wakes up.
                if seen.1.elapsed() >= LINGER {
                    state = self.sleep(state);
                    seen = (0, Instant::now());
                    continue;
                }
            } else {
                let has_enough = state.closed
                    || !state.batches.is_empty()
                    || state.idle > 1
                    || waiting >= self.share(&state)
                    || !self.shares.gains(waiting);
                if has_enough || waiting == seen.0 && seen.1.elapsed() > LINGER {
                    let size = self.share(&state);
                    break state.cut(size);
                }
                if waiting != seen.0 {
                    seen = (waiting, Instant::now());
                }
            }
            drop(state);
            yield_now();
            state = self.lock();
        };
        state.idle -= 1;
        self.wake(&mut state);
        batch
    }

    /// Sleeps until there is work for this thread.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.asleep += 1;
        state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        if state.woken > 0 {
            state.woken -= 1;
        } else {
            state.asleep -= 1;
        }
        state
    }

    /// Returns a batch, if one waits.
    pub(super) fn try_take(&self) -> Option<Batch> {
        let mut state = self.lock();
        let size = self.share(&state);
        state.cut(size)
    }

    /// Drops the parts of a batch and keeps the memory of the chunks.
    pub(super) fn recycle(&self, mut batch: Batch) {
        let mut state = self.lock();
        state.taken -= batch.taken;
        for part in &mut batch.parts {
            if let Part::Chunk(chunk) = part {
                chunk.clear();
                state.spare_chunks.push(mem::take(chunk));
            }
        }
        // Dropping a lent buffer may run any code, so it is not done under the lock. It is done after the count, because
        // the next buffer may come at once.
        drop(state);
    }

    /// Marks that no more parts will come.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.woken += mem::take(&mut state.asleep);
        self.changed.notify_all();
    }

    /// Ignores poisoning, because each statement that holds the lock leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} bytes)", self.lock().waiting)
    }
}

/// Time that a thread waits for more, a tenth of the time for hashing a full batch.
const LINGER: Duration = Duration::from_micros(20);

#[cfg(all(test, shuttle))]
mod models;

#[cfg(all(test, simulation))]
mod simulation;
