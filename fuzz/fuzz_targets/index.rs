//! Reads any bytes as an index of another program, in every format. The map has the digests that are in the bytes, and is the
//! same after it is written as lines and read. The ranges of a bmap are in order, and ranges of one block have the digests of the
//! map.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/blkindex/tests/common/mod.rs"]
mod common;

static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(common::samples);

fuzz_target!(|input: (u8, Vec<(u16, u8, Vec<u8>)>)| {
    let (start, changes) = input;
    let mut bytes = match usize::from(start) % (SAMPLES.len() + 1) {
        0 => Vec::new(),
        index => SAMPLES[index - 1].clone(),
    };
    for (place, removed, new) in changes {
        let at = usize::from(place) % (bytes.len() + 1);
        let end = (at + usize::from(removed)).min(bytes.len());
        bytes.splice(at..end, new);
    }
    common::check_index(&bytes);
});
