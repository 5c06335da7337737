//! Any split of the content, with zeros as bytes or as counts, must give the same value.

#![no_main]

#[path = "../../crates/blkhash/tests/common/definition.rs"]
mod definition;

use blkhash::{Algorithm, BlockSize, Hasher, Parameters};
use libfuzzer_sys::fuzz_target;

use self::definition::definition;

fuzz_target!(|input: (u8, u8, u8, Vec<(u8, u16)>)| {
    let (construction, block_size, threads, pieces) = input;
    let construction = ["streams:4", "streams:7", "flat", "concat", "linear"]
        [usize::from(construction) % 5]
        .parse()
        .expect("a construction");
    let block_size = BlockSize::try_from(512 << (block_size % 8)).expect("a size in range");
    let parameters =
        Parameters::new(Algorithm::Xxh3, construction, block_size).expect("no keyed digest");
    let mut pushed = Hasher::new(parameters, usize::from(threads % 3) + 1);
    let mut content = Vec::new();
    for (fill, length) in pieces {
        let piece = vec![fill; usize::from(length)];
        if fill == 0 {
            pushed.zero(u64::from(length));
        } else if fill % 2 == 0 {
            pushed.update(&piece);
        } else {
            pushed.update_owned(piece.clone());
        }
        content.extend_from_slice(&piece);
    }
    assert_eq!(pushed.finalize(), definition(&parameters, &content));
});
