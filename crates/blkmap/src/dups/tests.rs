use std::collections::HashMap;

use blkhash::{Algorithm, BlockDigests, BlockSize, Salt, Sink};
use proptest::prelude::*;

use super::*;
use crate::Writer;

const BLOCK: u64 = 512;

fn header() -> Header {
    let block_size = BlockSize::try_from(BLOCK).unwrap();
    Header { file_id: [7; 16], algorithm: Algorithm::Sha256, block_size, salt: Salt::EMPTY }
}

/// Returns a map of blocks with the digests of these numbers, 0 for zeros. The last block has `last` bytes.
fn map(header: Header, blocks: &[u8], last: u64) -> Map {
    let leaf = header.leaf();
    let size = (blocks.len() as u64 * BLOCK).saturating_sub(BLOCK - last);
    let mut digests = BlockDigests::default();
    let mut padded = None;
    for (index, &number) in blocks.iter().enumerate() {
        let length = if index + 1 == blocks.len() { last } else { BLOCK };
        let block = vec![number; length as usize];
        if number == 0 && length == BLOCK {
            digests.push_zero_blocks(1, BLOCK as usize);
        } else {
            digests.push(&leaf.hash(&block), length);
        }
        if length < BLOCK {
            let mut block = block;
            block.resize(BLOCK as usize, 0);
            padded = Some(leaf.hash(&block));
        }
    }
    let mut writer = Writer::new(Vec::new(), header, size).unwrap();
    writer.take(&digests).unwrap();
    writer.set_padded_last(padded);
    Map::open(writer.finish("{}").unwrap().0).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn counts_are_those_of_a_table(
        images in prop::collection::vec(
            (prop::collection::vec(prop_oneof![Just(0), 0..9_u8, any::<u8>()], 1..400), 1..=BLOCK),
            0..4,
        ),
        limit in prop_oneof![Just(MAX_KEPT), 300..2000_usize],
    ) {
        let mut dups = Dups::with_limit(limit);
        let mut table: HashMap<(u8, u64), u64> = HashMap::new();
        let mut zeros = 0;
        for (blocks, last) in &images {
            dups.add(&map(header(), blocks, *last)).unwrap();
            for (index, &number) in blocks.iter().enumerate() {
                let length = if index + 1 == blocks.len() { *last } else { BLOCK };
                match number {
                    0 => zeros += 1,
                    number => *table.entry((number, length)).or_default() += 1,
                }
            }
        }
        // There are fewer different digests than the limit, however often they occur.
        let data: u64 = table.values().sum();
        let different = table.len() as u64;
        let bytes = table.iter().map(|((_, length), count)| (count - 1) * length).sum();
        let expected = DupsSummary {
            blocks: data + zeros,
            zero_blocks: zeros,
            different,
            repeated: data - different,
            unknown_blocks: 0,
            repeated_bytes: bytes,
            sampled: 1,
        };
        prop_assert_eq!(dups.summary(), expected);
    }
}

/// Returns pseudorandom numbers (splitmix64, two for each).
fn random(index: u64) -> u128 {
    let half = |index: u64| {
        let mut x = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(x ^ (x >> 31))
    };
    (half(2 * index + 1) << 64) | half(2 * index + 2)
}

fn counts(limit: usize, prefixes: impl Iterator<Item = u128>) -> DupsSummary {
    let mut dups = Dups::with_limit(limit);
    for prefix in prefixes {
        dups.data_blocks += 1;
        dups.push(prefix);
        assert!(dups.prefixes.len() <= limit);
    }
    dups.summary()
}

#[test]
fn estimates_are_close() {
    const COUNT: u64 = 1_000_000;
    const DIFFERENT: u64 = 700_000;
    let prefixes = || (0..COUNT).map(|index| random(index % DIFFERENT));
    let exact = counts(MAX_KEPT, prefixes());
    assert_eq!((exact.different, exact.repeated, exact.sampled), (DIFFERENT, COUNT - DIFFERENT, 1));
    for limit in [4096, 20_000, 100_000] {
        let found = counts(limit, prefixes());
        assert!(found.sampled > 1);
        // The standard error is the square root of a sample of at least 3/8 of the limit.
        let error = 4.0 / (limit as f64 * 3.0 / 8.0).sqrt();
        let ratio = found.different as f64 / DIFFERENT as f64;
        assert!((ratio - 1.0).abs() < error, "{limit}: {found:?}");
        assert_eq!(found.different + found.repeated, COUNT);
    }
}

#[test]
fn one_block_that_is_repeated_often_does_not_distort_estimates() {
    // It stays in every sample, or leaves the first one.
    for often in [1 << 60, 1] {
        let prefixes =
            (0..1_000_000).map(|index| if index % 2 == 0 { often } else { random(index) });
        let found = counts(20_000, prefixes);
        let ratio = found.different as f64 / 500_000.0;
        assert!((ratio - 1.0).abs() < 0.05, "{found:?}");
    }
}

#[test]
fn digests_that_were_made_up_end() {
    for shift in [64, 100, 120] {
        let found = counts(64, (0..200_u128).map(|index| index << shift));
        assert!(found.different <= 200 && found.sampled > 1, "{found:?}");
    }
    for limit in [1, 4] {
        counts(limit, (0..500).map(|index| if index % 3 == 0 { 0 } else { random(index) }));
    }
}

#[test]
fn long_lists_are_sorted_on_two_threads() {
    let count = PARALLEL as u64 * 2;
    let mut prefixes: Vec<u128> = (0..count).map(|index| random(index % (count / 3))).collect();
    let mut expected = prefixes.clone();
    expected.sort_unstable();
    expected.dedup();
    sort_and_dedup(&mut prefixes);
    assert_eq!(prefixes, expected);
}

#[test]
fn maps_of_other_digests_are_refused() {
    let mut dups = Dups::default();
    dups.add(&map(header(), &[1, 2], BLOCK)).unwrap();
    for other in [
        Header { algorithm: Algorithm::Blake3, ..header() },
        Header { salt: "00".parse().unwrap(), ..header() },
    ] {
        assert!(matches!(dups.add(&map(other, &[1], BLOCK)), Err(Error::Mismatch(_))));
    }
    let weak = map(Header { algorithm: Algorithm::Crc32c, ..header() }, &[1], BLOCK);
    assert!(matches!(Dups::default().add(&weak), Err(Error::Unsupported(_))));
}

#[test]
fn strong_digests_have_16_bytes() {
    for algorithm in Algorithm::ALL {
        if algorithm.properties().strength == Strength::Cryptographic {
            assert!(algorithm.digest_size() >= 16, "{algorithm}");
        }
    }
}
