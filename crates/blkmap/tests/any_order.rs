//! Blocks that come in any order, and checks of single ranges, compared with passes from the first block to the last.

use std::io;
use std::sync::{Arc, RwLock};

use blkhash::engine::Batch;
use blkhash::{Algorithm, BlockDigests, Salt, Sink};
use blkmap::{BlockCheck, BlockVerdict, Collector, Error, Header, Map, ReadAt, Writer};
use proptest::prelude::*;

const BLOCK: usize = 512;

fn header(algorithm: Algorithm, salt: &[u8]) -> Header {
    let salt = Salt::try_from(salt).unwrap();
    Header::with_id([7; 16], algorithm, (BLOCK as u64).try_into().unwrap(), salt)
}

/// The digests of content.
fn digests(header: &Header, content: &[u8]) -> BlockDigests {
    let mut digests = BlockDigests::default();
    let leaf = header.leaf();
    let mut batch = Batch::new(&leaf, &mut digests);
    batch.update(content);
    batch.finish();
    digests
}

/// Writes a map from the first block to the last. Pages before `first` are left out.
fn written(header: Header, content: &[u8], first: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header, content.len() as u64).unwrap();
    writer.skip_to(first).unwrap();
    let short = content.len() % BLOCK;
    if short > 0 {
        let mut padded = content[content.len() - short..].to_vec();
        padded.resize(BLOCK, 0);
        writer.set_padded_last(Some(header.leaf().hash(&padded)));
    }
    let from = (first * header.blocks_per_page()) as usize * BLOCK;
    writer.take(&digests(&header, &content[from.min(content.len())..])).unwrap();
    writer.finish("{}").unwrap().0
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let run = (prop_oneof![Just(0), any::<u8>()], prop_oneof![1..4_usize, 100..600_usize]);
    (prop::collection::vec(run, 1..8), 0..BLOCK).prop_map(|(runs, cut)| {
        let blocks = runs.into_iter().flat_map(|(byte, count)| vec![byte; count * BLOCK]);
        let mut content: Vec<u8> = blocks.collect();
        content.truncate(content.len() - cut);
        content
    })
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(vec!["sha256", "sha512", "crc32c", "sha1"])
        .prop_map(|name| name.parse().unwrap())
}

/// Cuts content into parts of whole blocks, and returns their offsets in another order.
fn parts(content: &[u8], blocks: usize, seed: u64) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..content.len()).step_by(blocks * BLOCK).collect();
    let mut state = seed;
    for index in (1..parts.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        parts.swap(index, (state >> 33) as usize % (index + 1));
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A map of blocks in any order equals a map of blocks in order, byte by byte.
    #[test]
    fn the_order_changes_no_byte(
        content in content(), algorithm in algorithm(), blocks in 1..300_usize, seed: u64,
    ) {
        let header = header(algorithm, b"salt");
        let collector = Collector::new(header, content.len() as u64).unwrap();
        for at in parts(&content, blocks, seed) {
            let part = &content[at..content.len().min(at + blocks * BLOCK)];
            prop_assert!(collector.left() > 0);
            match part.iter().all(|byte| *byte == 0) && seed % 2 == 0 {
                true => collector.add_zeros(at as u64, part.len() as u64).unwrap(),
                false => collector.add(at as u64, part).unwrap(),
            }
            // What comes again is the same.
            collector.add(at as u64, &part[..part.len().min(BLOCK)]).unwrap();
        }
        let writer = Writer::new(Vec::new(), header, content.len() as u64).unwrap();
        let (bytes, commit) = collector.write(writer, "{}").unwrap();
        prop_assert_eq!(commit.known(), content.len().div_ceil(BLOCK) as u64);
        prop_assert_eq!(bytes, written(header, &content, 0));
    }

    /// A check finds the first changed block of a range, whatever was asked before.
    #[test]
    fn the_first_changed_block_is_found(
        content in content(),
        algorithm in algorithm(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 0..4),
        ranges in prop::collection::vec((any::<prop::sample::Index>(), 1..300_usize), 1..30),
        is_partial: bool,
    ) {
        let header = header(algorithm, b"");
        let first = u64::from(is_partial);
        let per_page = header.blocks_per_page();
        let count = content.len().div_ceil(BLOCK);
        let map = Map::open(written(header, &content, first.min(count as u64 / per_page))).unwrap();
        let unknown = |block: usize| is_partial && (block as u64) < per_page && count as u64 >= per_page;
        let mut changed = content.clone();
        for (index, by) in changes {
            let at = index.index(changed.len());
            changed[at] ^= by;
        }
        let check = BlockCheck::new(map).unwrap();
        let block = |content: &[u8], at: usize| content[at * BLOCK..content.len().min((at + 1) * BLOCK)].to_vec();
        for (index, length) in ranges {
            let from = index.index(count);
            let to = count.min(from + length);
            let of = |other: &dyn Fn(usize) -> Vec<u8>| {
                let differs = |at: &usize| !unknown(*at) && other(*at) != block(&content, *at);
                match ((from..to).find(differs), (from..to).find(|at| unknown(*at))) {
                    (Some(at), _) => BlockVerdict::Different(at as u64),
                    (None, Some(at)) => BlockVerdict::Unknown(at as u64),
                    (None, None) => BlockVerdict::Equal,
                }
            };
            let end = changed.len().min(to * BLOCK);
            let found = check.check((from * BLOCK) as u64, &changed[from * BLOCK..end]).unwrap();
            prop_assert_eq!(found, of(&|at| block(&changed, at)));
            let found = check.check_zeros((from * BLOCK) as u64, (end - from * BLOCK) as u64).unwrap();
            prop_assert_eq!(found, of(&|at| vec![0; block(&content, at).len()]));
            let digest = check.digest(from as u64).unwrap();
            let expected = (!unknown(from)).then(|| header.leaf().hash(&block(&content, from)));
            prop_assert_eq!(digest, expected);
        }
    }
}

/// A file that changes while it is open.
#[derive(Clone)]
struct Changing(Arc<RwLock<Vec<u8>>>);

impl ReadAt for Changing {
    fn length(&self) -> io::Result<u64> {
        self.0.read().unwrap().length()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read().unwrap().read_exact_at(buf, offset)
    }
}

/// Blocks that differ, and every third page zeros.
fn blocks(first: u64, count: u64, per_page: u64) -> Vec<u8> {
    let block = |at: u64| match at / per_page % 3 {
        1 => vec![0; BLOCK],
        _ => (first + at).to_le_bytes().repeat(BLOCK / 8),
    };
    (0..count).flat_map(block).collect()
}

#[test]
fn what_was_checked_stays() {
    let header = header(Algorithm::Crc32c, b"");
    let (per_page, page) = (header.blocks_per_page(), 8192);
    // Several parts of both tables.
    let count = 420 * per_page;
    let (right, wrong) = (blocks(1, count, per_page), blocks(1 << 40, count, per_page));
    let (honest, forged) = (written(header, &right, 0), written(header, &wrong, 0));
    assert_eq!(honest.len(), forged.len());
    let file = Changing(Arc::new(RwLock::new(honest.clone())));
    let map = Map::open(file.clone()).unwrap();
    let check = BlockCheck::new(map.clone()).unwrap();
    assert_eq!(check.check(0, &right[..BLOCK]).unwrap(), BlockVerdict::Equal);
    // The slot of this page is taken by another one.
    let (low, high) = (per_page as usize * BLOCK * 2, per_page as usize * BLOCK * 300);
    for content in [&honest, &forged, &forged[..page].to_vec(), &vec![0; honest.len()]] {
        file.0.write().unwrap().clone_from(content);
        for at in [low, high, low + 256 * per_page as usize * BLOCK] {
            let found = check.check(at as u64, &wrong[at..][..BLOCK]);
            assert!(!matches!(found, Ok(BlockVerdict::Equal)), "{found:?}");
            let digest = check.digest((at / BLOCK) as u64);
            let expected = header.leaf().hash(&right[at..][..BLOCK]);
            assert!(digest.is_err() || digest.unwrap() == Some(expected));
        }
        // Nor in a second pass.
        let mut runs = map.blocks().unwrap();
        let is_whole = loop {
            match runs.next(1 << 20) {
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        assert_eq!(is_whole, *content == honest);
    }
}

/// A range of blocks that the map does not know is passed at once.
#[test]
fn unknown_pages_take_no_time() {
    let header = header(Algorithm::Sha256, b"");
    let per_page = header.blocks_per_page();
    // 2^33 blocks, of which the map knows the last page.
    let count = 1 << 33;
    let mut writer = Writer::new(Vec::new(), header, count * BLOCK as u64).unwrap();
    writer.skip_to(count / per_page - 1).unwrap();
    writer.take(&digests(&header, &vec![7; per_page as usize * BLOCK])).unwrap();
    let check = BlockCheck::new(Map::open(writer.finish("{}").unwrap().0).unwrap()).unwrap();
    let length = (count - per_page) * BLOCK as u64;
    for at in 0..1000 {
        let found = check.check_zeros(at * BLOCK as u64, length - at * BLOCK as u64).unwrap();
        assert_eq!(found, BlockVerdict::Unknown(at));
    }
    let found = check.check_zeros(0, count * BLOCK as u64).unwrap();
    assert_eq!(found, BlockVerdict::Different(count - per_page));
}

#[test]
fn what_is_no_block_is_refused() {
    let header = header(Algorithm::Sha256, b"");
    let content = vec![7; 10 * BLOCK + 1];
    let size = content.len() as u64;
    let check = BlockCheck::new(Map::open(written(header, &content, 0)).unwrap()).unwrap();
    let collector = Collector::new(header, size).unwrap();
    for (offset, length) in [(1, BLOCK), (0, 1), (size - 1, 2), (u64::MAX, 1), (0, BLOCK + 1)] {
        let content = vec![7; length];
        let is_refused = |error: Error| matches!(error, Error::Mismatch(_));
        assert!(is_refused(check.check(offset, &content).unwrap_err()));
        assert!(is_refused(check.check_zeros(offset, length as u64).unwrap_err()));
        assert!(is_refused(collector.add(offset, &content).unwrap_err()));
        assert!(is_refused(collector.add_zeros(offset, length as u64).unwrap_err()));
    }
    assert_eq!(check.check(size - 1, &[7]).unwrap(), BlockVerdict::Equal);
    assert_eq!(check.check(size - 1, &[6]).unwrap(), BlockVerdict::Different(10));
    assert_eq!(check.check(0, &[]).unwrap(), BlockVerdict::Equal);
    assert_eq!(check.digest(11).unwrap(), None);
    assert_eq!(collector.left(), 11);
}

#[test]
fn a_map_of_half_an_image_or_of_two_is_not_written() {
    let header = header(Algorithm::Sha256, b"");
    let size = 4 * BLOCK as u64;
    let write = |collector: &Collector| {
        let writer = Writer::new(Vec::new(), header, size).unwrap();
        collector.write(writer, "{}").map(|(bytes, _)| bytes)
    };
    let collector = Collector::new(header, size).unwrap();
    collector.add(0, &[1; 3 * BLOCK]).unwrap();
    assert!(matches!(write(&collector), Err(Error::Incomplete { known: 3, blocks: 4 })));
    collector.add_zeros(3 * BLOCK as u64, BLOCK as u64).unwrap();
    assert!(write(&collector).is_ok());
    for (at, content) in [(0, vec![2; BLOCK]), (3, vec![1; BLOCK]), (1, vec![0; BLOCK])] {
        let collector = Collector::new(header, size).unwrap();
        collector.add(0, &[1; 3 * BLOCK]).unwrap();
        collector.add_zeros(3 * BLOCK as u64, BLOCK as u64).unwrap();
        collector.add(at * BLOCK as u64, &content).unwrap();
        assert!(matches!(write(&collector), Err(Error::Content(_))), "{at}");
    }
    let empty = Collector::new(header, 0).unwrap();
    let writer = Writer::new(Vec::new(), header, 0).unwrap();
    assert_eq!(empty.write(writer, "{}").unwrap().0, written(header, &[], 0));
}
