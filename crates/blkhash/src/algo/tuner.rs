//! Learns which kernel is the fastest on this CPU, from the time that batches of a large job take.
//!
//! What was learnt belongs to the process, and all threads share it. It is learnt for each class of
//! batches by itself, because sixteen lanes only pay off if enough of them are filled. After some
//! bytes of a class, a *look* times its next batches, in turns with each kernel that could be the
//! best. All kernels give the same digests, so that no work is lost. Then the best one is used until
//! the next look, which finds out whether a neighbour or the clock changed the order.
//!
//! - A small job does not read the clock. A batch adds to a counter of its thread, and reads one
//!   shared flag.
//! - Only batches of the same shape are compared: as many inputs, as long. They are hashed in
//!   turns, so that a change of the clock, or of the place of the data, affects all kernels alike.
//! - An interrupt, a page fault or a busy neighbour only make a batch slower. So a low sample counts
//!   and not the mean. It is not the lowest, because some batches may be in the cache by chance.
//! - Another kernel is used only if it is clearly faster than the current one.
//!
//! This module does not read the clock and runs no kernel. Its caller does.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The measurements of the kernels of a family.
pub(super) struct Tuner {
    classes: [Class; CLASSES],
    /// A bit for each class that a look is due for.
    due: AtomicU32,
}

/// The bytes of each class that a thread has hashed and not yet reported.
pub(super) struct Pending([Cell<u64>; CLASSES]);

/// The measurements of the batches of a class.
struct Class {
    /// The index of the best kernel plus 1, or 0 before the first look.
    best: AtomicU8,
    /// Bytes to hash until the next look.
    until_look: AtomicI64,
    look: Mutex<Look>,
}

/// The number of inputs and their length in bytes.
pub(crate) type Shape = (usize, usize);

/// Permission to time a batch with a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    class: usize,
    /// The index of the kernel.
    pub kernel: usize,
    /// The number of the look that the turn belongs to.
    look: u32,
}

/// A comparison of kernels, in progress or completed.
struct Look {
    number: u32,
    shape: Option<Shape>,
    /// The kernels that are compared. The first one is in use.
    candidates: Vec<Candidate>,
    turns: usize,
    /// Number of batches of other shapes since the last turn.
    others: u32,
    results: Vec<Timing>,
}

struct Candidate {
    kernel: usize,
    /// Nanoseconds for a byte.
    samples: Vec<f64>,
    is_out: bool,
}

/// The time that a kernel took in the last look of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    pub kernel: usize,
    pub shape: Shape,
    pub nanoseconds_per_byte: f64,
    /// Whether the kernel is used since.
    pub is_best: bool,
}

impl Tuner {
    /// Creates a tuner that knows nothing.
    pub const fn new() -> Self {
        Self { classes: [const { Class::new() }; CLASSES], due: AtomicU32::new(0) }
    }

    /// Returns the index of the kernel that was the best in the last look.
    pub fn best(&self, class: usize) -> Option<usize> {
        usize::from(self.classes[class].best.load(Ordering::Relaxed)).checked_sub(1)
    }

    /// Counts the bytes of a batch, and returns whether it could have a turn.
    pub fn count(&self, pending: &Pending, class: usize, bytes: usize) -> bool {
        if self.due.load(Ordering::Relaxed) & (1 << class) != 0 {
            return true;
        }
        let sum = pending.0[class].get() + bytes as u64;
        if sum < REPORTED {
            pending.0[class].set(sum);
            return false;
        }
        pending.0[class].set(0);
        let before = self.classes[class].until_look.fetch_sub(sum as i64, Ordering::Relaxed);
        if before > sum as i64 {
            return false;
        }
        self.due.fetch_or(1 << class, Ordering::Relaxed);
        true
    }

    /// Returns a turn for a batch, or `None` if it has another shape than the batches of the look, the look was
    /// completed, or another thread has it. `candidates` returns the kernels to compare, that in use first.
    pub fn turn(
        &self,
        class: usize,
        shape: Shape,
        candidates: impl FnOnce() -> Vec<usize>,
    ) -> Option<Turn> {
        let mut look = self.classes[class].try_lock()?;
        if self.due.load(Ordering::Relaxed) & (1 << class) == 0 {
            return None;
        }
        match look.shape {
            Some(known) if known == shape => {}
            Some(_) if look.others < MAX_OTHERS => {
                look.others += 1;
                return None;
            }
            _ => look.begin(shape, candidates()),
        }
        if look.candidates.len() < 2 {
            self.complete(class, &mut look);
            return None;
        }
        look.others = 0;
        Some(Turn { class, kernel: look.next(), look: look.number })
    }

    /// Records that a batch took `nanoseconds`, unless another thread has the look. The last sample
    /// of a look completes it.
    pub fn record(&self, turn: Turn, nanoseconds: f64) {
        let Some(mut look) = self.classes[turn.class].try_lock() else { return };
        let Some((count, length)) = look.shape.filter(|_| look.number == turn.look) else { return };
        let sample = nanoseconds / (count * length) as f64;
        if look.record(turn.kernel, sample) {
            self.complete(turn.class, &mut look);
        }
    }

    /// Returns the results of the last look of each class.
    pub fn timings(&self) -> Vec<Timing> {
        let looks = self.classes.iter().filter_map(Class::try_lock);
        looks.flat_map(|look| look.results.clone()).collect()
    }

    /// Ends a look, and uses its best kernel until the next one.
    fn complete(&self, class: usize, look: &mut Look) {
        let best = look.end();
        let state = &self.classes[class];
        if let Some(best) = best {
            state.best.store(best as u8 + 1, Ordering::Relaxed);
        }
        state.until_look.store(NEXT_LOOK, Ordering::Relaxed);
        self.due.fetch_and(!(1 << class), Ordering::Relaxed);
    }
}

impl Pending {
    /// Creates the counters of a thread.
    pub const fn new() -> Self {
        Self([const { Cell::new(0) }; CLASSES])
    }
}

impl Class {
    const fn new() -> Self {
        Self {
            best: AtomicU8::new(0),
            until_look: AtomicI64::new(FIRST_LOOK),
            look: Mutex::new(Look::new()),
        }
    }

    /// Returns the look, unless another thread has it. Then the caller continues without it. No thread waits
    /// for another, and a forked child does not wait for a thread that it lacks.
    fn try_lock(&self) -> Option<MutexGuard<'_, Look>> {
        match self.look.try_lock() {
            Ok(look) => Some(look),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Look {
    const fn new() -> Self {
        Self {
            number: 0,
            shape: None,
            candidates: Vec::new(),
            turns: 0,
            others: 0,
            results: Vec::new(),
        }
    }

    fn begin(&mut self, shape: Shape, kernels: Vec<usize>) {
        let candidate = |kernel| Candidate { kernel, samples: Vec::new(), is_out: false };
        self.number = self.number.wrapping_add(1);
        self.shape = Some(shape);
        self.candidates = kernels.into_iter().map(candidate).collect();
        (self.turns, self.others) = (0, 0);
    }

    /// Returns the kernel whose turn it is.
    fn next(&mut self) -> usize {
        let left: Vec<&Candidate> = self.candidates.iter().filter(|it| !it.is_out).collect();
        let kernel = left[self.turns % left.len()].kernel;
        self.turns += 1;
        kernel
    }

    /// Adds a sample, and excludes kernels that are far slower. Returns whether the look is
    /// complete. The kernel in use is never excluded, because its samples cost nothing.
    fn record(&mut self, kernel: usize, sample: f64) -> bool {
        if let Some(candidate) = self.candidates.iter_mut().find(|it| it.kernel == kernel) {
            candidate.samples.push(sample);
        }
        let fewest = |look: &Self| {
            let left = look.candidates.iter().filter(|it| !it.is_out);
            left.map(|it| it.samples.len()).min().unwrap_or(0)
        };
        if fewest(self) >= FIRST_SAMPLES {
            let left = self.candidates.iter().filter(|it| !it.is_out);
            let best = left.map(Candidate::lowest).fold(f64::INFINITY, f64::min);
            for candidate in &mut self.candidates[1..] {
                candidate.is_out |= candidate.lowest() > best * FAR_BEHIND;
            }
        }
        let is_alone = self.candidates[1..].iter().all(|it| it.is_out);
        is_alone || fewest(self) >= SAMPLES
    }

    /// Returns the kernel to use, or `None` if nothing was compared.
    fn end(&mut self) -> Option<usize> {
        let candidates = std::mem::take(&mut self.candidates);
        let shape = self.shape.take()?;
        let current = candidates.first()?;
        let left = candidates.iter().filter(|it| !it.is_out);
        let fastest = left.min_by(|a, b| a.low().total_cmp(&b.low())).unwrap_or(current);
        let is_faster = fastest.low() < current.low() * CLEARLY_FASTER;
        let best = if is_faster { fastest.kernel } else { current.kernel };
        if candidates.len() > 1 {
            let timings = candidates.iter().map(|it| Timing {
                kernel: it.kernel,
                shape,
                nanoseconds_per_byte: it.low(),
                is_best: it.kernel == best,
            });
            self.results = timings.collect();
        }
        Some(best)
    }
}

impl Candidate {
    fn lowest(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the second lowest sample, or the only one.
    fn low(&self) -> f64 {
        let mut samples = self.samples.clone();
        samples.sort_by(f64::total_cmp);
        samples.get(1).or(samples.first()).copied().unwrap_or(f64::INFINITY)
    }
}

/// Number of classes of batches, the lanes of the widest kernel.
pub(super) const CLASSES: usize = 16;

/// Bytes of a class until its first look. A look costs about as much as hashing a few MiB more.
const FIRST_LOOK: i64 = 64 << 20;

/// Bytes of a class between two looks, so that they cost about a thousandth.
const NEXT_LOOK: i64 = 4 << 30;

/// Bytes that a thread hashes before it reports them, so that threads seldom write to the same memory.
const REPORTED: u64 = 4 << 20;

/// Samples of each kernel until kernels that are far slower are excluded. A thread that is interrupted once or twice
/// does not exclude a kernel.
const FIRST_SAMPLES: usize = 3;

/// A kernel is excluded if it takes this many times as long as the fastest one.
const FAR_BEHIND: f64 = 1.2;

/// Samples of each kernel in a look.
const SAMPLES: usize = 8;

/// Another kernel is used if it takes less than this part of the time of the current one. Two looks
/// at the same kernels differ by less than the rest.
const CLEARLY_FASTER: f64 = 0.97;

/// Batches of other shapes until the look begins again with the current shape.
const MAX_OTHERS: u32 = 64;

#[cfg(test)]
mod tests;
