//! Merkle trees over the digests of blocks.
//!
//! A tree has levels of blocks. The blocks of the lowest level hold the digests of the content's
//! blocks, the blocks of each other level the digests of the blocks below, up to a level of one block. fs-verity and
//! dm-verity have trees of this form.

use std::convert::Infallible;

use crate::{Algorithm, BlockDigests, BlockSize, Digest, Leaf, Run, Sink, SinkError};

/// The sizes of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeShape {
    block_size: usize,
    digest_size: usize,
    stride: usize,
}

/// Receives the blocks of a [`Tree`].
pub trait TreeBlocks {
    /// The reason why a block could not be received.
    type Error;

    /// Receives `count` equal blocks of `level`, from number `index` of that level on. Level 0 is the
    /// lowest. The blocks of each level come in order.
    ///
    /// # Errors
    ///
    /// Fails if the blocks could not be received. The tree is of no use after that.
    fn take(
        &mut self,
        level: usize,
        index: u64,
        count: u64,
        block: &[u8],
    ) -> Result<(), Self::Error>;
}

/// Computes the root of a Merkle tree from digests that come in order.
///
/// A run of equal digests costs at most one block to hash and one to fill on each level, however long
/// it is. Memory is one block for each level.
#[derive(Clone, Debug)]
pub struct Tree<B = ()> {
    leaf: Leaf,
    shape: TreeShape,
    levels: Vec<Level>,
    /// The digest of a zero block of the content.
    zero_block: Option<Digest>,
    blocks: B,
}

#[derive(Clone, Debug)]
struct Level {
    /// The first digest of the level.
    first: Digest,
    /// Number of digests so far.
    count: u64,
    /// The block in progress. Bytes that hold no digest are zeros.
    block: Vec<u8>,
    /// Number of digests in the block in progress.
    filled: usize,
}

impl TreeShape {
    /// Returns the shape of trees with digests of `algorithm` in blocks of `block_size`.
    ///
    /// # Panics
    ///
    /// Panics if the digests of `algorithm` are empty.
    pub fn new(algorithm: Algorithm, block_size: BlockSize) -> Self {
        let digest_size = algorithm.digest_size();
        assert!(digest_size > 0, "a tree needs digests");
        let stride = digest_size.next_power_of_two();
        Self { block_size: block_size.get(), digest_size, stride }
    }

    /// Returns the length of a block of the tree in bytes.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Returns the distance between digests in a block, in bytes. Zeros fill the space between them.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the number of digests in a block, a power of two.
    pub fn arity(&self) -> usize {
        self.block_size / self.stride
    }

    /// Returns the digest at `index` of a block.
    ///
    /// # Panics
    ///
    /// Panics if the block has no such digest.
    pub fn digest<'a>(&self, block: &'a [u8], index: usize) -> &'a [u8] {
        &block[index * self.stride..][..self.digest_size]
    }

    /// Returns the number of blocks of each level for `leaves` blocks of content, from the lowest
    /// level up. One block of content has no tree.
    pub fn levels(&self, leaves: u64) -> Vec<u64> {
        let mut levels = Vec::new();
        let mut count = leaves;
        while count > 1 {
            count = count.div_ceil(self.arity() as u64);
            levels.push(count);
        }
        levels
    }
}

impl Tree {
    /// Creates a tree without digests. Its blocks of `block_size` are hashed in the same way as
    /// the content's, which `leaf` defines.
    pub fn new(leaf: &Leaf, block_size: BlockSize) -> Self {
        Self::with_blocks(leaf, block_size, ())
    }
}

impl<B: TreeBlocks> Tree<B> {
    /// Like [`new`](Tree::new), and passes the blocks of the tree to `blocks`.
    pub fn with_blocks(leaf: &Leaf, block_size: BlockSize, blocks: B) -> Self {
        let shape = TreeShape::new(leaf.digester().algorithm(), block_size);
        Self { leaf: leaf.clone(), shape, levels: Vec::new(), zero_block: None, blocks }
    }

    /// Appends digests, one after the other.
    ///
    /// # Errors
    ///
    /// Fails if a block could not be received.
    pub fn push(&mut self, digests: &[u8]) -> Result<(), B::Error> {
        self.push_to(0, digests)
    }

    /// Appends `digest` `count` times.
    ///
    /// # Errors
    ///
    /// Fails if a block could not be received.
    pub fn push_run(&mut self, digest: &Digest, count: u64) -> Result<(), B::Error> {
        self.repeat(0, digest, count)
    }

    /// Appends `count` whole zero blocks of the content.
    ///
    /// # Errors
    ///
    /// Fails if a block could not be received.
    pub fn push_zero_blocks(&mut self, count: u64) -> Result<(), B::Error> {
        let digest = *self.zero_block.get_or_insert_with(|| self.leaf.zero_block());
        self.push_run(&digest, count)
    }

    /// Returns the root, which is zeros if there are no digests, and what received the blocks.
    ///
    /// # Errors
    ///
    /// Fails if a block could not be received.
    pub fn finish(self) -> Result<(Digest, B), B::Error> {
        self.fold(None)
    }

    /// Like [`finish`](Self::finish), for a part of a larger tree: returns the digest of the block of level
    /// `height - 1` above all digests, even if there are so few of them that they would have a root
    /// below. There are at most as many as this block has below it.
    ///
    /// # Errors
    ///
    /// Fails if a block could not be received.
    pub fn finish_part(self, height: usize) -> Result<(Digest, B), B::Error> {
        self.fold(Some(height))
    }

    fn fold(mut self, height: Option<usize>) -> Result<(Digest, B), B::Error> {
        let mut level = 0;
        loop {
            let Some(Level { first, count, block, filled }) = self.levels.get(level) else {
                return Ok((Digest::zeroed(self.shape.digest_size), self.blocks));
            };
            if height.map_or(*count == 1, |height| level == height) {
                return Ok((*first, self.blocks));
            }
            if *filled > 0 {
                let digest = self.leaf.hash(block);
                let index = (*count - 1) / self.shape.arity() as u64;
                self.blocks.take(level, index, 1, block)?;
                self.push_to(level + 1, digest.as_bytes())?;
            }
            level += 1;
        }
    }

    fn push_to(&mut self, level: usize, mut digests: &[u8]) -> Result<(), B::Error> {
        let TreeShape { block_size, digest_size, stride } = self.shape;
        while !digests.is_empty() {
            let is_empty = self.level(level, digests).filled == 0;
            if is_empty && stride == digest_size && digests.len() >= block_size {
                let blocks = (digests.len() / block_size).min(LANES);
                let (whole, rest) = digests.split_at(blocks * block_size);
                self.whole_blocks(level, whole)?;
                digests = rest;
                continue;
            }
            let arity = self.shape.arity();
            let open = &mut self.levels[level];
            let count = (digests.len() / digest_size).min(arity - open.filled);
            let (these, rest) = digests.split_at(count * digest_size);
            let slots = open.block[open.filled * stride..].chunks_exact_mut(stride);
            for (slot, digest) in slots.zip(these.chunks_exact(digest_size)) {
                slot[..digest_size].copy_from_slice(digest);
            }
            open.filled += count;
            open.count += count as u64;
            self.close_if_full(level)?;
            digests = rest;
        }
        Ok(())
    }

    /// Appends digests that fill whole blocks as they are.
    fn whole_blocks(&mut self, level: usize, digests: &[u8]) -> Result<(), B::Error> {
        let TreeShape { block_size, digest_size, .. } = self.shape;
        let arity = self.shape.arity() as u64;
        let mut inputs = [&[][..]; LANES];
        let mut made = [[0; crate::MAX_DIGEST_SIZE]; LANES];
        let made = &mut made.as_flattened_mut()[..digests.len() / block_size * digest_size];
        let blocks = digests.len() / block_size;
        for (input, block) in inputs.iter_mut().zip(digests.chunks_exact(block_size)) {
            *input = block;
        }
        self.leaf.hash_many(&inputs[..blocks], made);
        let open = &mut self.levels[level];
        let first = open.count / arity;
        open.count += blocks as u64 * arity;
        for (index, block) in inputs[..blocks].iter().enumerate() {
            self.blocks.take(level, first + index as u64, 1, block)?;
        }
        self.push_to(level + 1, made)
    }

    fn repeat(&mut self, level: usize, digest: &Digest, mut count: u64) -> Result<(), B::Error> {
        let TreeShape { digest_size, stride, .. } = self.shape;
        let arity = self.shape.arity();
        while count > 0 {
            let open = self.level(level, digest.as_bytes());
            let is_group = open.filled == 0 && count >= arity as u64;
            let added =
                if is_group { arity } else { count.min((arity - open.filled) as u64) as usize };
            for slot in open.block[open.filled * stride..].chunks_exact_mut(stride).take(added) {
                slot[..digest_size].copy_from_slice(digest.as_bytes());
            }
            if is_group {
                // All groups are equal, so one of them is hashed.
                let groups = count / arity as u64;
                let index = open.count / arity as u64;
                open.count += groups * arity as u64;
                count %= arity as u64;
                let group = self.leaf.hash(&self.levels[level].block);
                self.blocks.take(level, index, groups, &self.levels[level].block)?;
                self.levels[level].block.fill(0);
                self.repeat(level + 1, &group, groups)?;
            } else {
                open.filled += added;
                open.count += added as u64;
                count -= added as u64;
                self.close_if_full(level)?;
            }
        }
        Ok(())
    }

    /// Hashes the block in progress if it is full.
    fn close_if_full(&mut self, level: usize) -> Result<(), B::Error> {
        let arity = self.shape.arity();
        let open = &mut self.levels[level];
        if open.filled < arity {
            return Ok(());
        }
        let digest = self.leaf.hash(&open.block);
        self.blocks.take(level, open.count / arity as u64 - 1, 1, &open.block)?;
        open.block.fill(0);
        open.filled = 0;
        self.push_to(level + 1, digest.as_bytes())
    }

    /// Returns a level, which is at most one above the others and begins with the first of `digests`.
    fn level(&mut self, level: usize, digests: &[u8]) -> &mut Level {
        if level == self.levels.len() {
            let TreeShape { block_size, digest_size, .. } = self.shape;
            let mut first = Digest::zeroed(digest_size);
            first.as_mut_bytes().copy_from_slice(&digests[..digest_size]);
            self.levels.push(Level { first, count: 0, block: vec![0; block_size], filled: 0 });
        }
        &mut self.levels[level]
    }
}

impl<B: TreeBlocks<Error: Into<SinkError>>> Sink<BlockDigests> for Tree<B> {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        for run in digests.runs() {
            match run {
                Run::Digests { digests, .. } => self.push(digests),
                Run::Zeros { count } => self.push_zero_blocks(count),
            }
            .map_err(Into::into)?;
        }
        Ok(())
    }
}

impl TreeBlocks for () {
    type Error = Infallible;

    fn take(&mut self, _: usize, _: u64, _: u64, _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Blocks hashed at once, a multiple of the lanes of every kernel.
const LANES: usize = 16;
