//! Worker threads behind a [`Hasher`](crate::Hasher).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::{BlockHasher, Ordered};
use crate::construction::Accumulator;
use crate::{Digest, Digester, Parameters};

/// A part of the content that begins and ends at the bounds of blocks, but for the end of the
/// content.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The bytes that are not known to be zero.
    pub(crate) data: Vec<u8>,
    /// Runs of zero blocks and where in `data` they stand, in order.
    zero_runs: Vec<(usize, u64)>,
}

impl Chunk {
    /// Appends `count` whole zero blocks; what is there ends at the end of a block.
    pub(crate) fn push_zero_blocks(&mut self, count: u64) {
        let position = self.data.len();
        match self.zero_runs.last_mut() {
            Some((last, before)) if *last == position => *before += count,
            _ => self.zero_runs.push((position, count)),
        }
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.zero_runs.is_empty()
    }
}

/// Hashes chunks on several threads. The threads start when there is work for them and end with
/// the pool.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: usize,
    chunk_size: usize,
    /// The number of the next chunk.
    next: u64,
    workers: Vec<JoinHandle<thread::Result<()>>>,
    jobs: Option<Sender<(u64, Chunk)>>,
    waiting_jobs: Receiver<(u64, Chunk)>,
    used: (Sender<Chunk>, Receiver<Chunk>),
    /// Chunks in existence.
    chunks: usize,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    hasher: BlockHasher,
    ordered: Ordered,
}

impl Pool {
    /// A pool of at most `threads` threads for chunks of `chunk_size` bytes.
    pub(crate) fn new(
        parameters: &Parameters,
        digester: &Digester,
        threads: usize,
        chunk_size: usize,
    ) -> Self {
        let threads = threads.max(1);
        let (jobs, waiting_jobs) = bounded(threads);
        let accumulator = Accumulator::with_digester(parameters, digester, threads);
        let ordered = Ordered::new(accumulator, 4 * threads);
        let hasher = BlockHasher::with_digester(parameters, digester);
        Self {
            shared: Arc::new(Shared { hasher, ordered }),
            threads,
            chunk_size,
            next: 0,
            workers: Vec::new(),
            jobs: Some(jobs),
            waiting_jobs,
            used: unbounded(),
            chunks: 0,
        }
    }

    /// An empty chunk; waits for one where enough are in use.
    pub(crate) fn empty_chunk(&mut self) -> Chunk {
        if let Ok(chunk) = self.used.1.try_recv() {
            return chunk;
        }
        if self.chunks < 2 * self.threads + 1 {
            self.chunks += 1;
            return Chunk { data: Vec::with_capacity(self.chunk_size), ..Chunk::default() };
        }
        self.used.1.recv().expect("the pool holds a sender")
    }

    /// Takes the next part of the content.
    pub(crate) fn submit(&mut self, chunk: Chunk) {
        let number = self.next;
        self.next += 1;
        if self.threads > 1 && self.workers.len() < self.threads {
            self.start_worker();
        }
        if self.workers.is_empty() {
            self.shared.hash(number, &chunk);
            recycle(&self.used.0, chunk);
        } else if let Some(jobs) = &self.jobs {
            jobs.send((number, chunk)).expect("the pool holds a receiver");
        }
    }

    /// The checksum of everything submitted.
    pub(crate) fn finish(mut self) -> Digest {
        if let Err(panic) = self.join() {
            std::panic::resume_unwind(panic);
        }
        let (_, digest) = self.shared.ordered.finish().expect("every chunk was handed in");
        digest
    }

    /// One more thread, if the system has one to give: any number does.
    fn start_worker(&mut self) {
        let shared = Arc::clone(&self.shared);
        let jobs = self.waiting_jobs.clone();
        let used = self.used.0.clone();
        let worker = thread::Builder::new().name("blkhash".to_owned()).spawn(move || {
            let mut panic = None;
            for (number, chunk) in jobs {
                // The others and the submitter must not wait for what will never come.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| shared.hash(number, &chunk)))
                {
                    shared.ordered.abandon();
                    panic = Some(payload);
                }
                recycle(&used, chunk);
            }
            panic.map_or(Ok(()), Err)
        });
        self.workers.extend(worker);
    }

    /// Waits for the workers to end.
    fn join(&mut self) -> thread::Result<()> {
        self.jobs = None;
        let mut result = Ok(());
        for worker in self.workers.drain(..) {
            result = result.and(worker.join().and_then(|outcome| outcome));
        }
        result
    }
}

impl Drop for Pool {
    /// No thread outlives the pool.
    fn drop(&mut self) {
        if self.jobs.is_some() {
            self.shared.ordered.abandon();
            // A panic of a hash nobody waits for is nobody's.
            let _ = self.join();
        }
    }
}

impl Shared {
    fn hash(&self, number: u64, chunk: &Chunk) {
        let mut digests = self.ordered.empty_chunk();
        let mut batch = self.hasher.batch(&mut digests);
        let mut start = 0;
        for &(position, count) in &chunk.zero_runs {
            batch.content(&chunk.data[start..position]);
            batch.zero_blocks(count);
            start = position;
        }
        batch.content(&chunk.data[start..]);
        batch.finish();
        // Once abandoned, nobody wants it.
        let _ = self.ordered.hand_in(number, digests);
    }
}

fn recycle(used: &Sender<Chunk>, mut chunk: Chunk) {
    chunk.data.clear();
    chunk.zero_runs.clear();
    // The pool may be gone already.
    let _ = used.send(chunk);
}
