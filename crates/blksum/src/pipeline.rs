//! The way from an image to its checksum: every thread takes the next chunk, reads it, hashes its
//! blocks and hands their digests in.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};

use blkhash::{
    Abandoned, Algorithm, BlockDigests, BlockPieces, Digest, Digester, Implementation, Ordered,
    Parameters,
};
use blkimage::Source;

use crate::memory::{Memory, fill};
use crate::method::{Method, accumulate};
use crate::plan::{Chunk, Piece, Plan};
use crate::slots::Slots;
use crate::{Error, Progress};

/// What only changes the speed of a checksum, and how much of it is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Threads that hash at once, the caller's included. They read as well; where the source wants
    /// more reads in flight than there are threads ([`Source::queue_depth`]), there are more
    /// threads, and those that find this many at work wait before they hash.
    pub threads: usize,
    /// Bytes that one thread reads at a time: rounded up to a power of two, and to the block size
    /// or the image's granularity where those are larger.
    pub read_size: usize,
    /// Chunks that may be done ahead of the first one that is not.
    pub queue_depth: usize,
    /// The most bytes of zeros that an image may have without storing them: more are [`Error::Zeros`].
    /// They cost time although nothing is read: a file of a few bytes can claim 2^63 of them. `None` is
    /// 2^32 blocks, or 4 TiB where the construction hashes each byte.
    pub max_zeros: Option<u64>,
    /// The only implementation that hashes; `None` is the best for each batch of blocks.
    pub implementation: Option<Implementation>,
}

impl Tuning {
    /// What hashes with `algorithm`: [`Tuning::implementation`] if it is one of it, or whatever is
    /// best.
    ///
    /// # Errors
    ///
    /// The implementation cannot run here.
    pub fn digester(&self, algorithm: Algorithm) -> Result<Digester, blkhash::Error> {
        match self.implementation.filter(|known| known.algorithm == algorithm) {
            Some(known) => Digester::with_implementation(algorithm, &known.name()),
            None => Ok(Digester::new(algorithm)),
        }
    }
}

impl Default for Tuning {
    /// All processors.
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, NonZero::get),
            read_size: DEFAULT_READ_SIZE,
            queue_depth: DEFAULT_QUEUE_DEPTH,
            max_zeros: None,
            implementation: None,
        }
    }
}

/// The checksum of what `source` holds, computed on the caller's thread and
/// [`Tuning::threads`] - 1 others, or [`Source::queue_depth`] - 1 where that is more. They start only
/// where there is work for them.
///
/// Memory of its own is the number of threads times [`Tuning::read_size`], or times the block size or the
/// source's granularity where those are more, but never times more than [`MAX_BUFFER`]: longer blocks
/// are hashed as they are read. The image's size does not matter.
///
/// # Errors
///
/// The first of the image's errors in the order of its content, as far as the threads had come; that
/// the image changed while it was read; that it has too many zeros; or that [`Tuning::implementation`] cannot run here.
pub fn checksum(
    source: &dyn Source,
    parameters: &Parameters,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Digest, Error> {
    let hashing_threads = tuning.threads.clamp(1, MAX_THREADS);
    let threads = hashing_threads.max(source.queue_depth().min(MAX_THREADS));
    let read_size = tuning.read_size.clamp(MIN_READ_SIZE, MAX_BUFFER).next_power_of_two() as u64;
    let digester = tuning.digester(parameters.algorithm())?;
    let method = Method::new(parameters, &digester, read_size, source.size());
    let max_zero_blocks = match tuning.max_zeros {
        Some(bytes) => bytes / method.block_size(),
        None => method.default_max_zero_blocks(),
    };
    let plan = Plan::new(source, method.block_size(), read_size)
        .with_max_zero_run(method.max_zero_run())
        .with_max_zero_blocks(max_zero_blocks);
    let accumulator = method.accumulator(parameters, &digester, hashing_threads);
    let job = Job {
        source,
        progress,
        lends: digester.hides_latency(),
        method,
        pieces: BlockPieces::new(digester.clone()),
        block_size: plan.block_size(),
        buffer_size: plan.chunk_size().min(MAX_BUFFER as u64) as usize,
        plan: Mutex::new(plan),
        ordered: Ordered::new(accumulator, tuning.queue_depth.max(2 * threads)),
        idle_threads: AtomicUsize::new(threads - 1),
        hashing: (threads > hashing_threads).then(|| Slots::new(hashing_threads)),
        failure: Mutex::new(None),
    };
    progress.set_total(source.size());
    thread::scope(|scope| job.run(scope));

    if let Some((_, error)) = job.failure.into_inner().expect("no thread panicked") {
        return Err(error);
    }
    source.check_unchanged()?;
    let (length, digest) = job.ordered.finish().map_err(|Abandoned| Error::Incomplete)?;
    if length == source.size() { Ok(digest) } else { Err(Error::Incomplete) }
}

/// One checksum in the making, shared by its threads.
struct Job<'a> {
    source: &'a dyn Source,
    progress: &'a Progress,
    method: Method,
    /// Whether data is hashed where it lies, if the source lends it.
    lends: bool,
    /// An empty block, to be copied.
    pieces: BlockPieces,
    block_size: u64,
    buffer_size: usize,
    plan: Mutex<Plan<'a>>,
    ordered: Ordered,
    /// Threads that may still be started.
    idle_threads: AtomicUsize,
    /// Who may hash, where there are threads that only read.
    hashing: Option<Slots>,
    /// The first error in the order of the content, with the number of its chunk.
    failure: Mutex<Option<(u64, Error)>>,
}

impl<'a> Job<'a> {
    /// Works until there is nothing left, on this thread and others.
    fn run<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let _guard = AbandonOnPanic(&self.ordered);
        let mut chunk = Chunk::default();
        if let Err(Stop::Failed(error)) = self.work(scope, &mut chunk) {
            let mut failure = self.failure.lock().expect("no thread panicked");
            if failure.as_ref().is_none_or(|(number, _)| chunk.number < *number) {
                *failure = Some((chunk.number, error));
            }
            self.ordered.abandon();
        }
    }

    fn work<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        chunk: &mut Chunk,
    ) -> Result<(), Stop> {
        let mut memory = Memory::default();
        loop {
            let is_last = {
                let mut plan = self.plan.lock().expect("no thread panicked");
                if !plan.next(chunk)? {
                    return Ok(());
                }
                plan.is_at_end()
            };
            if chunk.data_length > 0 && !is_last {
                self.start_thread(scope);
            }
            if chunk.data_length > self.buffer_size as u64 {
                let buffer = memory.buffer(self.buffer_size);
                let mut digests = self.ordered.empty_chunk();
                self.hash_long_block(chunk, buffer, &mut digests)?;
                self.ordered.hand_in(chunk.number, digests)?;
            } else if let Method::InTurn = self.method {
                memory.fetch(self.source, chunk, None)?;
                self.ordered.in_turn(chunk.number, |accumulator| {
                    accumulate(chunk, memory.data(), accumulator);
                })?;
            } else {
                let digests = self.hash(chunk, &mut memory)?;
                self.ordered.hand_in(chunk.number, digests)?;
            }
            self.progress.advance(chunk.length);
        }
    }

    /// Starts another thread, if there may be one and the system has one to give.
    fn start_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let taken = self
            .idle_threads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |idle| idle.checked_sub(1));
        if taken.is_ok() {
            // Without it the others do its work.
            let _ = thread::Builder::new()
                .name("blksum".to_owned())
                .spawn_scoped(scope, move || self.run(scope));
        }
    }

    /// Brings the data of a chunk and hashes its pieces.
    fn hash(&self, chunk: &Chunk, memory: &mut Memory) -> Result<BlockDigests, Error> {
        let mut digests = self.ordered.empty_chunk();
        let mut lend = self.lends.then_some(self.block_size);
        loop {
            memory.fetch(self.source, chunk, lend)?;
            let slot = (chunk.data_length > 0).then(|| self.hashing.as_ref().map(Slots::take));
            self.method.hash(chunk, memory.data(), &mut digests);
            drop(slot);
            if memory.is_intact() {
                return Ok(digests);
            }
            // Reading it again tells why, or gives what is there.
            digests.clear();
            lend = None;
        }
    }

    /// Reads and hashes a chunk whose only block with data is longer than the buffer.
    fn hash_long_block(
        &self,
        chunk: &Chunk,
        buffer: &mut [u8],
        digests: &mut BlockDigests,
    ) -> Result<(), Error> {
        let mut reads = chunk.reads.as_slice();
        for piece in &chunk.pieces {
            match *piece {
                Piece::ZeroBlocks(count) => {
                    digests.push_zero_blocks(count, self.block_size as usize);
                }
                Piece::Data { offset, length } => {
                    let mut block = self.pieces.clone();
                    while block.length() < length {
                        let left = (length - block.length()).min(buffer.len() as u64);
                        let part = &mut buffer[..left as usize];
                        fill(self.source, part, offset + block.length(), &mut reads)?;
                        let _slot = self.hashing.as_ref().map(Slots::take);
                        block.data(part);
                    }
                    if block.is_zero() && length == self.block_size {
                        digests.push_zero_blocks(1, self.block_size as usize);
                    } else {
                        digests.push(&block.finish(), length);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Ends the other threads if this one panics: they would wait for its chunk.
struct AbandonOnPanic<'a>(&'a Ordered);

impl Drop for AbandonOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abandon();
        }
    }
}

/// Why a thread stops before the end of the content.
enum Stop {
    /// Something cannot be had.
    Failed(Error),
    /// Another thread failed.
    Abandoned,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Abandoned> for Stop {
    fn from(Abandoned: Abandoned) -> Self {
        Self::Abandoned
    }
}

/// Large enough to fill the lanes of a kernel, small enough for a core's own cache.
const DEFAULT_READ_SIZE: usize = 1 << 20;

/// Smaller reads cost more calls than they save memory.
const MIN_READ_SIZE: usize = 4 << 10;

/// The most that a thread reads at a time, in bytes.
pub const MAX_BUFFER: usize = 4 << 20;

/// Enough for chunks that are ahead; digests are small.
const DEFAULT_QUEUE_DEPTH: usize = 16;

/// More threads than that cost memory only.
const MAX_THREADS: usize = 1024;
