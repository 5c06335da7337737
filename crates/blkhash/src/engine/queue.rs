//! Content on its way to the threads that hash it, in batches that fill the lanes of a kernel.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A buffer that is hashed where it is and dropped after that.
pub(crate) type Buffer = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A part of the content. Parts begin and end at the bounds of blocks, but for the end of the
/// content and constructions without blocks.
pub(crate) enum Part {
    /// Bytes that were copied, and runs of zeros between them.
    Chunk(Chunk),
    /// Bytes of somebody else.
    Lent(Buffer, Range<usize>),
}

/// Bytes that were copied, and runs of zeros between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    /// The bytes that are not known to be zero.
    pub(crate) data: Vec<u8>,
    /// Lengths of runs of zeros and where in `data` they stand, in order.
    zero_runs: Vec<(usize, u64)>,
}

impl Chunk {
    /// Appends a run of `length` zeros.
    pub(crate) fn push_zeros(&mut self, length: u64) {
        let position = self.data.len();
        match self.zero_runs.last_mut() {
            _ if length == 0 => {}
            Some((last, before)) if *last == position => *before += length,
            _ => self.zero_runs.push((position, length)),
        }
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.zero_runs.is_empty()
    }

    fn clear(&mut self) {
        self.data.clear();
        self.zero_runs.clear();
    }
}

/// What a part consists of.
pub(crate) enum Piece<'a> {
    Data(&'a [u8]),
    Zeros(u64),
}

impl Part {
    /// Hands over its content in order.
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
    /// Its place among all batches.
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
    /// Threads that wait for a batch.
    idle: usize,
    closed: bool,
    /// Memory for others.
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
    /// A queue of batches of `batch_size` bytes.
    pub(super) fn new(batch_size: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), batch_size }
    }

    /// An empty chunk.
    pub(super) fn empty_chunk(&self) -> Chunk {
        self.lock().spare_chunks.pop().unwrap_or_default()
    }

    /// Appends a part, to the last batch where it fits in. Returns whether one more thread would
    /// have something to do.
    pub(super) fn push(&self, part: Part) -> bool {
        self.append(&mut self.lock(), part)
    }

    /// The same if fewer than `most` batches wait. Otherwise the part becomes a batch for the caller
    /// to hash at once.
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
        // The caller may have taken what comes after the last one that waits.
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

    /// A batch that the caller fills and hashes at once, unless fewer than `most` wait.
    pub(super) fn take_empty(&self, most: usize) -> Option<Batch> {
        let mut state = self.lock();
        let is_busy = state.batches.len() >= most;
        is_busy.then(|| state.new_batch())
    }

    /// The number of a batch that the caller has itself.
    pub(super) fn take_number(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next - 1
    }

    /// How many numbers batches have got.
    pub(super) fn numbers_given(&self) -> u64 {
        self.lock().next
    }

    /// The next batch, or `None` when no more will come. A batch that is not full waits for as long
    /// as more parts keep coming: sixteen lanes cost no more than four.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        let mut seen = (0, 0, Instant::now());
        loop {
            match state.batches.front() {
                None if state.closed => return None,
                // Who is about to hand in more is sooner than a thread wakes up.
                None if seen.2.elapsed() < LINGER => {
                    drop(state);
                    thread::yield_now();
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
                    thread::yield_now();
                    state = self.lock();
                }
            }
        }
    }

    /// A batch if one waits.
    pub(super) fn try_take(&self) -> Option<Batch> {
        self.lock().batches.pop_front()
    }

    /// Drops the parts of a batch, and keeps the memory of the chunks.
    pub(super) fn recycle(&self, mut batch: Batch) {
        // Whoever lent a buffer may do anything when it is dropped: not under the lock.
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

    /// No more parts will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The state is whole between any two statements that hold the lock, so a poisoned lock has
    /// nothing to hide.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} batches)", self.lock().batches.len())
    }
}

/// How long a batch that is not full waits for the next part: a tenth of what hashing it takes.
const LINGER: Duration = Duration::from_micros(20);
