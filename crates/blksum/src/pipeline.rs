//! One pass over an image. Each thread takes the next chunk, reads it, hashes it for all lanes and
//! hands in the results.
//!
//! 1. A [`Plan`](crate::plan) asks the image for extents as it goes and cuts the content into chunks: about 1 MiB of data to
//!    read, and the lengths of the zero runs in between. They end at multiples of the largest block of all lanes. A long zero run
//!    is a chunk of its own. One thread at a time plans, some chunks ahead of the others ([`crate::look_ahead`]). If the
//!    source wants to know what will be read, the plan announces each chunk.
//! 2. Each thread takes the next chunk and gets its data. If the file is in the page cache and all algorithms of the pass hide the
//!    latency of memory, the data is mapped (`Image::lend`). Otherwise the thread reads into its own buffer. The first
//!    thread is the caller's. Another one starts if a thread finds data and the limit allows it ([`crate::crew`]).
//! 3. For each lane, the thread passes the blocks to a batch of blkhash, which skips zero blocks and hashes the others side by side.
//! 4. The digests of the chunk go to the `Ordered` of the lane. The thread with the next chunk in order feeds the sink, and with it
//!    the chunks that waited for it. No thread exists only to move data, and data never waits in a queue.
//! 5. At the end of the plan, the image is checked for changes. If several threads fail, the error that comes first in the content
//!    is reported.
//!
//! `linear` has no blocks. If the hash of the whole can be computed from hashes of its parts (BLAKE3 and the CRCs), threads hash
//! segments. Otherwise they read ahead, and hash their chunk in their turn. A remote server needs more reads in flight than there are
//! processors: as many threads run as `Source::queue_depth` says, and a semaphore lets at most `--threads` of them hash at a time.

use blkimage::Source;

use crate::crew::{self, Stop, Work};
use crate::lane::{HandIn, Lane};
use crate::memory::{Memory, fill};
use crate::plan::{Chunk, Piece, Plan, ZeroLimits};
use crate::semaphore::Semaphore;
use crate::tee::{Tee, pass_on};
use crate::tuning::{DEFAULT_READ_SIZE, MAX_BUFFER};
use crate::{Error, Progress, Tuning};

/// Feeds the content of `source` to `tee` and to each lane. `lends` allows hashing data in place if the
/// source lends it.
pub(crate) fn run(
    source: &dyn Source,
    lanes: Vec<Box<dyn Lane + '_>>,
    tee: Option<&dyn Tee>,
    lends: bool,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Error> {
    let (threads, hashing_threads) = threads(source, tuning);
    let unit = lanes.iter().map(|lane| lane.unit()).max().unwrap_or(1);
    let size = chunk_size(source.size(), &lanes, hashing_threads, tuning);
    let plan = Plan::new(source, unit, size, limits(&lanes, tuning));
    let pass = Pass {
        source,
        progress,
        tee,
        // An in-turn lane hashes after the check that lent data is intact, so it needs its own copy.
        lends: lends && !lanes.iter().any(|lane| lane.is_in_turn()),
        lanes,
        unit,
        buffer_size: plan.chunk_size().min(MAX_BUFFER as u64) as usize,
        hashing: (threads > hashing_threads).then(|| Semaphore::new(hashing_threads)),
    };
    progress.set_total(progress.done() + source.size());
    crew::run(&pass, plan, threads, progress)?;
    source.check_unchanged()?;
    if pass.lanes.into_iter().all(Lane::finish) { Ok(()) } else { Err(Error::Incomplete) }
}

/// Returns the number of threads, and how many of them may hash at once.
pub(crate) fn threads(source: &dyn Source, tuning: &Tuning) -> (usize, usize) {
    crew::threads(source.queue_depth(), tuning)
}

/// Returns how many bytes a thread reads and hashes at a time, a power of two. More than usual are read for large blocks of which
/// several are hashed at once, as far as all threads get a share, unless the settings ask for less.
fn chunk_size(size: u64, lanes: &[Box<dyn Lane + '_>], threads: usize, tuning: &Tuning) -> u64 {
    let usual = tuning.clamped_read_size();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size <= usual || usual < DEFAULT_READ_SIZE {
        return usual as u64;
    }
    let share = lanes.iter().filter_map(|lane| lane.shares(threads)).map(|it| it.share(size)).max();
    let share = share.map_or(0, |share| 1 << share.ilog2());
    usual.max(share) as u64
}

/// Returns the limits that suit all lanes.
fn limits(lanes: &[Box<dyn Lane + '_>], tuning: &Tuning) -> ZeroLimits {
    let limits = lanes.iter().map(|lane| lane.zero_limits()).reduce(|one, other| ZeroLimits {
        piece: one.piece.min(other.piece),
        alone: one.alone.min(other.alone),
        total: one.total.min(other.total),
    });
    let none = ZeroLimits { piece: u64::MAX, alone: u64::MAX, total: u64::MAX };
    let limits = limits.unwrap_or(none);
    ZeroLimits { total: tuning.max_zeros.unwrap_or(limits.total), ..limits }
}

/// State of a pass, shared by its threads.
struct Pass<'a, 's> {
    source: &'a dyn Source,
    progress: &'a Progress,
    tee: Option<&'a dyn Tee>,
    lanes: Vec<Box<dyn Lane + 's>>,
    lends: bool,
    unit: u64,
    buffer_size: usize,
    /// Limits the hashing threads, if there are more threads for reading.
    hashing: Option<Semaphore>,
}

impl<'a> Work for Pass<'a, '_> {
    type Planner = Plan<'a>;
    type Space = Memory;

    fn take(&self, chunk: &Chunk, memory: &mut Memory) -> Result<(), Stop> {
        if chunk.data_length > self.buffer_size as u64 {
            self.take_in_parts(chunk, memory.buffer(self.buffer_size))?;
        } else {
            for hand_in in self.hash(chunk, memory)? {
                hand_in(memory.data())?;
            }
        }
        self.progress.advance(chunk.length, chunk.data_length);
        Ok(())
    }

    fn abandon(&self) {
        self.lanes.iter().for_each(|lane| lane.abandon());
    }
}

impl Pass<'_, '_> {
    /// Gets the data of a chunk, passes it on, and hashes its pieces for each lane.
    fn hash<'c>(&'c self, chunk: &'c Chunk, memory: &mut Memory) -> Result<Vec<HandIn<'c>>, Error> {
        let mut lend = self.lends.then_some(self.unit);
        loop {
            memory.fetch(self.source, chunk, lend)?;
            // The system may refuse to write lent data that is gone, so this error comes after the check below.
            let passed = self.tee.map(|tee| pass_on(tee, chunk, memory.data()));
            let permit =
                (chunk.data_length > 0).then(|| self.hashing.as_ref().map(Semaphore::acquire));
            let hashed = self.lanes.iter().map(|lane| lane.hash(chunk, memory.data())).collect();
            drop(permit);
            if memory.is_intact() {
                return passed.transpose().map(|_| hashed);
            }
            // Reading the data again gives either the error or the current content.
            lend = None;
        }
    }

    /// Reads and hashes a chunk with more data than fits in the buffer.
    fn take_in_parts(&self, chunk: &Chunk, buffer: &mut [u8]) -> Result<(), Stop> {
        let mut lanes = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            lanes.push(lane.parts(chunk, buffer.len())?);
        }
        let mut reads = chunk.reads.as_slice();
        for piece in &chunk.pieces {
            match *piece {
                Piece::Zeros { offset, length } => {
                    if let Some(tee) = self.tee {
                        tee.zeros(offset, length).map_err(Error::Sink)?;
                    }
                    lanes.iter_mut().for_each(|lane| lane.zero(length));
                }
                Piece::Data { offset, length } => {
                    let mut done = 0;
                    while done < length {
                        let left = (length - done).min(buffer.len() as u64);
                        let part = &mut buffer[..left as usize];
                        fill(self.source, part, offset + done, &mut reads)?;
                        if let Some(tee) = self.tee {
                            tee.data(offset + done, part).map_err(Error::Sink)?;
                        }
                        done += left;
                        let _permit = self.hashing.as_ref().map(Semaphore::acquire);
                        lanes.iter_mut().for_each(|lane| lane.update(part, done == length));
                    }
                }
            }
        }
        lanes.into_iter().try_for_each(|parts| Ok(parts.hand_in()?))
    }
}
