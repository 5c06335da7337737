//! Decompresses any bytes, and streams of liblzo2 with changes, as LZO. The content must equal the content of
//! liblzo2, and whatever it refuses must be refused.

#![no_main]

#[path = "../../crates/blkimage/tests/common/liblzo2.rs"]
mod liblzo2;

use blkimage::lzo;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], u16, bool, Vec<(u16, u8)>)| {
    let (bytes, limit, is_thorough, changes) = input;
    liblzo2::check(bytes, limit.into());
    let mut stream = liblzo2::compress(bytes, is_thorough);
    assert!(lzo::decompress(&stream, bytes.len()).as_deref() == Ok(bytes));
    for (place, value) in changes {
        let place = usize::from(place) % stream.len();
        stream[place] = value;
    }
    liblzo2::check(&stream, bytes.len());
});
