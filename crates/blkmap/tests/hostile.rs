//! Maps with arbitrary fields, and hashes that match.

mod common;

use blkhash::{Algorithm, BlockDigests, BlockSize, Salt, Sink};
use blkmap::{Header, Writer};
use common::{change, check_map};
use proptest::prelude::*;

/// Returns a small map with zeros in its middle, and a checkpoint.
fn small() -> Vec<u8> {
    let header = Header::with_id([7; 16], Algorithm::Sha256, BlockSize::MIN, Salt::EMPTY);
    let mut writer = Writer::new(Vec::new(), header, 1000 * 512).unwrap();
    for (first, data, zeros) in [(0_u64, 200, 300), (500, 250, 250)] {
        let mut digests = BlockDigests::default();
        for block in first..first + data {
            digests.push(&header.leaf().hash(&block.to_le_bytes()), 512);
        }
        digests.push_zero_blocks(zeros, 512);
        writer.take(&digests).unwrap();
        if first == 0 {
            writer.checkpoint("{}").unwrap();
        }
    }
    writer.finish("{}").unwrap().0
}

fn value() -> impl Strategy<Value = u64> {
    let small = 0..64_u64;
    let near = (0..64_u64).prop_map(|value| u64::MAX - value);
    let pages = (0..40_u64).prop_map(|page| page * 4096);
    let powers = (0..64_u32).prop_map(|power| 1 << power);
    prop_oneof![small, near, pages, powers, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_fields(
        changes in prop::collection::vec((any::<u16>(), value()), 1..4),
        are_repaired in prop::bool::weighted(0.9),
    ) {
        let mut bytes = small();
        change(&mut bytes, &changes, are_repaired);
        check_map(&bytes);
    }
}

#[test]
fn the_map_itself_is_intact() {
    check_map(&small());
    blkmap::Map::open(small()).unwrap();
}
