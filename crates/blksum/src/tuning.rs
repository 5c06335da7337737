//! Settings that affect the speed of a checksum, and limits on its cost.

use blkhash::{Algorithm, Digester, Implementation};

/// Settings that affect the speed of a checksum, and limits on its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuning {
    /// Number of threads that hash at once, including the caller's. They also read. If the source
    /// wants more reads in flight ([`blkimage::Source::queue_depth`]), there are more threads, but
    /// only this many hash at once.
    pub threads: usize,
    /// Bytes that one thread reads at a time. Rounded up to a power of two, and to the block size
    /// or the image's granularity if larger. With the default or more, also to the blocks that are
    /// hashed side by side, up to [`MAX_BUFFER`].
    pub read_size: usize,
    /// Number of chunks that may be finished ahead of the first unfinished one. At least twice the
    /// number of threads is used.
    pub queue_depth: usize,
    /// Maximum number of bytes of zeros that an image may have without storing them. More are
    /// [`Error::Zeros`](crate::Error::Zeros). Zeros cost time although nothing is read, and a file
    /// of a few bytes can claim 2^63 of them. `None` is 2^32 blocks, or 4 TiB if the construction
    /// hashes each byte.
    pub max_zeros: Option<u64>,
    /// The only implementation to hash with. `None` chooses the fastest for each batch of blocks.
    pub implementation: Option<Implementation>,
}

impl Tuning {
    /// Returns these settings with another number of threads.
    #[must_use]
    pub const fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Returns these settings with another number of bytes that one thread reads at a time.
    #[must_use]
    pub const fn with_read_size(self, read_size: usize) -> Self {
        Self { read_size, ..self }
    }

    /// Returns these settings with another number of chunks that may be finished ahead.
    #[must_use]
    pub const fn with_queue_depth(self, queue_depth: usize) -> Self {
        Self { queue_depth, ..self }
    }

    /// Returns these settings with another limit on zeros that are not stored.
    #[must_use]
    pub const fn with_max_zeros(self, max_zeros: Option<u64>) -> Self {
        Self { max_zeros, ..self }
    }

    /// Returns these settings with another choice of the implementation.
    #[must_use]
    pub const fn with_implementation(self, implementation: Option<Implementation>) -> Self {
        Self { implementation, ..self }
    }

    /// Bytes that a thread reads at a time, before the block size and the granularity are
    /// considered.
    pub(crate) fn clamped_read_size(&self) -> usize {
        self.read_size.clamp(MIN_READ_SIZE, MAX_BUFFER).next_power_of_two()
    }

    /// Returns the settings with this limit on zeros, unless they have one.
    #[must_use]
    pub fn with_default_limit(&self, max_zeros: u64) -> Self {
        Self { max_zeros: self.max_zeros.or(Some(max_zeros)), ..*self }
    }

    /// Returns a digester for `algorithm`, using [`Tuning::implementation`] if it belongs to
    /// `algorithm`, or the fastest implementations otherwise.
    ///
    /// # Errors
    ///
    /// Fails if the implementation cannot run here.
    pub fn digester(&self, algorithm: Algorithm) -> Result<Digester, blkhash::Error> {
        match self.implementation.filter(|known| known.algorithm == algorithm) {
            Some(known) => Digester::with_implementation(algorithm, &known.name()),
            None => Ok(Digester::new(algorithm)),
        }
    }
}

impl Default for Tuning {
    /// Uses all processors.
    fn default() -> Self {
        Self {
            threads: blksys::processors(),
            read_size: DEFAULT_READ_SIZE,
            queue_depth: DEFAULT_QUEUE_DEPTH,
            max_zeros: None,
            implementation: None,
        }
    }
}

/// Large enough to fill the lanes of a kernel, and small enough for a core's own cache.
pub(crate) const DEFAULT_READ_SIZE: usize = 1 << 20;

/// Smaller reads save little memory and cost many system calls.
const MIN_READ_SIZE: usize = 4 << 10;

/// Maximum number of bytes that a thread reads at a time.
/// Limit in bytes.
pub const MAX_BUFFER: usize = 4 << 20;

/// Enough for chunks that are ahead, and little memory because digests are small.
const DEFAULT_QUEUE_DEPTH: usize = 16;
