//! Compares the parser of superblocks and the verifier, for any input, with the definition in plain steps.
//! The fuzz target uses it, too.

use std::collections::BTreeSet;

use blkhash::{Algorithm, BlockDigests, BlockSize, Digest, Leaf, Salt, Sink, TreeShape};
use blkimage::{Extent, ExtentKind, Result, Source};
use blkverity::{Problem, StoredTree, Superblock, Verifier};

/// Parses any bytes. A superblock has to be the same after it was written, and its layout has to be in a file.
pub fn check_superblock(bytes: &[u8; Superblock::SIZE], offset: u64) {
    let Ok(superblock) = Superblock::parse(bytes) else { return };
    assert_eq!(Superblock::parse(&superblock.to_bytes()), Ok(superblock));
    assert!(Superblock::has_magic(bytes) && superblock.data_blocks > 0);
    let blocks = superblock.data_length() / u64::from(superblock.data_block_size);
    assert_eq!(blocks, superblock.data_blocks);
    let Some(layout) = superblock.layout(offset) else { return };
    let block_size = superblock.hash_block_size.get() as u64;
    assert!(layout.start() >= offset + Superblock::SIZE as u64);
    assert!(layout.start().is_multiple_of(block_size) && layout.end() <= i64::MAX as u64);
    let mut next = layout.start();
    for (level, &count) in layout.levels().iter().enumerate().rev() {
        assert_eq!(layout.offset(level, 0), next);
        next = layout.offset(level, count - 1) + block_size;
        let (start, end) = layout.data_below(level, count - 1);
        assert!(start < end && end == layout.leaves());
        assert!(layout.digests_in(level, count - 1) > 0);
    }
    assert_eq!(next, layout.end());
    assert!(layout.levels().last().is_none_or(|count| *count == 1));
}

/// A tree, and what is changed after it was made.
#[derive(Clone, Debug)]
pub struct Case {
    /// Chooses the digest, the size of the blocks and the salt.
    pub shape: u8,
    /// Runs of equal blocks of data: which one, and their number. Block 0 is zeros.
    pub runs: Vec<(u8, u8)>,
    /// Changed bytes of the stored tree: the place, the bits that change, and whether the blocks above get
    /// the digests of the changed ones.
    pub changes: Vec<(u16, u8, bool)>,
    /// Changed blocks of data: which one, and its new content.
    pub data_changes: Vec<(u16, u8)>,
    /// Number of blocks that are passed at once.
    pub at_once: u8,
    /// Bits of the root that change.
    pub root: u8,
}

/// A block of data or of the tree that does not match. Blocks of data have no level.
type Name = (&'static str, Option<usize>, u64);

/// Verifies the tree, and compares every finding with the definition.
pub fn check_verifier(case: &Case) {
    let Some(tree) = Stored::new(case) else { return };
    let mut expected = Expected { tree: &tree, names: BTreeSet::new() };
    expected.root();
    let mut found = BTreeSet::new();
    let source = Memory(tree.bytes());
    let mut report = |finding: &blkverity::Finding| {
        let (name, level) = match finding.problem {
            Problem::Data => ("data", None),
            Problem::Unverified => ("unverified", None),
            Problem::Tree(level) => ("tree", Some(level)),
            Problem::Spare(level) => ("spare", Some(level)),
            _ => panic!("another problem"),
        };
        let (offset, size) = match level {
            Some(level) => (tree.stored.layout().offset(level, finding.first), tree.block_size()),
            None => (finding.first * DATA_BLOCK as u64, DATA_BLOCK),
        };
        assert_eq!((finding.offset, finding.length), (offset, finding.count * size as u64));
        for block in finding.first..finding.first + finding.count {
            assert!(found.insert((name, level, block)), "{name} {level:?} {block} twice");
        }
    };
    let mut verifier =
        Verifier::new(&source, &tree.stored, &tree.root, &mut report).expect("a whole tree");
    for blocks in tree.data.chunks(usize::from(case.at_once).max(1)) {
        let mut digests = BlockDigests::default();
        for &which in blocks {
            match which {
                0 => digests.push_zero_blocks(1, DATA_BLOCK),
                _ => digests.push(&tree.data_digest(which), DATA_BLOCK as u64),
            }
        }
        verifier.take(&digests).expect("reads in memory succeed");
    }
    let summary = verifier.finish().expect("a file that does not change");
    let count = |names: &[&str]| {
        expected.names.iter().filter(|(name, ..)| names.contains(name)).count() as u64
    };
    assert_eq!(found, expected.names);
    assert_eq!(summary.data_blocks, tree.data.len() as u64);
    assert_eq!(summary.bad_data, count(&["data"]));
    assert_eq!(summary.unverified, count(&["unverified"]));
    assert_eq!(summary.bad_tree, count(&["tree", "spare"]));
    // The same in one sentence, without the steps.
    let digests: Vec<_> = tree.data.iter().map(|which| tree.data_digest(*which)).collect();
    let (root, levels) = tree.computed(digests);
    assert_eq!(summary.is_clean(), root == tree.root && levels == tree.levels);
}

/// A stored tree and the data to verify with it.
struct Stored {
    stored: StoredTree,
    leaf: Leaf,
    /// The blocks of each level, the lowest first.
    levels: Vec<Vec<Vec<u8>>>,
    data: Vec<u8>,
    root: Digest,
}

impl Stored {
    fn new(case: &Case) -> Option<Self> {
        let algorithms = [
            Algorithm::Sha256,
            Algorithm::Sha1,
            Algorithm::Sha512,
            Algorithm::Sha384,
            Algorithm::Md5,
        ];
        let algorithm = algorithms[usize::from(case.shape) % algorithms.len()];
        let block_size = if case.shape & 0x40 == 0 { BlockSize::MIN } else { BlockSize::PAGE };
        let salt = &b"salt"[..usize::from(case.shape >> 7) * 4];
        let runs = case.runs.iter().map(|(which, count)| vec![*which; usize::from(*count)]);
        let mut data: Vec<u8> = runs.flatten().take(MAX_BLOCKS).collect();
        if data.is_empty() {
            return None;
        }
        let superblock = Superblock {
            algorithm,
            data_block_size: BlockSize::try_from(DATA_BLOCK as u64).expect("a size"),
            hash_block_size: block_size,
            salt: Salt::try_from(salt).expect("a short salt"),
            ..Superblock::new(data.len() as u64)
        };
        let stored = StoredTree::bare(&superblock, 0).expect("a tree of dm-verity");
        let zeros = [0; 64];
        let root = Digest::try_from(&zeros[..algorithm.digest_size()]).expect("a digest");
        let leaf = stored.leaf();
        let mut tree = Self { stored, leaf, levels: Vec::new(), data: data.clone(), root };
        let digests = data.iter().map(|which| tree.data_digest(*which)).collect();
        (tree.root, tree.levels) = tree.computed(digests);
        for &(place, bits, is_repaired) in &case.changes {
            tree.change(place.into(), bits, is_repaired);
        }
        for &(place, which) in &case.data_changes {
            let place = usize::from(place) % data.len();
            data[place] = which;
        }
        tree.data = data;
        let mut root = tree.root.as_bytes().to_vec();
        root[0] ^= case.root;
        tree.root = Digest::try_from(&root[..]).expect("a digest");
        Some(tree)
    }

    fn shape(&self) -> &TreeShape {
        self.stored.shape()
    }

    fn block_size(&self) -> usize {
        self.shape().block_size()
    }

    fn data_digest(&self, which: u8) -> Digest {
        self.leaf.hash(&[which; DATA_BLOCK])
    }

    /// Returns the root and the blocks of each level.
    fn computed(&self, mut digests: Vec<Digest>) -> (Digest, Vec<Vec<Vec<u8>>>) {
        let mut levels = Vec::new();
        while digests.len() > 1 {
            let level = self.level(&digests);
            digests = level.iter().map(|block| self.leaf.hash(block)).collect();
            levels.push(level);
        }
        (digests[0], levels)
    }

    /// Returns the blocks with these digests.
    fn level(&self, digests: &[Digest]) -> Vec<Vec<u8>> {
        let block = |digests: &[Digest]| {
            let mut block = vec![0; self.block_size()];
            for (slot, digest) in block.chunks_mut(self.shape().stride()).zip(digests) {
                slot[..digest.as_bytes().len()].copy_from_slice(digest.as_bytes());
            }
            block
        };
        digests.chunks(self.shape().arity()).map(block).collect()
    }

    fn change(&mut self, place: usize, bits: u8, is_repaired: bool) {
        let blocks: usize = self.levels.iter().map(Vec::len).sum();
        let Some(mut index) = (place / 7).checked_rem(blocks) else { return };
        let mut level = 0;
        while index >= self.levels[level].len() {
            index -= self.levels[level].len();
            level += 1;
        }
        // The ends of blocks and of slots are the places that a reader forgets.
        let at = match place % 7 {
            0 => self.block_size() - 1,
            1 => self.shape().stride() - 1,
            2 => 0,
            _ => place % self.block_size(),
        };
        self.levels[level][index][at] ^= bits;
        if !is_repaired {
            return;
        }
        let (arity, stride) = (self.shape().arity(), self.shape().stride());
        let mut digest = self.leaf.hash(&self.levels[level][index]);
        for level in level + 1..self.levels.len() {
            let slot = &mut self.levels[level][index / arity][index % arity * stride..];
            slot[..digest.as_bytes().len()].copy_from_slice(digest.as_bytes());
            index /= arity;
            digest = self.leaf.hash(&self.levels[level][index]);
        }
        self.root = digest;
    }

    /// Returns the bytes of the file.
    fn bytes(&self) -> Vec<u8> {
        self.levels.iter().rev().flatten().flatten().copied().collect()
    }
}

/// The findings that a verification has to report.
struct Expected<'a> {
    tree: &'a Stored,
    names: BTreeSet<Name>,
}

impl Expected<'_> {
    fn root(&mut self) {
        let root = self.tree.root;
        match self.tree.levels.len() {
            0 => self.data(0, root.as_bytes()),
            levels => self.block(levels - 1, 0, root.as_bytes()),
        }
    }

    fn data(&mut self, index: u64, expected: &[u8]) {
        if self.tree.data_digest(self.tree.data[index as usize]).as_bytes() != expected {
            self.names.insert(("data", None, index));
        }
    }

    /// Visits a block of the tree whose digest is `expected`.
    fn block(&mut self, level: usize, index: u64, expected: &[u8]) {
        let tree = self.tree;
        let block = &tree.levels[level][index as usize];
        let digests = tree.stored.layout().digests_in(level, index);
        if tree.leaf.hash(block).as_bytes() != expected {
            self.names.insert(("tree", Some(level), index));
            return self.rebuilt(level, index, expected);
        }
        let mut without = vec![0; block.len()];
        for slot in 0..digests {
            let digest = tree.shape().digest(block, slot);
            without[slot * tree.shape().stride()..][..digest.len()].copy_from_slice(digest);
        }
        if without != *block {
            self.names.insert(("spare", Some(level), index));
        }
        let first = index * tree.shape().arity() as u64;
        for slot in 0..digests {
            let digest = tree.shape().digest(block, slot);
            match level {
                0 => self.data(first + slot as u64, digest),
                _ => self.block(level - 1, first + slot as u64, digest),
            }
        }
    }

    /// Builds the part of the tree below a damaged block from the data.
    fn rebuilt(&mut self, top: usize, index: u64, expected: &[u8]) {
        let tree = self.tree;
        let (start, end) = tree.stored.layout().data_below(top, index);
        let mut first = start;
        let mut digests: Vec<_> =
            (start..end).map(|block| tree.data_digest(tree.data[block as usize])).collect();
        let mut names = BTreeSet::new();
        for level in 0..=top {
            first /= tree.shape().arity() as u64;
            let blocks = tree.level(&digests);
            for (number, block) in (first..).zip(&blocks) {
                if tree.levels[level][number as usize] != *block && level < top {
                    names.insert(("tree", Some(level), number));
                }
            }
            digests = blocks.iter().map(|block| tree.leaf.hash(block)).collect();
        }
        if digests[0].as_bytes() == expected {
            self.names.extend(names);
        } else {
            self.names.extend((start..end).map(|block| ("unverified", None, block)));
        }
    }
}

struct Memory(Vec<u8>);

impl Source for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        let length = limit.min(self.size() - offset);
        Ok(Extent { offset, length, kind: ExtentKind::Data })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        buf.copy_from_slice(&self.0[offset as usize..][..buf.len()]);
        Ok(())
    }
}

const DATA_BLOCK: usize = 512;

/// Enough for three levels of blocks of 512 bytes with the shortest digest.
const MAX_BLOCKS: usize = 1200;
