//! Worker threads behind a [`Hasher`](crate::Hasher).

use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::queue::{Batch, Buffer, Chunk, Part, Piece, Queue};
use super::{Accumulator, Ordered, Stopped, threads};
use crate::block::{BlockDigests, Leaf};
use crate::{Digest, Digester, Parameters};

/// Hashes the parts of a content on several threads, the caller's among them. The threads start
/// when there is work for them and end with the pool.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: usize,
    batch_size: usize,
    workers: Vec<JoinHandle<thread::Result<()>>>,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    queue: Queue,
    /// `None` where blocks are not hashed side by side: then everything is hashed in its turn.
    leaf: Option<Leaf>,
    ordered: Ordered<BlockDigests, Accumulator>,
    /// A thread has panicked: there will be no checksum.
    failed: AtomicBool,
}

impl Pool {
    /// A pool of at most `threads` threads.
    pub(crate) fn new(parameters: &Parameters, digester: &Digester, threads: usize) -> Self {
        let block_size = parameters.block_size();
        let in_turn = !parameters.construction().has_blocks() || block_size > MAX_COLLECTED;
        let batch_size = if in_turn { BATCH_SIZE } else { BATCH_SIZE.max(block_size) };
        let threads = threads.max(1);
        let accumulator = Accumulator::with_digester(parameters, digester, threads);
        let leaf = (!in_turn).then(|| parameters.leaf(digester));
        // Who waits for the turn of what another one is hashing only costs a stack.
        let threads = if in_turn { 1 } else { threads };
        Self::of(leaf, accumulator, threads, batch_size)
    }

    fn of(leaf: Option<Leaf>, accumulator: Accumulator, threads: usize, batch_size: usize) -> Self {
        let shared = Shared {
            queue: Queue::new(batch_size),
            leaf,
            ordered: Ordered::new(accumulator, 4 * threads),
            failed: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), threads, batch_size, workers: Vec::new() }
    }

    /// Whether the content is hashed block by block, so that its parts are whole blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        self.shared.leaf.is_some()
    }

    /// Bytes that are hashed together.
    pub(crate) fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// An empty chunk.
    pub(crate) fn empty_chunk(&self) -> Chunk {
        self.shared.queue.empty_chunk()
    }

    /// Takes the next part of the content. Where the other threads have enough to do, the caller's
    /// hashes it: it would only wait otherwise.
    pub(crate) fn submit(&mut self, chunk: Chunk) {
        match self.shared.queue.push_or_take(Part::Chunk(chunk), self.most_waiting()) {
            Ok(more) => self.start_worker(more, self.threads - 1),
            Err(batch) => self.run(batch, &[]),
        }
        self.resume_panic();
    }

    /// Batches that wait for the other threads when these have enough to do.
    fn most_waiting(&self) -> usize {
        (self.threads - 1).min(self.workers.len() + 1)
    }

    /// Takes the next part of the content and the bytes behind it, if the caller's thread is to hash
    /// them at once: then they need not be copied.
    pub(crate) fn submit_now(&mut self, chunk: &mut Chunk, behind: &[u8]) -> bool {
        let Some(mut batch) = self.shared.queue.take_empty(self.most_waiting()) else {
            return false;
        };
        if !chunk.is_empty() {
            batch.push(Part::Chunk(mem::replace(chunk, self.empty_chunk())));
        }
        self.run(batch, behind);
        self.resume_panic();
        true
    }

    /// Takes the last part of the content.
    pub(crate) fn submit_last(&mut self, chunk: Chunk) {
        if let Err(batch) = self.shared.queue.push_or_take(Part::Chunk(chunk), 0) {
            self.run(batch, &[]);
        }
    }

    /// Takes the next part of the content, for the workers to hash and drop, and the chunk before it.
    pub(crate) fn lend(&mut self, before: Option<Chunk>, buffer: &Buffer, range: Range<usize>) {
        let mut more = before.is_some_and(|chunk| self.shared.queue.push(Part::Chunk(chunk)));
        for start in range.clone().step_by(self.batch_size) {
            let end = range.end.min(start + self.batch_size);
            more |= self.shared.queue.push(Part::Lent(Arc::clone(buffer), start..end));
            self.start_worker(mem::take(&mut more), self.threads);
        }
        self.resume_panic();
    }

    /// Takes the next part of the content as whatever `take` does, on the caller's thread when its
    /// turn comes.
    pub(crate) fn in_turn(&mut self, take: impl FnOnce(&mut Accumulator)) {
        let number = self.shared.queue.take_number();
        // Abandoned only by a panic.
        let _ = self.shared.in_turn(number, take);
        self.resume_panic();
    }

    /// The checksum of everything submitted.
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

    /// Hashes a batch and the bytes behind it on the caller's thread.
    fn run(&self, batch: Batch, behind: &[u8]) {
        if let Err(panic) = self.shared.run_caught(batch, behind) {
            resume_unwind(panic);
        }
    }

    /// One more thread, unless there are `most`, if the system has one to give: any number does.
    fn start_worker(&mut self, wanted: bool, most: usize) {
        if wanted && self.workers.len() < most {
            let shared = Arc::clone(&self.shared);
            self.workers.extend(threads::spawn(move || shared.work()));
        }
        if self.workers.is_empty() {
            self.run_what_waits();
        }
    }

    /// Tells the caller of a worker's panic.
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
    /// Waits until everything submitted is hashed.
    ///
    /// # Panics
    ///
    /// If a thread has panicked.
    fn clone(&self) -> Self {
        self.run_what_waits();
        let count = self.shared.queue.numbers_given();
        let accumulator = self.shared.ordered.after(count, Accumulator::clone);
        let accumulator = accumulator.expect("no thread of this hash has panicked");
        Self::of(self.shared.leaf.clone(), accumulator, self.threads, self.batch_size)
    }
}

impl Drop for Pool {
    /// No thread outlives the pool.
    fn drop(&mut self) {
        self.shared.ordered.abandon();
        self.shared.queue.close();
        while self.shared.queue.try_take().is_some() {}
        // A panic of a hash nobody waits for is nobody's.
        let _ = self.join();
    }
}

impl Shared {
    /// What a worker does as long as there is a pool.
    fn work(&self) -> thread::Result<()> {
        let mut result = Ok(());
        while let Some(batch) = self.queue.take() {
            result = result.and(self.run_caught(batch, &[]));
        }
        result
    }

    /// Hashes a batch and the bytes behind it. After a panic the other threads and the submitter must
    /// not wait for what will never come, and what was lent goes back.
    fn run_caught(&self, batch: Batch, behind: &[u8]) -> thread::Result<()> {
        catch_unwind(AssertUnwindSafe(|| self.run(batch, behind))).inspect_err(|_| {
            self.failed.store(true, Ordering::Relaxed);
            self.ordered.abandon();
            while self.queue.try_take().is_some() {}
        })
    }

    fn run(&self, batch: Batch, behind: &[u8]) {
        let number = batch.number;
        // Once abandoned, nobody wants it.
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
                // What was lent goes back before this thread may have to wait.
                self.queue.recycle(batch);
                self.ordered.hand_in(number, digests)
            }
            None => {
                let result = self.in_turn(number, |accumulator| {
                    for part in &batch.parts {
                        part.for_each(|piece| match piece {
                            Piece::Data(data) => accumulator.update(data),
                            Piece::Zeros(length) => accumulator.zero(length),
                        });
                    }
                });
                self.queue.recycle(batch);
                result
            }
        };
    }

    fn in_turn(&self, number: u64, take: impl FnOnce(&mut Accumulator)) -> Result<(), Stopped> {
        let mut turn = self.ordered.turn(number)?;
        take(&mut turn);
        turn.end()
    }
}

/// Bytes hashed together: sixteen blocks of the default size, which fill the lanes of every kernel,
/// and half of a core's second cache.
const BATCH_SIZE: usize = 1 << 20;

/// Blocks above this size are hashed as they come: collecting them for several threads would cost
/// more memory than it is worth.
const MAX_COLLECTED: usize = 4 << 20;
