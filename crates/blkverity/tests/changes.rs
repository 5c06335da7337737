//! The verifier finds every change of data and tree, and says nothing else.

use std::collections::BTreeSet;

use blkhash::engine::Batch;
use blkhash::{
    Algorithm, BlockDigests, BlockSize, Construction, Digest, Digester, Leaf, Parameters, Salt,
    Sink, Tree,
};
use blkimage::{Extent, ExtentKind, Source};
use blkverity::{Error, Finding, Problem, StoredTree, Summary, Superblock, TreeFile, Verifier};
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

fn stored_tree(algorithm: Algorithm, data: &[u8], start: u64) -> StoredTree {
    let superblock = Superblock {
        algorithm,
        data_block_size: BlockSize::try_from(DATA_BLOCK as u64).unwrap(),
        hash_block_size: BlockSize::MIN,
        salt: Salt::try_from(&b"salt"[..]).unwrap(),
        ..Superblock::new((data.len() / DATA_BLOCK) as u64)
    };
    StoredTree::bare(&superblock, start).unwrap()
}

fn digests(leaf: &Leaf, data: &[u8]) -> BlockDigests {
    let mut digests = BlockDigests::default();
    let mut batch = Batch::new(leaf, &mut digests);
    batch.update(data);
    batch.finish();
    digests
}

/// Returns the root and the file with the tree.
fn build(stored: &StoredTree, data: &[u8]) -> (Digest, Vec<u8>) {
    let file = tempfile::tempfile().unwrap();
    let end = stored.layout().end();
    file.set_len(end).unwrap();
    let mut tree =
        Tree::with_blocks(&stored.leaf(), stored.block_size(), TreeFile::new(&file, stored));
    tree.take(&digests(&stored.leaf(), data)).unwrap();
    let (root, output) = tree.finish().unwrap();
    output.finish().unwrap();
    let mut bytes = vec![0; end as usize];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
    (root, bytes)
}

fn verify(
    stored: &StoredTree,
    root: &Digest,
    bytes: Vec<u8>,
    data: &[u8],
) -> (Summary, Vec<Finding>) {
    let file = Bytes(bytes);
    let mut findings = Vec::new();
    let mut report = |finding: &Finding| findings.push(*finding);
    let mut verifier = Verifier::new(&file, stored, root, &mut report).unwrap();
    // As several parts, which a pass hands in.
    for part in data.chunks(DATA_BLOCK * 7) {
        verifier.take(&digests(&stored.leaf(), part)).unwrap();
    }
    let summary = verifier.finish().unwrap();
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
        let tree = stored_tree(algorithm, &data, start);
        let (root, mut stored) = build(&tree, &data);
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

        let (summary, findings) = verify(&tree, &root, stored, &changed);
        prop_assert_eq!(summary.is_clean(), bad_data.is_empty() && bad_tree.is_empty());
        prop_assert_eq!(summary.data_blocks, tree.layout().leaves());
        let mut named = BTreeSet::new();
        let mut unverified = BTreeSet::new();
        let mut tree_blocks = BTreeSet::new();
        for finding in findings {
            let blocks = finding.first..finding.first + finding.count;
            match finding.problem {
                Problem::Data => named.extend(blocks),
                Problem::Unverified => unverified.extend(blocks),
                Problem::Tree(_) => {
                    tree_blocks.extend((0..finding.count).map(|it| (finding.offset + it * 512) as usize));
                }
                problem => prop_assert!(false, "{problem:?}"),
            }
        }
        prop_assert_eq!(named.len() as u64, summary.bad_data);
        prop_assert_eq!(unverified.len() as u64, summary.unverified);
        prop_assert_eq!(tree_blocks.len() as u64, summary.bad_tree);
        prop_assert!(named.is_subset(&bad_data), "a good block is named");
        prop_assert!(named.is_disjoint(&unverified));
        let found: BTreeSet<_> = named.union(&unverified).copied().collect();
        prop_assert!(bad_data.is_subset(&found), "a bad block is not named");
        prop_assert!(tree_blocks.is_subset(&bad_tree), "a good block of the tree is named");
        // Below a damaged block, only verified data tells which other blocks are damaged.
        if unverified.is_empty() {
            prop_assert_eq!(&tree_blocks, &bad_tree);
        }
        if bad_tree.is_empty() {
            prop_assert_eq!(&named, &bad_data);
        }
    }
}

#[test]
fn another_root_verifies_nothing() {
    for blocks in [1, 2, 16, 17, 300] {
        let data = vec![7; blocks * DATA_BLOCK];
        let tree = stored_tree(Algorithm::Sha256, &data, 0);
        let (root, stored) = build(&tree, &data);
        let (summary, _) = verify(&tree, &root, stored.clone(), &data);
        assert!(summary.is_clean());
        let other = Digester::new(Algorithm::Sha256).digest(b"another");
        let (summary, _) = verify(&tree, &other, stored, &data);
        assert_eq!(summary.bad_data + summary.unverified, blocks as u64);
    }
}

#[test]
fn bytes_beside_the_digests_are_found() {
    // Digests of 20 bytes have a stride of 32.
    let data = vec![7; 3 * DATA_BLOCK];
    let tree = stored_tree(Algorithm::Sha1, &data, 0);
    let (_, mut stored) = build(&tree, &data);
    for at in [21, 3 * 32, 511] {
        let before = stored[at];
        stored[at] = 1;
        let root = tree.leaf().hash(&stored);
        let (summary, findings) = verify(&tree, &root, stored.clone(), &data);
        assert_eq!((summary.bad_tree, findings[0].problem), (1, Problem::Spare(0)), "{at}");
        stored[at] = before;
    }
}

#[test]
fn trees_that_cannot_be_verified_are_refused() {
    let data = vec![7; 3 * DATA_BLOCK];
    let tree = stored_tree(Algorithm::Sha256, &data, 512);
    let (root, bytes) = build(&tree, &data);
    let new = |tree: &StoredTree, bytes: &[u8], digest: &Digest| {
        Verifier::new(&Bytes(bytes.to_vec()), tree, digest, &mut |_| ()).map(|_| ())
    };
    assert!(new(&tree, &bytes, &root).is_ok());
    let cut = new(&tree, &bytes[..1023], &root);
    assert!(matches!(cut, Err(Error::CutOff { size: 1023, end: 1024 })), "{cut:?}");
    let short = Digester::new(Algorithm::Sha1).digest(b"");
    let other = new(&tree, &bytes, &short);
    assert!(matches!(other, Err(Error::RootLength(Algorithm::Sha256))), "{other:?}");

    let parameters = Parameters::new(Algorithm::Sha256, Construction::FsVerity, BlockSize::PAGE);
    let empty = StoredTree::fs(&parameters.unwrap(), 0).unwrap();
    assert!(new(&empty, &[], &empty.digest(&Digest::try_from(&[0; 32][..]).unwrap())).is_ok());
    assert!(matches!(new(&empty, &[], &root), Err(Error::Empty)));
}

#[test]
fn superblocks_are_read_where_they_are() {
    let data = vec![7; 3 * DATA_BLOCK];
    let superblock = Superblock {
        data_block_size: BlockSize::try_from(DATA_BLOCK as u64).unwrap(),
        ..Superblock::new(3)
    };
    let tree = StoredTree::dm(&superblock, 1024).unwrap();
    let (root, bytes) = build(&tree, &data);
    let file = Bytes(bytes.clone());
    let found = StoredTree::open(&file, 1024).unwrap();
    assert_eq!(found.superblock(), Some(&(superblock, 1024)));
    assert!(verify(&found, &root, bytes, &data).0.is_clean());
    assert!(matches!(StoredTree::open(&file, 0), Err(Error::Superblock { offset: 0, .. })));
    let end = file.size();
    for offset in [end - 511, end, u64::MAX] {
        let none = StoredTree::open(&file, offset);
        assert!(matches!(none, Err(Error::NoSuperblock { .. })), "{offset}: {none:?}");
    }
}
