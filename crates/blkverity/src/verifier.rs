//! Compares the digests of blocks of data with a stored tree.

use std::collections::VecDeque;
use std::ops::Range;

use blkhash::{BlockDigests, Digest, Leaf, Run, Sink, SinkError, Tree};
use blkimage::Source;

use crate::compare::Compare;
use crate::finding::{Finding, Joiner, Problem};
use crate::{Error, Layout, StoredTree};

/// The result of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of blocks of data.
    pub data_blocks: u64,
    /// Blocks of data with another digest than the tree has.
    pub bad_data: u64,
    /// Blocks of data that cannot be read.
    pub unreadable: u64,
    /// Blocks of data that could not be verified, unreadable ones among them.
    pub unverified: u64,
    /// Blocks of the tree that are damaged.
    pub bad_tree: u64,
    /// Blocks of the tree that are damaged and were not reported, because there are very many below one
    /// damaged block.
    pub unnamed: u64,
    /// Whether all of the tree matches the data, and only the root does not.
    pub is_other_root: bool,
}

impl Summary {
    /// Returns whether all data was verified, and the tree is intact.
    pub fn is_clean(&self) -> bool {
        self.bad_data == 0 && self.unreadable == 0 && self.unverified == 0 && self.bad_tree == 0
    }
}

/// A sink for the digests of data that compares them with a stored tree.
///
/// The tree is verified from the root down, and each block of it is read once. The data below a damaged
/// block is verified as a whole: a tree is built from it, and its root compared with the digest above the
/// damaged block.
pub struct Verifier<'a> {
    /// The file of the tree.
    file: &'a dyn Source,
    stored: StoredTree,
    leaf: Leaf,
    /// The root hash, or the digest of fs-verity.
    digest: Digest,
    /// The block of each level that was read last.
    levels: Vec<Loaded>,
    /// Number of the next block of data.
    next: u64,
    /// Blocks of data from the next one on that cannot be read, in order.
    unreadable: VecDeque<Range<u64>>,
    rebuilt: Option<Rebuilt<'a>>,
    findings: Joiner<'a>,
    summary: Summary,
}

/// A block of the tree.
#[derive(Default)]
struct Loaded {
    index: Option<u64>,
    block: Vec<u8>,
    is_trusted: bool,
}

/// The tree over the data below a damaged block, while this data comes.
struct Rebuilt<'a> {
    tree: Tree<Compare<'a>>,
    level: usize,
    /// Numbers of the first block of data and of the one after the last.
    data: (u64, u64),
    /// The digest above the damaged block. `None` is the root.
    expected: Option<Vec<u8>>,
}

impl<'a> Verifier<'a> {
    /// Creates a verifier of the tree that is stored in `file`. `digest` is the root hash of dm-verity or the digest of
    /// fs-verity, and `report` receives what does not match.
    ///
    /// # Errors
    ///
    /// Fails if the file ends before the tree, if the digest has another length than the tree's, or if there is no data
    /// and the digest belongs to other data.
    pub fn new(
        file: &'a dyn Source,
        stored: &StoredTree,
        digest: &Digest,
        report: &'a mut (dyn FnMut(&Finding) + Send),
    ) -> Result<Self, Error> {
        let (layout, algorithm) = (stored.layout(), stored.parameters().algorithm());
        if digest.as_bytes().len() != algorithm.digest_size() {
            return Err(Error::RootLength(algorithm));
        }
        // One block of data has no tree, and the file may end before the place of one.
        if layout.blocks() > 0 && layout.end() > file.size() {
            return Err(Error::CutOff { size: file.size(), end: layout.end() });
        }
        // The root of a tree without leaves is zeros.
        let no_root = &[0; blkhash::MAX_DIGEST_SIZE][..algorithm.digest_size()];
        let no_root = Digest::try_from(no_root).expect("the length of a digest");
        if layout.leaves() == 0 && stored.digest(&no_root) != *digest {
            return Err(Error::Empty);
        }
        Ok(Self {
            file,
            leaf: stored.leaf(),
            digest: *digest,
            levels: layout.levels().iter().map(|_| Loaded::default()).collect(),
            next: 0,
            unreadable: VecDeque::new(),
            rebuilt: None,
            findings: Joiner::new(report),
            summary: Summary { data_blocks: layout.leaves(), ..Summary::default() },
            stored: stored.clone(),
        })
    }

    /// Returns the tree.
    pub fn stored(&self) -> &StoredTree {
        &self.stored
    }

    /// Returns the number of the next block of data.
    pub fn next_block(&self) -> u64 {
        self.next
    }

    /// Makes blocks unreadable whose digests have not come yet, after all others that are. Whatever comes as the digest
    /// of one is ignored.
    pub fn push_unreadable(&mut self, blocks: Range<u64>) {
        self.unreadable.push_back(blocks);
    }

    /// Ends the verification.
    ///
    /// # Errors
    ///
    /// Fails if the file of the tree changed meanwhile.
    ///
    /// # Panics
    ///
    /// Panics if data is missing.
    pub fn finish(mut self) -> Result<Summary, Error> {
        assert_eq!(self.next, self.layout().leaves(), "all of the data came");
        self.findings.flush();
        self.file.check_unchanged()?;
        Ok(self.summary)
    }

    fn layout(&self) -> &Layout {
        self.stored.layout()
    }

    fn is_root(&self, found: &Digest) -> bool {
        self.stored.digest(found) == self.digest
    }

    /// Takes the digest of each of `count` blocks. More than one are zero blocks.
    fn take_blocks(&mut self, digest: &[u8], count: u64) -> Result<(), SinkError> {
        if count > self.layout().leaves() - self.next {
            return Err("there is more data than the tree covers".into());
        }
        let end = self.next + count;
        while self.next < end {
            while self.unreadable.front().is_some_and(|blocks| blocks.end <= self.next) {
                self.unreadable.pop_front();
            }
            let (until, is_readable) = match self.unreadable.front() {
                Some(blocks) if blocks.start <= self.next => (blocks.end.min(end), false),
                Some(blocks) => (blocks.start.min(end), true),
                None => (end, true),
            };
            if !is_readable {
                self.summary.unreadable += until - self.next;
                self.data_finding(Problem::Unreadable, self.next, until - self.next);
            }
            while self.next < until {
                match self.levels.len() {
                    0 => self.take_only(digest, is_readable)?,
                    _ => self.take_group(digest, until - self.next, is_readable)?,
                }
            }
        }
        Ok(())
    }

    /// Takes the only block, which has no tree.
    fn take_only(&mut self, digest: &[u8], is_readable: bool) -> Result<(), SinkError> {
        if is_readable && !self.is_root(&digest.try_into()?) {
            self.bad_data(1);
        }
        self.next += 1;
        Ok(())
    }

    /// Takes blocks below one block of the tree, at most `count`.
    fn take_group(
        &mut self,
        digest: &[u8],
        count: u64,
        is_readable: bool,
    ) -> Result<(), SinkError> {
        let arity = self.layout().shape().arity() as u64;
        let (index, slot) = (self.next / arity, self.next % arity);
        self.load(0, index)?;
        let taken = count.min(arity - slot);
        if let Some(rebuilt) = &mut self.rebuilt {
            match taken {
                1 => rebuilt.tree.push(digest)?,
                zeros => rebuilt.tree.push_zero_blocks(zeros)?,
            }
            self.next += taken;
            if self.next == rebuilt.data.1 {
                self.end_rebuilt()?;
            }
            return Ok(());
        }
        if !is_readable {
            self.next += taken;
            return Ok(());
        }
        for slot in slot..slot + taken {
            let shape = self.layout().shape();
            if shape.digest(&self.levels[0].block, slot as usize) != digest {
                self.bad_data(1);
            }
            self.next += 1;
        }
        Ok(())
    }

    fn bad_data(&mut self, count: u64) {
        self.summary.bad_data += count;
        self.data_finding(Problem::Data, self.next, count);
    }

    /// Reads a block of the tree and those above it, unless they were read last.
    fn load(&mut self, level: usize, index: u64) -> Result<(), SinkError> {
        if self.levels[level].index == Some(index) {
            return Ok(());
        }
        let shape = *self.layout().shape();
        let arity = shape.arity() as u64;
        let is_top = level + 1 == self.levels.len();
        let mut expected = None;
        if !is_top {
            self.load(level + 1, index / arity)?;
            let above = &self.levels[level + 1];
            expected = Some(shape.digest(&above.block, (index % arity) as usize).to_vec());
        }
        let is_above_trusted = is_top || self.levels[level + 1].is_trusted;
        let mut block = std::mem::take(&mut self.levels[level].block);
        block.resize(shape.block_size(), 0);
        self.file.read_exact_at(&mut block, self.layout().offset(level, index))?;
        let is_trusted =
            is_above_trusted && self.is_expected(expected.as_deref(), &self.leaf.hash(&block));
        if is_trusted && has_spare_bytes(self.layout(), level, index, &block) {
            self.bad_tree(Problem::Spare(level), level, index, 1);
        }
        self.levels[level] = Loaded { index: Some(index), block, is_trusted };
        if is_above_trusted && !is_trusted {
            self.bad_tree(Problem::Tree(level), level, index, 1);
            let compare = Compare::new(self.file, self.layout(), level, index);
            let tree = Tree::with_blocks(&self.leaf, self.stored.block_size(), compare);
            let data = self.layout().data_below(level, index);
            self.rebuilt = Some(Rebuilt { tree, level, data, expected });
        }
        Ok(())
    }

    /// Verifies the data below a damaged block as a whole.
    fn end_rebuilt(&mut self) -> Result<(), SinkError> {
        let Some(rebuilt) = self.rebuilt.take() else { return Ok(()) };
        let (digest, compare) = rebuilt.tree.finish_part(rebuilt.level + 1)?;
        if self.is_expected(rebuilt.expected.as_deref(), &digest) {
            for (level, first, count) in compare.different() {
                self.bad_tree(Problem::Tree(level), level, first, count);
            }
            self.summary.bad_tree += compare.unnamed();
            self.summary.unnamed += compare.unnamed();
        } else {
            let (start, end) = rebuilt.data;
            let is_same_below = compare.different().next().is_none();
            self.summary.is_other_root = rebuilt.expected.is_none()
                && is_same_below
                && self.leaf.hash(&self.levels[rebuilt.level].block) == digest;
            self.summary.unverified += end - start;
            self.data_finding(Problem::Unverified, start, end - start);
        }
        Ok(())
    }

    fn is_expected(&self, expected: Option<&[u8]>, digest: &Digest) -> bool {
        expected.map_or_else(|| self.is_root(digest), |expected| expected == digest.as_bytes())
    }

    fn data_finding(&mut self, problem: Problem, first: u64, count: u64) {
        let block_size = self.leaf.block_size() as u64;
        let (offset, length) = (first * block_size, count * block_size);
        self.findings.take(Finding { problem, first, count, offset, length });
    }

    fn bad_tree(&mut self, problem: Problem, level: usize, first: u64, count: u64) {
        let offset = self.layout().offset(level, first);
        let length = count * self.layout().shape().block_size() as u64;
        self.summary.bad_tree += count;
        self.findings.take(Finding { problem, first, count, offset, length });
    }
}

impl Sink<BlockDigests> for Verifier<'_> {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        for run in digests.runs() {
            match run {
                Run::Digests { digests, .. } => {
                    for digest in digests.chunks_exact(self.leaf.digest_size()) {
                        self.take_blocks(digest, 1)?;
                    }
                }
                Run::Zeros { count } => {
                    self.take_blocks(self.leaf.zero_block().as_bytes(), count)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a block of a tree has bytes that are neither a digest nor zero.
fn has_spare_bytes(layout: &Layout, level: usize, index: u64, block: &[u8]) -> bool {
    let (shape, digests) = (layout.shape(), layout.digests_in(level, index));
    let (used, rest) = block.split_at(digests * shape.stride());
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let mut slots = used.chunks_exact(shape.stride());
    !is_zero(rest) || !slots.all(|slot| is_zero(&slot[shape.digest(slot, 0).len()..]))
}
