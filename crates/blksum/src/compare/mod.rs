//! Compares the guest content of two images in one pass.
//!
//! A plan ([`plan`]) asks both sources where their bytes come from. Ranges that are zero on both sides,
//! or come from one place, are never read: one of a file, or one of a volume ([`on_volume`]). The threads of a crew read the rest, from one side if the
//! other is zero, and compare it block by block ([`blocks`]). The results are handed over in order.

mod blocks;
mod nonzero;
mod on_volume;
mod pair;
mod plan;
mod short_end;
mod unshared;

use std::ops::Range;

use blkhash::engine::Ordered;
use blkhash::{BlockSize, Comparison, Sink, SinkError, is_zero};
use blkimage::{Buffer, Source};

use self::blocks::{Blocks, Runs};
pub use self::nonzero::first_nonzero;
use self::pair::Pair;
use self::plan::{Chunk, Plan, SegmentKind};
use self::short_end::ShortEnd;
pub(crate) use self::unshared::unshared;
use crate::crew::{self, Stop, Work};
use crate::look_ahead::Planned;
use crate::semaphore::Semaphore;
use crate::tuning::MAX_BUFFER;
use crate::unreadable::{Places, ReadAround, Unreadable};
use crate::{Error, Progress, Tuning};

/// Consecutive blocks that compare in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComparedRun {
    /// Index of the first block, counted from 0.
    pub first_block: u64,
    /// Number of blocks, never 0.
    pub count: u64,
    /// The relation of all of them.
    pub comparison: Comparison,
}

impl ComparedRun {
    /// Creates a run of `count` blocks from `first_block` on.
    pub const fn new(first_block: u64, count: u64, comparison: Comparison) -> Self {
        Self { first_block, count, comparison }
    }
}

/// Compares the blocks of two sources as far as both reach, and passes all of them to `sink` in order, as
/// runs of maximal length.
///
/// The block in which the shorter source ends is compared as if zeros followed it. For the blocks after it, which only
/// the longer source has, see [`first_nonzero`].
///
/// Reads only what has to be read. Ranges that are zero on both sides according to
/// [`Source::origin`], or come from the same place, are not read, and neither is a side that is zero.
/// Files on btrfs and XFS have the same place where they share an extent ([`Source::volume_origins`]). A
/// block is zero if all of its bytes are, whether stored or not. There is one exception: equal blocks
/// are [`Comparison::Equal`] if a part of them comes from the same place, even if it contains zeros,
/// because it was not read. For the same reason, the block in which the shorter source ends can be
/// [`Comparison::Changed`] where one side is zeros. [`Comparison::Unknown`] is never passed on.
///
/// Runs on the caller's thread and others, like [`checksum`](crate::checksum()). Each thread has two
/// buffers of [`Tuning::read_size`] bytes, or of the block size or the sources' granularity if larger,
/// but at most [`MAX_BUFFER`]. Memory use does not depend on the size of the images.
/// [`Tuning::max_zeros`] and [`Tuning::implementation`] have no effect. The total of `progress` is the
/// number of bytes compared.
///
/// Blocks of which one side cannot be read are [`Comparison::Unreadable`], and the comparison continues after them.
/// Returns the first place for each of some reasons. Reads that fail may take ten minutes, or as long as all others if
/// that is more.
///
/// # Errors
///
/// Fails for an error that is not only about some of the bytes ([`blkimage::Error::is_of_bytes`]), if an image changed while
/// it was read, if the sink fails, or if [`Progress::cancel`] was called. After an error, what the sink received is not valid.
pub fn compare(
    left: &dyn Source,
    right: &dyn Source,
    block_size: BlockSize,
    sink: &mut (dyn Sink<ComparedRun> + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Unreadable>, Error> {
    let places = Places::new(block_size.into(), 0..u64::MAX, progress);
    let left = ReadAround::new(left, &places, true);
    let right = ReadAround::new(right, &places, false);
    let compared = compare_around(&left, &right, block_size, sink, &places, tuning, progress);
    compared.map_err(|error| places.of_pass(error))?;
    Ok(places.into_reasons())
}

fn compare_around(
    left: &dyn Source,
    right: &dyn Source,
    block_size: BlockSize,
    sink: &mut (dyn Sink<ComparedRun> + Send),
    places: &Places<'_>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Error> {
    let short_end = ShortEnd::find(left, right, block_size, tuning)?;
    let queue_depth = left.queue_depth().max(right.queue_depth());
    let (threads, comparing_threads) = crew::threads(queue_depth, tuning);
    let block_size = block_size.get() as u64;
    let plan = Plan::new(left, right, block_size, tuning.clamped_read_size() as u64);
    let size = left.size().min(right.size());
    let pass = Pass {
        left,
        right,
        block_size,
        size,
        part_size: plan.chunk_size().min(MAX_BUFFER as u64),
        ordered: Ordered::new(
            Joiner::new(sink, places, short_end),
            tuning.queue_depth.max(2 * threads),
        ),
        comparing: (threads > comparing_threads).then(|| Semaphore::new(comparing_threads)),
        progress,
    };
    progress.set_total(size);
    crew::run(&pass, plan, threads, progress)?;
    left.check_unchanged()?;
    right.check_unchanged()?;
    let joiner = pass.ordered.finish().map_err(|_| Error::Incomplete)?;
    if joiner.end() != size.div_ceil(block_size) {
        return Err(Error::Incomplete);
    }
    joiner.finish().map_err(Error::Sink)
}

impl Sink<ComparedRun> for blkmap::Report<'_> {
    fn take(&mut self, run: &ComparedRun) -> Result<(), SinkError> {
        self.push(run.first_block, run.count, run.comparison);
        Ok(())
    }
}

/// State of a pass, shared by its threads.
struct Pass<'a, 's> {
    left: &'a dyn Source,
    right: &'a dyn Source,
    block_size: u64,
    /// Number of bytes to compare.
    size: u64,
    /// Maximum number of bytes that a thread reads at a time from each side.
    part_size: u64,
    ordered: Ordered<Runs, Joiner<'s>>,
    /// Limits the comparing threads, if there are more threads for reading.
    comparing: Option<Semaphore>,
    progress: &'a Progress,
}

impl<'a> Work for Pass<'a, '_> {
    type Planner = Plan<'a>;
    type Space = Pair;

    fn take(&self, chunk: &Chunk, pair: &mut Pair) -> Result<(), Stop> {
        let mut runs = self.ordered.empty();
        let shared_is_zero = |block| self.shared_is_zero(chunk, block);
        let mut blocks =
            Blocks::new(&mut runs, self.block_size, chunk.offset, self.size, &shared_is_zero);
        for segment in &chunk.segments {
            match segment.kind {
                SegmentKind::Zeros => blocks.zeros(segment.length)?,
                SegmentKind::Shared => blocks.shared(segment.length)?,
                SegmentKind::Read(sides) => {
                    let left = sides.left.then_some(self.left);
                    let right = sides.right.then_some(self.right);
                    self.read(left, right, segment.range(), &mut blocks, pair)?;
                }
            }
        }
        self.ordered.hand_in(chunk.number(), runs)?;
        self.progress.advance(chunk.length, chunk.data_length);
        Ok(())
    }

    fn abandon(&self) {
        self.ordered.abandon();
    }
}

impl Pass<'_, '_> {
    /// Reads a range from one side or both and compares it. A side that is `None` is zero.
    fn read(
        &self,
        left: Option<&dyn Source>,
        right: Option<&dyn Source>,
        range: Range<u64>,
        blocks: &mut Blocks<'_>,
        pair: &mut Pair,
    ) -> Result<(), Error> {
        let mut position = range.start;
        while position < range.end {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            // Parts end at multiples of their size, so that no compressed cluster is read twice.
            let length = (range.end - position).min(self.part_size - position % self.part_size);
            let mut length = length as usize;
            let mark = blocks.mark();
            let mut may_lend = true;
            loop {
                length = pair.fetch([left, right], position, length, may_lend)?;
                let permit = self.comparing.as_ref().map(Semaphore::acquire);
                let [one, other] = pair.bytes(length);
                blocks.compare(one, other)?;
                drop(permit);
                if pair.is_intact() {
                    break;
                }
                // Reading the bytes again gives either the error or the current content.
                blocks.reset(&mark);
                may_lend = false;
            }
            position += length as u64;
        }
        Ok(())
    }

    /// Returns whether the bytes of a block that both sides share are zero. Needed only if the other
    /// bytes of the block differ, and one side's are zero.
    fn shared_is_zero(&self, chunk: &Chunk, block: Range<u64>) -> Result<bool, Error> {
        let mut buffer = Buffer::default();
        for range in chunk.shared(block) {
            let mut position = range.start;
            while position < range.end {
                let length = (range.end - position).min(SHARED_STEP) as usize;
                buffer.grow(length);
                let bytes = &mut buffer.as_mut()[..length];
                self.left.read_exact_at(bytes, position)?;
                if !is_zero(bytes) {
                    return Ok(false);
                }
                position += length as u64;
            }
        }
        Ok(true)
    }
}

/// Joins the runs of consecutive chunks.
struct Joiner<'s> {
    sink: &'s mut (dyn Sink<ComparedRun> + Send),
    places: &'s Places<'s>,
    short_end: Option<ShortEnd>,
    /// The run to which the next blocks may belong.
    last: ComparedRun,
}

impl<'s> Joiner<'s> {
    fn new(
        sink: &'s mut (dyn Sink<ComparedRun> + Send),
        places: &'s Places<'s>,
        short_end: Option<ShortEnd>,
    ) -> Self {
        let last = ComparedRun { first_block: 0, count: 0, comparison: Comparison::Zeros };
        Self { sink, places, short_end, last }
    }

    /// Returns the index of the next block.
    fn end(&self) -> u64 {
        self.last.first_block + self.last.count
    }

    fn push(&mut self, count: u64, comparison: Comparison) -> Result<(), SinkError> {
        let end = self.end() + count;
        while let Some(unread) = self.places.take(self.end()..end) {
            self.join(unread.start - self.end(), comparison)?;
            self.join(unread.end - unread.start, Comparison::Unreadable)?;
        }
        self.join(end - self.end(), comparison)
    }

    fn join(&mut self, count: u64, comparison: Comparison) -> Result<(), SinkError> {
        if comparison == self.last.comparison || count == 0 {
            self.last.count += count;
            return Ok(());
        }
        let next = ComparedRun { first_block: self.end(), count, comparison };
        let last = std::mem::replace(&mut self.last, next);
        if last.count > 0 { self.sink.take(&last) } else { Ok(()) }
    }

    fn finish(self) -> Result<(), SinkError> {
        if self.last.count > 0 { self.sink.take(&self.last) } else { Ok(()) }
    }
}

impl Sink<Runs> for Joiner<'_> {
    fn take(&mut self, runs: &Runs) -> Result<(), SinkError> {
        for (count, comparison) in runs.iter() {
            match self.short_end {
                Some(end) if end.block() == self.end() + count - 1 => {
                    self.push(count - 1, comparison)?;
                    self.push(1, end.compare(comparison))?;
                }
                _ => self.push(count, comparison)?,
            }
        }
        Ok(())
    }
}

/// Bytes of shared content that are read at a time. The first ones are rarely zero.
const SHARED_STEP: u64 = 64 << 10;
