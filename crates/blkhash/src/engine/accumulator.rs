//! Computes a checksum from content that comes in order.

use super::threads::Threads;
use crate::block::{BlockDigests, BlockPieces, Run};
use crate::construction::Fold;
use crate::{Digest, Digester, Parameters, Sink, SinkError, State};

/// Computes the checksum of content that comes in order: as digests of blocks that were hashed
/// elsewhere, as zero runs, or as plain bytes.
///
/// All checksums are completed here, wherever the blocks were hashed. An accumulator alone is the
/// simplest way to compute a checksum on one thread.
#[derive(Clone, Debug)]
pub struct Accumulator {
    kind: Kind,
    length: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Blocks(Box<Blocks>),
    Linear(Box<State>),
}

#[derive(Debug)]
struct Blocks {
    fold: Box<dyn Fold>,
    block_size: u64,
    /// The current block of plain bytes.
    current: BlockPieces,
    /// Threads for long zero runs.
    threads: Threads,
}

impl Clone for Blocks {
    fn clone(&self) -> Self {
        Self { fold: self.fold.boxed_clone(), current: self.current.clone(), ..*self }
    }
}

impl Accumulator {
    /// Creates an accumulator without content. Long zero runs are spread over up to `threads`
    /// threads.
    pub fn new(parameters: &Parameters, threads: usize) -> Self {
        Self::with_digester(parameters, &Digester::new(parameters.algorithm()), threads)
    }

    /// Like [`new`](Self::new), with an explicit choice of implementations.
    ///
    /// # Panics
    ///
    /// Panics if the digester is for another algorithm than the parameters.
    pub fn with_digester(parameters: &Parameters, digester: &Digester, threads: usize) -> Self {
        let leaf = parameters.leaf(digester);
        let kind = match parameters.fold(&leaf) {
            Some(fold) => Kind::Blocks(Box::new(Blocks {
                fold,
                block_size: u64::from(parameters.block_size()),
                current: BlockPieces::new(leaf),
                threads: Threads(threads),
            })),
            None => Kind::Linear(Box::new(digester.start())),
        };
        Self { kind, length: 0 }
    }

    /// Appends hashed blocks.
    ///
    /// # Panics
    ///
    /// Panics if the content so far does not end at the end of a block, or the construction has no
    /// blocks.
    pub fn blocks(&mut self, digests: &BlockDigests) {
        let Kind::Blocks(blocks) = &mut self.kind else { panic!("the construction has no blocks") };
        blocks.digests(digests);
        self.length += digests.length();
    }

    /// Appends plain bytes.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.kind {
            Kind::Linear(state) => state.update(data),
            Kind::Blocks(blocks) => blocks.update(data),
        }
        self.length += data.len() as u64;
    }

    /// Appends `count` zero bytes. Zero blocks are not hashed. If the construction has no blocks,
    /// all zeros are hashed, unless the algorithm is a CRC.
    pub fn zero(&mut self, count: u64) {
        match &mut self.kind {
            Kind::Linear(state) => state.update_zeros(count),
            Kind::Blocks(blocks) => blocks.zero(count),
        }
        self.length += count;
    }

    /// Returns the length of the content so far, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the checksum of the content.
    pub fn finalize(self) -> Digest {
        match self.kind {
            Kind::Linear(state) => state.finalize(),
            Kind::Blocks(blocks) => blocks.finalize(self.length),
        }
    }
}

impl Sink<BlockDigests> for Accumulator {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        self.blocks(digests);
        Ok(())
    }
}

impl Blocks {
    fn digests(&mut self, digests: &BlockDigests) {
        assert_eq!(self.current.length(), 0, "blocks follow whole blocks");
        for run in digests.runs() {
            match run {
                Run::Digests { digests, .. } => self.fold.digests(digests),
                Run::Zeros { count } => self.fold.zero_blocks(count, &self.threads),
            }
        }
    }

    fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let missing = (self.block_size - self.current.length()) as usize;
            let (part, rest) = data.split_at(data.len().min(missing));
            self.current.update(part);
            self.fold_if_full();
            data = rest;
        }
    }

    fn zero(&mut self, count: u64) {
        let missing = (self.block_size - self.current.length()) % self.block_size;
        let head = count.min(missing);
        self.current.zero(head);
        self.fold_if_full();
        self.fold.zero_blocks((count - head) / self.block_size, &self.threads);
        self.current.zero((count - head) % self.block_size);
    }

    fn fold_if_full(&mut self) {
        if self.current.length() < self.block_size {
            return;
        }
        if self.current.is_zero() {
            self.current.skip();
            self.fold.zero_blocks(1, &self.threads);
        } else {
            self.fold.digests(self.current.finish().as_bytes());
        }
    }

    fn finalize(mut self, length: u64) -> Digest {
        if self.current.length() > 0 {
            self.fold.digests(self.current.finish().as_bytes());
        }
        self.fold.finalize(length)
    }
}
