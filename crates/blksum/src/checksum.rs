//! Checksums and block digests of sources.

use blkhash::engine::{Accumulator, Join, Ordered, SegmentHasher};
use blkhash::{BlockDigests, Digest, Digester, Leaf, Parameters, Sink, SinkError};
use blkimage::Source;

use crate::lane::{BlockLane, DynSink, Lane, ZeroRuns};
use crate::{Error, Progress, Tuning, pipeline};

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
    run(source, parameters, None, tuning, progress)
}

/// Returns several checksums like [`checksums`], and in the same pass passes the digests of all blocks to `sink`,
/// in order. `leaf` defines them. Blocks whose digests a checksum is made of are hashed once for both.
///
/// # Errors
///
/// Fails like [`checksums`], and if the sink fails.
pub fn checksums_and_blocks(
    source: &dyn Source,
    parameters: &[Parameters],
    leaf: &Leaf,
    sink: &mut (dyn Sink<BlockDigests> + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Digest>, Error> {
    run(source, parameters, Some((leaf, sink)), tuning, progress)
}

/// Receives the digests of blocks, as a leaf defines them.
type Blocks<'a> = (&'a Leaf, &'a mut (dyn Sink<BlockDigests> + Send));

fn run(
    source: &dyn Source,
    parameters: &[Parameters],
    blocks: Option<Blocks<'_>>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Digest>, Error> {
    parameters.iter().try_for_each(|parameters| parameters.check_length(source.size()))?;
    let digester = |parameters: &Parameters| tuning.digester(parameters.algorithm());
    let digesters = parameters.iter().map(digester).collect::<Result<Vec<_>, _>>()?;
    let mut makers: Vec<Maker> = parameters
        .iter()
        .zip(&digesters)
        .map(|(parameters, digester)| Maker::new(source, parameters, digester, tuning))
        .collect();
    let window = window(source, tuning);
    let leaf = blocks.as_ref().map(|(leaf, _)| leaf.digester());
    let lends = digesters.iter().chain(leaf).all(Digester::hides_latency);
    let mut planned = Planned::default();
    makers.iter_mut().for_each(|maker| planned.add(maker, window));
    if let Some((leaf, sink)) = blocks {
        planned.add_blocks(leaf, ZeroRuns::Unknown, Box::new(sink));
    }
    pipeline::run(source, planned.into_lanes(window), lends, tuning, progress)?;
    if makers.iter().any(|maker| maker.length() != source.size()) {
        return Err(Error::Incomplete);
    }
    Ok(makers.into_iter().map(Maker::finalize).collect())
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
    planned.add_blocks(leaf, ZeroRuns::Unknown, Box::new(sink));
    let lanes = planned.into_lanes(window(source, tuning));
    pipeline::run(source, lanes, leaf.digester().hides_latency(), tuning, progress)
}

/// The lanes of a pass, before it begins. Sinks of the same blocks share a lane.
#[derive(Default)]
struct Planned<'s> {
    blocks: Vec<(BlockLane<'s>, Vec<DynSink<'s>>)>,
    others: Vec<Lane<'s>>,
}

impl<'s> Planned<'s> {
    fn add(&mut self, maker: &'s mut Maker, window: usize) {
        match maker {
            Maker::Blocks { leaf, zero_runs, accumulator } => {
                self.add_blocks(leaf, *zero_runs, Box::new(accumulator));
            }
            Maker::Segments(hasher, join) => {
                self.others.push(Lane::Segments(hasher, Ordered::new(join, window)));
            }
            Maker::InTurn(accumulator) => {
                self.others.push(Lane::InTurn(Ordered::new(accumulator, window)));
            }
        }
    }

    fn add_blocks(&mut self, leaf: &'s Leaf, zero_runs: ZeroRuns, sink: DynSink<'s>) {
        match self.blocks.iter_mut().find(|(lane, _)| lane.leaf == leaf) {
            Some((lane, sinks)) => {
                lane.zero_runs = lane.zero_runs.beside(zero_runs);
                sinks.push(sink);
            }
            None => self.blocks.push((BlockLane { leaf, zero_runs }, vec![sink])),
        }
    }

    fn into_lanes(self, window: usize) -> Vec<Lane<'s>> {
        let blocks = self.blocks.into_iter().map(|(lane, mut sinks)| {
            let sink = match sinks.len() {
                1 => sinks.remove(0),
                _ => Box::new(Sinks(sinks)),
            };
            Lane::Blocks(lane, Ordered::new(sink, window))
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

/// Computes one of the checksums of a pass.
enum Maker {
    Blocks { leaf: Box<Leaf>, zero_runs: ZeroRuns, accumulator: Accumulator },
    Segments(SegmentHasher, Join),
    InTurn(Accumulator),
}

impl Maker {
    /// Chooses the fastest way to compute this checksum.
    fn new(
        source: &dyn Source,
        parameters: &Parameters,
        digester: &Digester,
        tuning: &Tuning,
    ) -> Self {
        let segment_size = tuning.clamped_read_size();
        let (_, threads) = pipeline::threads(source, tuning);
        let accumulator = Accumulator::with_digester(parameters, digester, threads);
        if parameters.construction().has_blocks() {
            let leaf = Box::new(parameters.leaf(digester));
            let zero_runs = match parameters.construction().skips_zero_runs() {
                true => ZeroRuns::Skips,
                false => ZeroRuns::Hashes,
            };
            return Self::Blocks { leaf, zero_runs, accumulator };
        }
        match SegmentHasher::new(parameters, segment_size) {
            Some(hasher) if source.size() > segment_size as u64 => {
                let join = hasher.join();
                Self::Segments(hasher, join)
            }
            _ => Self::InTurn(accumulator),
        }
    }

    fn length(&self) -> u64 {
        match self {
            Self::Blocks { accumulator, .. } | Self::InTurn(accumulator) => accumulator.length(),
            Self::Segments(_, join) => join.length(),
        }
    }

    fn finalize(self) -> Digest {
        match self {
            Self::Blocks { accumulator, .. } | Self::InTurn(accumulator) => accumulator.finalize(),
            Self::Segments(_, join) => join.finalize(),
        }
    }
}

/// Number of chunks that may be finished ahead of the first unfinished one.
fn window(source: &dyn Source, tuning: &Tuning) -> usize {
    let (threads, _) = pipeline::threads(source, tuning);
    tuning.queue_depth.max(2 * threads)
}
