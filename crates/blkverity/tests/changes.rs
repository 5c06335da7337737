//! The verifier finds every change of data and tree, and says nothing else.

use std::collections::BTreeSet;

use blkhash::engine::Batch;
use blkhash::{
    Algorithm, BlockDigests, BlockSize, Construction, Digest, Digester, Leaf, Parameters, Salt,
    Sink, Tree,
};
use blkimage::{Extent, ExtentKind, Source};
use blkverity::{Finding, Layout, Problem, Summary, TreeFile, Verifier};
use proptest::prelude::*;

/// Bytes in memory as a source.
struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn extent(&self, offset: u64, limit: u64) -> blkimage::Result<Extent> {
        Ok(Extent { offset, length: limit, kind: ExtentKind::Data })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> blkimage::Result<()> {
        buf.copy_from_slice(&self.0[offset as usize..][..buf.len()]);
        Ok(())
    }
}

const DATA_BLOCK: usize = 1024;

fn leaf(algorithm: Algorithm) -> Leaf {
    let block_size = BlockSize::try_from(DATA_BLOCK as u64).unwrap();
    let parameters = Parameters::new(algorithm, Construction::DmVerity, block_size).unwrap();
    let salt = Salt::try_from(&b"salt"[..]).unwrap();
    parameters.with_salt(salt).unwrap().leaf(&Digester::new(algorithm))
}

fn digests(leaf: &Leaf, data: &[u8]) -> BlockDigests {
    let mut digests = BlockDigests::default();
    let mut batch = Batch::new(leaf, &mut digests);
    batch.update(data);
    batch.finish();
    digests
}

/// Returns the root and the file with the tree, behind `start` bytes.
fn build(leaf: &Leaf, data: &[u8], start: u64) -> (Digest, Layout, Vec<u8>) {
    let leaves = (data.len() / DATA_BLOCK) as u64;
    let algorithm = leaf.digester().algorithm();
    let layout = Layout::new(algorithm, BlockSize::MIN, start, leaves).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(layout.end()).unwrap();
    let blocks = TreeFile::new(&file, layout.clone());
    let mut tree = Tree::with_blocks(leaf, BlockSize::MIN, blocks);
    tree.take(&digests(leaf, data)).unwrap();
    let (root, mut blocks) = tree.finish().unwrap();
    blocks.flush().unwrap();
    let mut stored = vec![0; layout.end() as usize];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut stored, 0).unwrap();
    (root, layout, stored)
}

fn verify(
    leaf: &Leaf,
    root: &Digest,
    layout: &Layout,
    stored: Vec<u8>,
    data: &[u8],
) -> (Summary, Vec<Finding>) {
    let stored = Bytes(stored);
    let mut findings = Vec::new();
    let is_root = |digest: &Digest| digest == root;
    let mut report = |finding: &Finding| findings.push(*finding);
    let mut verifier = Verifier::new(&stored, layout.clone(), leaf, &is_root, &mut report);
    // As several parts, which a pass hands in.
    for part in data.chunks(DATA_BLOCK * 7) {
        verifier.take(&digests(leaf, part)).unwrap();
    }
    let summary = verifier.finish();
    (summary, findings)
}

/// Content of blocks that are often equal or zero.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..4_u8, 1..400)
        .prop_map(|blocks| blocks.iter().flat_map(|fill| [*fill; DATA_BLOCK]).collect())
}

proptest! {
    #[test]
    fn every_change_is_found(
        data in content(),
        algorithm in prop::sample::select(vec![Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512]),
        changes in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        damage in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let start = 512;
        let leaf = leaf(algorithm);
        let (root, layout, mut stored) = build(&leaf, &data, start);
        let mut changed = data.clone();
        let mut bad_data = BTreeSet::new();
        for change in changes {
            let at = change.index(data.len());
            changed[at] ^= 0x55;
            bad_data.insert((at / DATA_BLOCK) as u64);
        }
        bad_data.retain(|block| {
            let at = *block as usize * DATA_BLOCK;
            changed[at..at + DATA_BLOCK] != data[at..at + DATA_BLOCK]
        });
        let mut bad_tree = BTreeSet::new();
        let intact = stored.clone();
        for damage in damage {
            if stored.len() > start as usize {
                let at = start as usize + damage.index(stored.len() - start as usize);
                stored[at] ^= 0x55;
                bad_tree.insert(at / 512 * 512);
            }
        }
        bad_tree.retain(|at| stored[*at..at + 512] != intact[*at..at + 512]);

        let (summary, findings) = verify(&leaf, &root, &layout, stored, &changed);
        prop_assert_eq!(summary.is_clean(), bad_data.is_empty() && bad_tree.is_empty());
        prop_assert_eq!(summary.data_blocks, layout.leaves());
        let mut named = BTreeSet::new();
        let mut unverified = BTreeSet::new();
        let mut tree = BTreeSet::new();
        for finding in findings {
            let blocks = finding.first..finding.first + finding.count;
            match finding.problem {
                Problem::Data => named.extend(blocks),
                Problem::Unverified => unverified.extend(blocks),
                Problem::Tree(_) => {
                    tree.extend((0..finding.count).map(|it| (finding.offset + it * 512) as usize));
                }
                problem => prop_assert!(false, "{problem:?}"),
            }
        }
        prop_assert_eq!(named.len() as u64, summary.bad_data);
        prop_assert_eq!(unverified.len() as u64, summary.unverified);
        prop_assert_eq!(tree.len() as u64, summary.bad_tree);
        prop_assert!(named.is_subset(&bad_data), "a good block is named");
        prop_assert!(named.is_disjoint(&unverified));
        let found: BTreeSet<_> = named.union(&unverified).copied().collect();
        prop_assert!(bad_data.is_subset(&found), "a bad block is not named");
        prop_assert!(tree.is_subset(&bad_tree), "a good block of the tree is named");
        // Below a damaged block, only verified data tells which other blocks are damaged.
        if unverified.is_empty() {
            prop_assert_eq!(&tree, &bad_tree);
        }
        if bad_tree.is_empty() {
            prop_assert_eq!(&named, &bad_data);
        }
    }
}

#[test]
fn another_root_verifies_nothing() {
    let leaf = leaf(Algorithm::Sha256);
    for blocks in [1, 2, 16, 17, 300] {
        let data = vec![7; blocks * DATA_BLOCK];
        let (root, layout, stored) = build(&leaf, &data, 0);
        let (summary, _) = verify(&leaf, &root, &layout, stored.clone(), &data);
        assert!(summary.is_clean());
        let other = Digester::new(Algorithm::Sha256).digest(b"another");
        let (summary, _) = verify(&leaf, &other, &layout, stored, &data);
        assert_eq!(summary.bad_data + summary.unverified, blocks as u64);
    }
}

#[test]
fn bytes_beside_the_digests_are_found() {
    // Digests of 20 bytes have a stride of 32.
    let leaf = leaf(Algorithm::Sha1);
    let data = vec![7; 3 * DATA_BLOCK];
    let (_, layout, mut stored) = build(&leaf, &data, 0);
    for at in [21, 3 * 32, 511] {
        let before = stored[at];
        stored[at] = 1;
        let root = leaf.hash(&stored);
        let (summary, findings) = verify(&leaf, &root, &layout, stored.clone(), &data);
        assert_eq!((summary.bad_tree, findings[0].problem), (1, Problem::Spare(0)), "{at}");
        stored[at] = before;
    }
}
