//! Worker threads of a [`Hasher`](crate::Hasher).
//!
//! The hasher copies blocks that are not zero until it has 1 MiB of them: sixteen blocks of the default size fill the lanes of the
//! widest kernel. A lent buffer is not copied, except for partial blocks at its ends, and is dropped after it is hashed. Both wait in
//! a queue ([`queue`](super::queue)), of which an idle thread takes its share ([`share`](super::share)). If the threads have enough to
//! do, the caller's hashes a chunk itself, without a copy of what follows it. A thread that would gain by more waits a
//! moment. The digests go to the same [`Ordered`](super::ordered::Ordered) as in a pass.

use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use super::queue::{Batch, Buffer, Chunk, Part, Piece, Queue};
use super::share::{BATCH_SIZE, Shares};
use super::{Accumulator, Ordered, Stopped, threads};
use crate::block::{BlockDigests, Leaf};
use crate::sync::{AtomicBool, JoinHandle};
use crate::{Digest, Digester, Parameters};

/// Hashes the parts of a content on several threads, including the caller's. The threads start when
/// there is work for them and end with the pool.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: usize,
    batch_size: usize,
    workers: Vec<JoinHandle<thread::Result<()>>>,
}

/// State shared by the threads.
#[derive(Debug)]
struct Shared {
    queue: Queue,
    /// `None` if blocks are not hashed side by side. Then every part is hashed in its turn.
    leaf: Option<Leaf>,
    ordered: Ordered<BlockDigests, Accumulator>,
    /// Set when a thread has panicked. Then there is no checksum.
    failed: AtomicBool,
}

impl Pool {
    /// Creates a pool of up to `threads` threads.
    pub(crate) fn new(parameters: &Parameters, digester: &Digester, threads: usize) -> Self {
        let block_size = parameters.block_size().get();
        let in_turn = !parameters.construction().has_blocks() || block_size > MAX_COLLECTED;
        let batch_size = if in_turn { BATCH_SIZE } else { BATCH_SIZE.max(block_size) };
        let threads = threads.max(1);
        let accumulator = Accumulator::with_digester(parameters, digester, threads);
        let leaf = (!in_turn).then(|| parameters.leaf(digester));
        let shares = if in_turn {
            Shares::in_turn()
        } else {
            Shares::new(threads, digester, block_size, usize::MAX)
        };
        // A second thread would only wait for its turn and cost a stack.
        let threads = if in_turn { 1 } else { threads };
        Self::of(leaf, accumulator, threads, batch_size, shares)
    }

    fn of(
        leaf: Option<Leaf>,
        accumulator: Accumulator,
        threads: usize,
        batch_size: usize,
        shares: Shares,
    ) -> Self {
        let shared = Shared {
            queue: Queue::new(shares),
            leaf,
            ordered: Ordered::new(accumulator, AHEAD * threads),
            failed: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), threads, batch_size, workers: Vec::new() }
    }

    /// Returns whether the content is hashed block by block, so that its parts are whole blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        self.shared.leaf.is_some()
    }

    /// Returns the number of bytes that are hashed together.
    pub(crate) fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Returns an empty chunk.
    pub(crate) fn empty_chunk(&self) -> Chunk {
        self.shared.queue.empty_chunk()
    }

    /// Submits the next part of the content. If the other threads have enough to do, the caller's
    /// thread hashes it, because it would only wait otherwise.
    pub(crate) fn submit(&mut self, chunk: Chunk) {
        match self.shared.queue.push_or_take(
            Part::Chunk(chunk),
            self.most_waiting(),
            self.batch_size,
        ) {
            Ok(more) => self.start_workers(more, self.threads - 1),
            Err(batch) => self.run(batch, &[]),
        }
        self.resume_panic();
    }

    /// Returns how many batches may wait before the other threads have enough to do.
    fn most_waiting(&self) -> usize {
        (self.threads - 1).min(self.workers.len() + 1)
    }

    /// Submits the next part of the content and the bytes after it, if the caller's thread is to
    /// hash them at once. Then they need not be copied. Returns whether it did.
    pub(crate) fn submit_now(&mut self, chunk: &mut Chunk, behind: &[u8]) -> bool {
        let Some(mut batch) = self.shared.queue.take_empty(self.most_waiting(), self.batch_size)
        else {
            return false;
        };
        if !chunk.is_empty() {
            batch.push(Part::Chunk(mem::replace(chunk, self.empty_chunk())));
        }
        self.run(batch, behind);
        self.resume_panic();
        true
    }

    /// Submits the last part of the content.
    pub(crate) fn submit_last(&mut self, chunk: Chunk) {
        if let Err(batch) = self.shared.queue.push_or_take(Part::Chunk(chunk), 0, self.batch_size) {
            self.run(batch, &[]);
        }
    }

    /// Submits the chunk `before` and the next part of the content, which the workers hash and
    /// drop.
    pub(crate) fn lend(&mut self, before: Option<Chunk>, buffer: &Buffer, range: Range<usize>) {
        if let Some(chunk) = before {
            self.shared.queue.push(Part::Chunk(chunk));
        }
        let more = self.shared.queue.push(Part::Lent(Arc::clone(buffer), range));
        self.start_workers(more, self.threads);
        self.resume_panic();
    }

    /// Submits the next part of the content by calling `take` on the caller's thread when its turn
    /// comes.
    pub(crate) fn in_turn(&mut self, take: impl FnOnce(&mut Accumulator)) {
        let number = self.shared.queue.take_number();
        // Only a panic abandons the run, and it is resumed below.
        let _ = self.shared.in_turn(number, take);
        self.resume_panic();
    }

    /// Returns the checksum of all parts.
    pub(crate) fn finish(mut self) -> Digest {
        self.shared.queue.close();
        self.run_what_waits();
        if let Err(panic) = self.join() {
            resume_unwind(panic);
        }
        self.shared.ordered.finish().expect("every batch was handed in").finalize()
    }

    fn run_what_waits(&self) {
        while let Some(batch) = self.shared.queue.try_take() {
            self.run(batch, &[]);
        }
    }

    /// Hashes a batch and the bytes after it on the caller's thread.
    fn run(&self, batch: Batch, behind: &[u8]) {
        if let Err(panic) = self.shared.run_caught(batch, behind) {
            resume_unwind(panic);
        }
    }

    /// Starts as many workers as are `wanted` if there are not `most`, and the system allows it. Any number of workers is
    /// enough.
    fn start_workers(&mut self, wanted: usize, most: usize) {
        for _ in 0..wanted.min(most.saturating_sub(self.workers.len())) {
            let shared = Arc::clone(&self.shared);
            self.workers.extend(threads::spawn(move || shared.work()));
        }
        if self.workers.is_empty() {
            self.run_what_waits();
        }
    }

    /// Resumes a worker's panic on the caller's thread.
    fn resume_panic(&mut self) {
        if self.shared.failed.load(Ordering::Relaxed) {
            self.shared.queue.close();
            if let Err(panic) = self.join() {
                resume_unwind(panic);
            }
            while self.shared.queue.try_take().is_some() {}
            panic!("a thread of this hash has panicked");
        }
    }

    /// Waits for the workers to end.
    fn join(&mut self) -> thread::Result<()> {
        let mut result = Ok(());
        for worker in self.workers.drain(..) {
            result = result.and(worker.join().and_then(|outcome| outcome));
        }
        result
    }
}

impl Clone for Pool {
    /// Blocks until every submitted part is hashed.
    ///
    /// # Panics
    ///
    /// Panics if a thread has panicked.
    fn clone(&self) -> Self {
        self.run_what_waits();
        let count = self.shared.queue.numbers_given();
        let accumulator = self.shared.ordered.after(count, Accumulator::clone);
        let accumulator = accumulator.expect("no thread of this hash has panicked");
        let (leaf, shares) = (self.shared.leaf.clone(), self.shared.queue.shares().clone());
        Self::of(leaf, accumulator, self.threads, self.batch_size, shares)
    }
}

impl Drop for Pool {
    /// Ends the threads. No thread outlives the pool.
    fn drop(&mut self) {
        self.shared.ordered.abandon();
        self.shared.queue.close();
        while self.shared.queue.try_take().is_some() {}
        // A panic is ignored, because the checksum is not wanted.
        let _ = self.join();
    }
}

impl Shared {
    /// Hashes batches until the queue is closed.
    fn work(&self) -> thread::Result<()> {
        let mut result = Ok(());
        while let Some(batch) = self.queue.take() {
            result = result.and(self.run_caught(batch, &[]));
        }
        result
    }

    /// Hashes a batch and the bytes after it. A panic abandons the run, so that other threads do
    /// not wait for this batch, and returns all lent buffers that wait.
    fn run_caught(&self, batch: Batch, behind: &[u8]) -> thread::Result<()> {
        catch_unwind(AssertUnwindSafe(|| self.run(batch, behind))).inspect_err(|_| {
            self.failed.store(true, Ordering::Relaxed);
            self.ordered.abandon();
            while self.queue.try_take().is_some() {}
        })
    }

    fn run(&self, batch: Batch, behind: &[u8]) {
        let number = batch.number;
        // The result of an abandoned run is not needed.
        let _ = match &self.leaf {
            Some(leaf) => {
                let mut digests = self.ordered.empty();
                let mut lanes = super::Batch::new(leaf, &mut digests);
                for part in &batch.parts {
                    part.for_each(|piece| match piece {
                        Piece::Data(data) => lanes.update(data),
                        Piece::Zeros(length) => {
                            lanes.zero_blocks(length / leaf.block_size() as u64);
                        }
                    });
                }
                lanes.update(behind);
                lanes.finish();
                // Returns lent buffers before this thread may block.
                self.queue.recycle(batch);
                self.ordered.hand_in(number, digests)
            }
            None => self.in_turn(number, |accumulator| {
                for part in &batch.parts {
                    part.for_each(|piece| match piece {
                        Piece::Data(data) => accumulator.update(data),
                        Piece::Zeros(length) => accumulator.zero(length),
                    });
                }
                // Lent buffers are back before the turn ends, and with it a wait for their checksum.
                self.queue.recycle(batch);
            }),
        };
    }

    fn in_turn(&self, number: u64, take: impl FnOnce(&mut Accumulator)) -> Result<(), Stopped> {
        let mut turn = self.ordered.turn(number)?;
        take(&mut turn);
        turn.end()
    }
}

/// Number of batches for each thread that may wait for one before them. Their sizes differ.
const AHEAD: usize = 16;

/// Larger blocks are hashed as they come. Collecting them for several threads would cost too much
/// memory.
const MAX_COLLECTED: usize = 4 << 20;

#[cfg(all(test, shuttle))]
mod models;
