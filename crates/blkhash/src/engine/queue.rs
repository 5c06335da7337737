//! Content on its way to the threads that hash it, in batches that fill the lanes of a kernel.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

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
    length: usize,
}

impl Batch {
    pub(crate) fn push(&mut self, part: Part) {
        self.length += part.len();
        self.parts.push(part);
    }
}

/// The batches that no thread has taken yet, in the order of the content.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Signalled when there is a batch for an idle thread, or no more will come.
    changed: Condvar,
    batch_size: usize,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    /// The number of the next batch.
    next: u64,
    /// Number of threads that wait for a batch.
    idle: usize,
    closed: bool,
    /// Memory to reuse.
    spare_chunks: Vec<Chunk>,
    spare_parts: Vec<Vec<Part>>,
}

impl State {
    fn new_batch(&mut self) -> Batch {
        let number = self.next;
        self.next += 1;
        Batch { number, parts: self.spare_parts.pop().unwrap_or_default(), length: 0 }
    }
}

impl Queue {
    /// Creates a queue of batches of `batch_size` bytes.
    pub(super) fn new(batch_size: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), batch_size }
    }

    /// Returns an empty chunk.
    pub(super) fn empty_chunk(&self) -> Chunk {
        self.lock().spare_chunks.pop().unwrap_or_default()
    }

    /// Appends a part, to the last batch if it fits there. Returns whether there is work for
    /// another thread.
    pub(super) fn push(&self, part: Part) -> bool {
        self.append(&mut self.lock(), part)
    }

    /// Appends a part if fewer than `most` batches wait. Otherwise returns it in a batch for the
    /// caller to hash at once.
    pub(super) fn push_or_take(&self, part: Part, most: usize) -> Result<bool, Batch> {
        let mut state = self.lock();
        if state.batches.len() < most {
            return Ok(self.append(&mut state, part));
        }
        let mut batch = state.new_batch();
        batch.push(part);
        Err(batch)
    }

    fn append(&self, state: &mut State, part: Part) -> bool {
        let length = part.len();
        // The caller may have taken the batch after the last one that waits.
        let next = state.next;
        let last = state.batches.back_mut().filter(|last| last.number + 1 == next);
        match last {
            Some(last) if last.length + length <= self.batch_size => {
                last.push(part);
            }
            _ => {
                let mut batch = state.new_batch();
                batch.push(part);
                state.batches.push_back(batch);
                if state.idle == 0 {
                    return true;
                }
                self.changed.notify_one();
            }
        }
        false
    }

    /// Returns a batch for the caller to fill and hash at once, or `None` if fewer than `most`
    /// wait.
    pub(super) fn take_empty(&self, most: usize) -> Option<Batch> {
        let mut state = self.lock();
        let is_busy = state.batches.len() >= most;
        is_busy.then(|| state.new_batch())
    }

    /// Takes the number of a batch that the caller hashes without the queue.
    pub(super) fn take_number(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next - 1
    }

    /// Returns how many batch numbers were taken.
    pub(super) fn numbers_given(&self) -> u64 {
        self.lock().next
    }

    /// Returns the next batch, or `None` when no more will come. A batch that is not full waits
    /// while more parts keep coming, because sixteen lanes cost no more than four.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        let mut seen = (0, 0, Instant::now());
        loop {
            match state.batches.front() {
                None if state.closed => return None,
                // Yields first, because more may be pushed before a sleeping thread wakes up.
                None if seen.2.elapsed() < LINGER => {
                    drop(state);
                    yield_now();
                    state = self.lock();
                }
                None => {
                    state.idle += 1;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                    seen = (0, 0, Instant::now());
                }
                Some(front) => {
                    let growing = (front.number, front.length) != (seen.0, seen.1);
                    let full = front.length >= self.batch_size || state.batches.len() > 1;
                    if full || state.closed || !growing && seen.2.elapsed() > LINGER {
                        return state.batches.pop_front();
                    }
                    if growing {
                        seen = (front.number, front.length, Instant::now());
                    }
                    drop(state);
                    yield_now();
                    state = self.lock();
                }
            }
        }
    }

    /// Returns a batch, if one waits.
    pub(super) fn try_take(&self) -> Option<Batch> {
        self.lock().batches.pop_front()
    }

    /// Drops the parts of a batch and keeps the memory of the chunks.
    pub(super) fn recycle(&self, mut batch: Batch) {
        // Dropping a lent buffer may run any code, so it is not done under the lock.
        let mut chunks = Vec::new();
        for part in batch.parts.drain(..) {
            if let Part::Chunk(mut chunk) = part {
                chunk.clear();
                chunks.push(chunk);
            }
        }
        let mut state = self.lock();
        state.spare_chunks.append(&mut chunks);
        state.spare_parts.push(batch.parts);
    }

    /// Marks that no more parts will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Ignores poisoning, because each statement that holds the lock leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} batches)", self.lock().batches.len())
    }
}

/// Time that a batch waits for its next part, a tenth of the time for hashing a full one.
const LINGER: Duration = Duration::from_micros(20);

#[cfg(all(test, shuttle))]
mod models;
