//! Any superblocks, and any damage of trees, compared with the definition in plain steps.

mod common;

use blkhash::{Algorithm, BlockSize, Salt};
use blkverity::Superblock;
use common::{Case, check_superblock, check_verifier};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_superblock(
        changes in prop::collection::vec((0..Superblock::SIZE, any::<u8>()), 0..6),
        data_blocks in any::<u64>(),
        shift in 0..64_u32,
        offset in any::<u64>(),
    ) {
        let superblock = Superblock {
            uuid: [7; 16],
            algorithm: Algorithm::Sha256,
            data_block_size: BlockSize::PAGE,
            hash_block_size: BlockSize::MIN,
            data_blocks: data_blocks >> shift,
            salt: Salt::try_from(&[5; 9][..]).unwrap(),
        };
        let mut bytes = superblock.to_bytes();
        for (place, byte) in changes {
            bytes[place] = byte;
        }
        check_superblock(&bytes, offset);
        check_superblock(&bytes, offset >> 1);
    }

    #[test]
    fn any_damage(
        shape in any::<u8>(),
        runs in prop::collection::vec((0..4_u8, any::<u8>()), 1..6),
        changes in prop::collection::vec((any::<u16>(), any::<u8>(), any::<bool>()), 0..6),
        data_changes in prop::collection::vec((any::<u16>(), 0..4_u8), 0..4),
        at_once in any::<u8>(),
        root in prop_oneof![9 => Just(0_u8), 1 => any::<u8>()],
    ) {
        check_verifier(&Case { shape, runs, changes, data_changes, at_once, root });
    }
}
