//! Reads a map with any fields and hashes that match, and any bytes as a map. What is read must be what the
//! definition in plain steps says, or an error.

#![no_main]

#[path = "../../crates/blkmap/tests/common/mod.rs"]
mod common;

use blkhash::{Algorithm, BlockDigests, BlockSize, Salt, Sink};
use blkmap::{Header, Writer};
use common::{Change, change, check_map};
use libfuzzer_sys::fuzz_target;

type Input = (Vec<(u8, u8)>, Vec<Change>, bool, Vec<u8>);

fuzz_target!(|input: Input| {
    let (runs, changes, are_repaired, bytes) = input;
    check_map(&bytes);
    let header = Header::with_id([7; 16], Algorithm::Sha256, BlockSize::MIN, Salt::EMPTY);
    let mut digests = BlockDigests::default();
    for (byte, count) in runs {
        match byte {
            0 => digests.push_zero_blocks(u64::from(count), 512),
            _ => {
                let digest = header.leaf().hash(&[byte]);
                (0..count).for_each(|_| digests.push(&digest, 512));
            }
        }
    }
    let mut writer = Writer::new(Vec::new(), header, digests.length()).unwrap();
    writer.take(&digests).unwrap();
    let (mut bytes, _) = writer.finish("{}").unwrap();
    change(&mut bytes, &changes, are_repaired);
    check_map(&bytes);
});
