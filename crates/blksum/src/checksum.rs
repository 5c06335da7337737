//! Checksums and block digests of sources.

use blkhash::{
    Accumulator, BlockDigests, Digest, Digester, Join, Leaf, Ordered, Parameters, SegmentHasher,
    Sink,
};
use blkimage::Source;

use crate::lane::Lane;
use crate::{Error, Progress, Tuning, pipeline};

/// The checksum of what `source` holds, computed on the caller's thread and
/// [`Tuning::threads`] - 1 others, or [`Source::queue_depth`] - 1 where that is more. They start only
/// where there is work for them.
///
/// Memory of its own is the number of threads times [`Tuning::read_size`], or times the block size or the
/// source's granularity where those are more, but never times more than [`MAX_BUFFER`](crate::MAX_BUFFER):
/// longer blocks are hashed as they are read. The image's size does not matter.
///
/// # Errors
///
/// The first of the image's errors in the order of its content, as far as the threads had come; that
/// the image changed while it was read; that it has too many zeros; that [`Tuning::implementation`]
/// cannot run here; or that it was cancelled by [`Progress::cancel`].
pub fn checksum(
    source: &dyn Source,
    parameters: &Parameters,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Digest, Error> {
    let digests = checksums(source, std::slice::from_ref(parameters), tuning, progress)?;
    Ok(digests[0])
}

/// The same for several checksums, in the order of their `parameters`. The source is read once.
///
/// # Errors
///
/// As those of [`checksum`].
pub fn checksums(
    source: &dyn Source,
    parameters: &[Parameters],
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Digest>, Error> {
    let digester = |parameters: &Parameters| tuning.digester(parameters.algorithm());
    let digesters = parameters.iter().map(digester).collect::<Result<Vec<_>, _>>()?;
    let mut makers: Vec<Maker> = parameters
        .iter()
        .zip(&digesters)
        .map(|(parameters, digester)| Maker::new(source, parameters, digester, tuning))
        .collect();
    let window = window(source, tuning);
    let lanes = makers.iter_mut().map(|maker| maker.lane(window)).collect();
    let lends = digesters.iter().all(Digester::hides_latency);
    pipeline::run(source, lanes, lends, tuning, progress)?;
    if makers.iter().any(|maker| maker.length() != source.size()) {
        return Err(Error::Incomplete);
    }
    Ok(makers.into_iter().map(Maker::finalize).collect())
}

/// Hands the digests of all blocks of `source` to `sink`, in order: a pair with an
/// [`Accumulator`] makes the checksum in the same pass.
///
/// # Errors
///
/// As those of [`checksum`], and the sink's own: the first in the order of the content.
///
/// # Panics
///
/// If the construction has no blocks.
pub fn block_digests(
    source: &dyn Source,
    parameters: &Parameters,
    sink: &mut (dyn Sink<BlockDigests> + Send),
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(), Error> {
    assert!(parameters.construction().has_blocks(), "the construction has no blocks");
    let digester = tuning.digester(parameters.algorithm())?;
    let leaf = parameters.leaf(&digester);
    let lane = Lane::Blocks(&leaf, Ordered::new(sink, window(source, tuning)));
    pipeline::run(source, vec![lane], digester.hides_latency(), tuning, progress)
}

/// Makes one checksum of one pass.
enum Maker {
    Blocks(Box<Leaf>, Accumulator),
    Segments(SegmentHasher, Join),
    InTurn(Accumulator),
}

impl Maker {
    /// The best way to a checksum of this source.
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
            return Self::Blocks(Box::new(parameters.leaf(digester)), accumulator);
        }
        match SegmentHasher::new(parameters, segment_size) {
            Some(hasher) if source.size() > segment_size as u64 => {
                let join = hasher.join();
                Self::Segments(hasher, join)
            }
            _ => Self::InTurn(accumulator),
        }
    }

    fn lane(&mut self, window: usize) -> Lane<'_> {
        match self {
            Self::Blocks(leaf, accumulator) => {
                Lane::Blocks(leaf, Ordered::new(accumulator, window))
            }
            Self::Segments(hasher, join) => Lane::Segments(hasher, Ordered::new(join, window)),
            Self::InTurn(accumulator) => Lane::InTurn(Ordered::new(accumulator, window)),
        }
    }

    fn length(&self) -> u64 {
        match self {
            Self::Blocks(_, accumulator) | Self::InTurn(accumulator) => accumulator.length(),
            Self::Segments(_, join) => join.length(),
        }
    }

    fn finalize(self) -> Digest {
        match self {
            Self::Blocks(_, accumulator) | Self::InTurn(accumulator) => accumulator.finalize(),
            Self::Segments(_, join) => join.finalize(),
        }
    }
}

/// Chunks that may be done ahead of the first one that is not.
fn window(source: &dyn Source, tuning: &Tuning) -> usize {
    let (threads, _) = pipeline::threads(source, tuning);
    tuning.queue_depth.max(2 * threads)
}
