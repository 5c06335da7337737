//! Checksums and block digests of sources.

use blkhash::engine::{Accumulator, SegmentHasher};
use blkhash::{BlockDigests, Digest, Digester, Leaf, Parameters, Sink, SinkError};
use blkimage::Source;

use crate::lane::blocks::{BlockLane, Folded};
use crate::lane::in_turn::Whole;
use crate::lane::segments::Joined;
use crate::lane::{BlockHasher, Checksum, DynSink, Lane, Needed, ZeroRuns};
use crate::{Error, Progress, Tee, Tuning, pipeline};

/// Returns the checksum of the content of `source`.
///
/// Runs on the caller's thread and [`Tuning::threads`] - 1 others, or [`Source::queue_depth`] - 1
/// if that is more. Threads start only when there is work for them.
///
/// Each thread has a buffer of [`Tuning::read_size`] bytes, or of the block size or the source's
/// granularity if larger, but at most [`MAX_BUFFER`](crate::MAX_BUFFER). Longer blocks are hashed
/// as they are read. Memory use does not depend on the size of the image.
///
/// # Errors
///
/// Fails if the image cannot be read, with the first error in the order of the content among those
/// that the threads found. Fails if the image changed while it was read, if it has too many zeros,
/// if the construction is not defined for its size, if [`Tuning::implementation`] cannot run here, or
/// if [`Progress::cancel`] was called.
pub fn checksum(
    source: &dyn Source,
    parameters: &Parameters,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Digest, Error> {
    let digests = checksums(source, std::slice::from_ref(parameters), tuning, progress)?;
    Ok(digests[0])
}

/// Returns several checksums, in the order of their `parameters`. Reads the source once. Blocks that several
/// checksums are made of are hashed once.
///
/// # Errors
///
/// Fails like [`checksum`].
pub fn checksums(
    source: &dyn Source,
    parameters: &[Parameters],
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Digest>, Error> {
    Pass::new(parameters).run(source, tuning, progress)
}

/// One pass over a source with several results.
pub struct Pass<'a> {
    parameters: &'a [Parameters],
    blocks: Option<(&'a Leaf, &'a mut (dyn Sink<BlockDigests> + Send))>,
    tee: Option<&'a dyn Tee>,
}

impl<'a> Pass<'a> {
    /// Begins with checksums, which [`run`](Self::run) returns in the order of their `parameters`. There may be none.
    pub fn new(parameters: &'a [Parameters]) -> Self {
        Self { parameters, blocks: None, tee: None }
    }

    /// Passes the digests of all blocks to `sink`, in order. `leaf` defines them. Blocks whose digests a checksum is made of
    /// are hashed once for both.
    #[must_use]
    pub fn blocks(self, leaf: &'a Leaf, sink: &'a mut (dyn Sink<BlockDigests> + Send)) -> Self {
        Self { blocks: Some((leaf, sink)), ..self }
    }

    /// Passes the content on.
    #[must_use]
    pub fn tee(self, tee: &'a dyn Tee) -> Self {
        Self { tee: Some(tee), ..self }
    }

    /// Reads the source.
    ///
    /// # Errors
    ///
    /// Fails like [`checksum`], and if the sink or the tee fails.
    pub fn run(
        self,
        source: &dyn Source,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<Vec<Digest>, Error> {
        let Self { parameters, blocks, tee } = self;
        parameters.iter().try_for_each(|parameters| parameters.check_length(source.size()))?;
        let digester = |parameters: &Parameters| tuning.digester(parameters.algorithm());
        let digesters = parameters.iter().map(digester).collect::<Result<Vec<_>, _>>()?;
        let (_, threads) = pipeline::threads(source, tuning);
        let segment_size = tuning.clamped_read_size();
        let chosen = |(parameters, digester)| {
            choose(parameters, digester, source.size(), segment_size, threads)
        };
        let mut checksums: Vec<_> = parameters.iter().zip(&digesters).map(chosen).collect();
        let window = window(source, tuning);
        let leaf = blocks.as_ref().map(|(leaf, _)| leaf.digester());
        let lends = digesters.iter().chain(leaf).all(Digester::hides_latency);
        let mut planned = Planned::default();
        checksums.iter_mut().for_each(|checksum| planned.add(checksum.lane(window)));
        if let Some((leaf, sink)) = blocks {
            planned.add_blocks(BlockHasher { leaf, zero_runs: ZeroRuns::Unknown }, Box::new(sink));
        }
        pipeline::run(source, planned.into_lanes(window), tee, lends, tuning, progress)?;
        if checksums.iter().any(|checksum| checksum.length() != source.size()) {
            return Err(Error::Incomplete);
        }
        Ok(checksums.into_iter().map(Checksum::finalize).collect())
    }
}

/// Passes the digests of all blocks of `source` to `sink`, in order. `leaf` defines them. A pair with an
/// [`Accumulator`] also computes the checksum in the same pass.
///
/// # Errors
///
/// Fails like [`checksum`], and if the sink fails. Returns the first error in the order of the
/// content.
pub fn block_digests(
    source: &dyn Source,
    leaf: &Leaf,
    sink: &mut (dyn Sink<BlockDigests> + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Error> {
    let mut planned = Planned::default();
    planned.add_blocks(BlockHasher { leaf, zero_runs: ZeroRuns::Unknown }, Box::new(sink));
    let lanes = planned.into_lanes(window(source, tuning));
    pipeline::run(source, lanes, None, leaf.digester().hides_latency(), tuning, progress)
}

/// Chooses the fastest way to compute a checksum of `size` bytes. `digester` computes its algorithm.
fn choose(
    parameters: &Parameters,
    digester: &Digester,
    size: u64,
    segment_size: usize,
    threads: usize,
) -> Box<dyn Checksum> {
    let accumulator = Accumulator::with_digester(parameters, digester, threads);
    if parameters.construction().has_blocks() {
        return Box::new(Folded::new(parameters, digester, accumulator));
    }
    match SegmentHasher::new(parameters, segment_size) {
        Some(hasher) if size > segment_size as u64 => Box::new(Joined::new(hasher)),
        _ => Box::new(Whole::new(accumulator)),
    }
}

/// The lanes of a pass, before it begins. Sinks of the same blocks share a lane.
#[derive(Default)]
struct Planned<'s> {
    blocks: Vec<(BlockHasher<'s>, Vec<DynSink<'s>>)>,
    others: Vec<Box<dyn Lane + 's>>,
}

impl<'s> Planned<'s> {
    fn add(&mut self, needed: Needed<'s>) {
        match needed {
            Needed::Blocks(hasher, sink) => self.add_blocks(hasher, sink),
            Needed::Own(lane) => self.others.push(lane),
        }
    }

    /// Adds a receiver of the digests of blocks.
    fn add_blocks(&mut self, hasher: BlockHasher<'s>, sink: DynSink<'s>) {
        match self.blocks.iter_mut().find(|(same, _)| same.leaf == hasher.leaf) {
            Some((same, sinks)) => {
                same.zero_runs = same.zero_runs.beside(hasher.zero_runs);
                sinks.push(sink);
            }
            None => self.blocks.push((hasher, vec![sink])),
        }
    }

    fn into_lanes(self, window: usize) -> Vec<Box<dyn Lane + 's>> {
        let blocks = self.blocks.into_iter().map(|(hasher, mut sinks)| {
            let sink = match sinks.len() {
                1 => sinks.remove(0),
                _ => Box::new(Sinks(sinks)),
            };
            Box::new(BlockLane::new(hasher, sink, window)) as Box<dyn Lane + 's>
        });
        blocks.chain(self.others).collect()
    }
}

/// Sinks that all receive everything, in this order.
struct Sinks<'s>(Vec<DynSink<'s>>);

impl Sink<BlockDigests> for Sinks<'_> {
    fn take(&mut self, part: &BlockDigests) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.take(part))
    }
}

/// Number of chunks that may be finished ahead of the first unfinished one.
fn window(source: &dyn Source, tuning: &Tuning) -> usize {
    let (threads, _) = pipeline::threads(source, tuning);
    tuning.queue_depth.max(2 * threads)
}
