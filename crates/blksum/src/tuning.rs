//! What only changes the speed of a checksum, and how much of it is too much.

use std::num::NonZero;
use std::thread;

use blkhash::{Algorithm, Digester, Implementation};

/// What only changes the speed of a checksum, and how much of it is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Threads that hash at once, the caller's included. They read as well; where the source wants
    /// more reads in flight than there are threads ([`blkimage::Source::queue_depth`]), there are more
    /// threads, and those that find this many at work wait before they hash.
    pub threads: usize,
    /// Bytes that one thread reads at a time: rounded up to a power of two, and to the block size
    /// or the image's granularity where those are larger.
    pub read_size: usize,
    /// Chunks that may be done ahead of the first one that is not.
    pub queue_depth: usize,
    /// The most bytes of zeros that an image may have without storing them: more are [`Error::Zeros`](crate::Error::Zeros).
    /// They cost time although nothing is read: a file of a few bytes can claim 2^63 of them. `None` is
    /// 2^32 blocks, or 4 TiB where the construction hashes each byte.
    pub max_zeros: Option<u64>,
    /// The only implementation that hashes; `None` is the best for each batch of blocks.
    pub implementation: Option<Implementation>,
}

impl Tuning {
    /// Bytes that a thread reads at a time, before the content is known.
    pub(crate) fn clamped_read_size(&self) -> usize {
        self.read_size.clamp(MIN_READ_SIZE, MAX_BUFFER).next_power_of_two()
    }

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

/// Large enough to fill the lanes of a kernel, small enough for a core's own cache.
const DEFAULT_READ_SIZE: usize = 1 << 20;

/// Smaller reads cost more calls than they save memory.
const MIN_READ_SIZE: usize = 4 << 10;

/// The most that a thread reads at a time, in bytes.
pub const MAX_BUFFER: usize = 4 << 20;

/// Enough for chunks that are ahead; digests are small.
const DEFAULT_QUEUE_DEPTH: usize = 16;
