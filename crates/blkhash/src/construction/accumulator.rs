//! Everything of an image in order, in whatever form it comes, made into its checksum.

use super::{Construction, Fold, Join};
use crate::engine::{BlockDigests, BlockPieces, Run};
use crate::{Digest, Digester, Parameters, State};

/// Takes the content of an image in order and makes its checksum: digests of blocks that were
/// hashed elsewhere, zeros as counts, or plain bytes.
///
/// This is the one place where a checksum comes together, whoever hashed the blocks. On its own it
/// is the simplest way to a checksum, on one thread.
#[derive(Clone, Debug)]
pub struct Accumulator {
    kind: Kind,
    length: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Blocks {
        fold: Fold,
        block_size: u64,
        /// The block that plain bytes go to.
        current: BlockPieces,
    },
    Linear(State),
    Segments(Join),
}

impl Accumulator {
    /// An accumulator that has taken nothing yet. Long zero runs are spread over at most `threads`
    /// threads.
    pub fn new(parameters: &Parameters, threads: usize) -> Self {
        Self::with_digester(parameters, &Digester::new(parameters.algorithm()), threads)
    }

    /// The same with a choice of implementations.
    ///
    /// # Panics
    ///
    /// If the digester is of another algorithm than the parameters.
    pub fn with_digester(parameters: &Parameters, digester: &Digester, threads: usize) -> Self {
        assert_eq!(digester.algorithm(), parameters.algorithm());
        let kind = match parameters.construction() {
            Construction::Linear => Kind::Linear(digester.start()),
            _ => Kind::Blocks {
                fold: Fold::new(parameters, digester, threads),
                block_size: parameters.block_size() as u64,
                current: BlockPieces::new(digester.clone()),
            },
        };
        Self { kind, length: 0 }
    }

    /// An accumulator that joins segments.
    pub(crate) fn of_segments(join: Join) -> Self {
        Self { kind: Kind::Segments(join), length: 0 }
    }

    /// Takes the next blocks or segments, hashed.
    ///
    /// # Panics
    ///
    /// If plain bytes were taken that do not end at the end of a block, or the construction is
    /// [`Construction::Linear`] and its content was not cut into segments.
    pub fn blocks(&mut self, blocks: &BlockDigests) {
        match &mut self.kind {
            Kind::Blocks { fold, current, .. } => {
                assert_eq!(current.length(), 0, "blocks follow whole blocks");
                for run in blocks.runs() {
                    match run {
                        Run::Digests(digests) => fold.digests(digests),
                        Run::ZeroBlocks(count) => fold.zero_blocks(count),
                    }
                }
            }
            Kind::Segments(join) => join.segments(blocks),
            Kind::Linear(_) => panic!("the linear construction has no blocks"),
        }
        self.length += blocks.length();
    }

    /// Takes the next bytes.
    ///
    /// # Panics
    ///
    /// If it joins segments.
    pub fn data(&mut self, mut data: &[u8]) {
        self.length += data.len() as u64;
        match &mut self.kind {
            Kind::Linear(state) => state.update(data),
            Kind::Segments(_) => panic!("{NO_BYTES}"),
            Kind::Blocks { fold, block_size, current } => {
                while !data.is_empty() {
                    let missing = (*block_size - current.length()) as usize;
                    let (part, rest) = data.split_at(data.len().min(missing));
                    current.data(part);
                    fold_if_full(fold, *block_size, current);
                    data = rest;
                }
            }
        }
    }

    /// Takes `count` zero bytes next. Whole blocks of them cost nothing for each byte, except where
    /// the construction is [`Construction::Linear`] and the algorithm no CRC.
    ///
    /// # Panics
    ///
    /// If it joins segments.
    pub fn zeros(&mut self, count: u64) {
        self.length += count;
        match &mut self.kind {
            Kind::Linear(state) => state.update_zeros(count),
            Kind::Segments(_) => panic!("{NO_BYTES}"),
            Kind::Blocks { fold, block_size, current } => {
                let missing = (*block_size - current.length()) % *block_size;
                let head = count.min(missing);
                current.zeros(head);
                fold_if_full(fold, *block_size, current);
                fold.zero_blocks((count - head) / *block_size);
                current.zeros((count - head) % *block_size);
            }
        }
    }

    /// Bytes taken.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The checksum of everything taken.
    pub fn finalize(self) -> Digest {
        match self.kind {
            Kind::Linear(state) => state.finalize(),
            Kind::Segments(join) => join.finalize(),
            Kind::Blocks { mut fold, mut current, .. } => {
                if current.length() > 0 {
                    fold.digests(current.finish().as_bytes());
                }
                fold.finalize(self.length)
            }
        }
    }
}

fn fold_if_full(fold: &mut Fold, block_size: u64, current: &mut BlockPieces) {
    if current.length() < block_size {
        return;
    }
    if current.is_zero() {
        current.skip();
        fold.zero_blocks(1);
    } else {
        fold.digests(current.finish().as_bytes());
    }
}

const NO_BYTES: &str = "segments are joined as their hashes";
