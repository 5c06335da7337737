//! The LZO decoder compared with liblzo2: valid, changed and made-up streams.

#![allow(missing_docs, reason = "a test program")]
#![allow(unsafe_code, reason = "calls liblzo2")]

#[path = "common/liblzo2.rs"]
mod liblzo2;

use blkimage::lzo::{Defect, decompress};
use liblzo2::{check, compress};
use proptest::prelude::*;

/// Returns content of pieces. A piece is a fill byte and a length, or a distance and the length of a repetition.
fn content(pieces: &[(u8, u16, u16)]) -> Vec<u8> {
    let mut content = Vec::new();
    for &(fill, length, distance) in pieces {
        let distance = usize::from(distance);
        for number in 0..usize::from(length) {
            content.push(match content.len().checked_sub(distance) {
                Some(at) if distance > 0 => content[at],
                // Two fills in three do not repeat.
                _ => fill.wrapping_add((number * usize::from(fill % 3)) as u8),
            });
        }
    }
    content
}

fn pieces() -> impl Strategy<Value = Vec<(u8, u16, u16)>> {
    let length = prop_oneof![8 => 0..64_u16, 2 => 0..600_u16, 1 => 0..9000_u16];
    let distance = prop_oneof![0..40_u16, 0..3000_u16, 0..50_000_u16];
    prop::collection::vec((any::<u8>(), length, distance), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn streams_of_liblzo2(pieces in pieces(), is_thorough: bool) {
        let content = content(&pieces);
        let stream = compress(&content, is_thorough);
        prop_assert!(decompress(&stream, content.len()).as_ref() == Ok(&content));
        check(&stream, content.len());
        if let Some(limit) = content.len().checked_sub(1) {
            prop_assert_eq!(decompress(&stream, limit), Err(Defect::TooLong(limit)));
        }
    }

    #[test]
    fn changed_streams(
        pieces in pieces(),
        is_thorough: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in 0..8_usize,
        room in 0..70_000_usize,
    ) {
        let mut stream = compress(&content(&pieces), is_thorough);
        for (index, value) in changes {
            let at = index.index(stream.len());
            stream[at] = value;
        }
        stream.truncate(stream.len() - cut.saturating_sub(5));
        check(&stream, room);
    }

    #[test]
    fn any_bytes(stream in prop::collection::vec(prop_oneof![any::<u8>(), 0..40_u8], 0..64), room in 0..5000_usize) {
        check(&stream, room);
        check(&[&stream[..], &END].concat(), room);
    }
}

/// Every instruction at the beginning, after literals and after a repetition, and every distance and length in it.
#[test]
#[ignore = "slow"]
fn every_instruction() {
    // 3063 literals, for the distances that other heads do not have.
    let long = [&[0; 12][..], b"\xf0", &[b'x'; 3063]].concat();
    let heads: [&[u8]; 5] = [b"", b"\x12a", b"\x15abcd", b"\x15abcd\x28\x0c\0", &long];
    let tails: [&[u8]; 5] = [b"\0", b"\0efg", b"\0\0efg", b"\x01\0\0efg", b"efghijklmnopqrst"];
    let mut valid = 0;
    for head in heads {
        for instruction in 0..=255 {
            for low in (0..=255).step_by(5) {
                for tail in tails {
                    let stream = [head, &[instruction, low], tail, &END].concat();
                    valid += u32::from(check(&stream, 4000));
                }
            }
        }
    }
    assert!(valid > 5000, "only {valid} of the streams are valid");
}

#[test]
fn defects() {
    assert_eq!(decompress(b"", 9), Err(Defect::CutOff));
    assert_eq!(decompress(b"\x15abcd", 9), Err(Defect::CutOff));
    assert_eq!(decompress(b"\x15abcd\x11\0\0", 9), Ok(b"abcd".to_vec()));
    assert_eq!(decompress(b"\x15abcd\x11\0\0", 3), Err(Defect::TooLong(3)));
    assert_eq!(decompress(b"\x15abcd\x11\0\0x", 9), Err(Defect::Rest(1)));
    assert_eq!(decompress(b"\x15abcd\x12\0\0", 9), Err(Defect::EndMarker(4)));
    assert_eq!(decompress(b"\x15abcd\x21\x10\0\x11\0\0", 9), Err(Defect::Distance(5)));
    assert_eq!(decompress(b"\x15abcd\x28\x0c\0\x11\0\0", 99), Ok(b"abcdabcdabcdab".to_vec()));
}

const END: [u8; 3] = [0x11, 0, 0];
