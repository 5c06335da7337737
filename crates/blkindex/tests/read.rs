//! Indexes of other programs. tests/maps/test_map_foreign.py has those that the programs write.

mod common;

use std::ffi::OsStr;

use blkindex::{Bmap, Format, open};
use blkmap::Error;
use common::{check_index, samples};
use proptest::prelude::*;

#[test]
fn samples_are_recognised() {
    let mut formats = Vec::new();
    for sample in samples() {
        if Bmap::open(&sample).is_ok_and(|bmap| bmap.image_size() == 10_000) {
            let message = open(sample, OsStr::new("index")).unwrap_err().to_string();
            assert!(
                message.contains("has one checksum of the blocks 0-1: a map needs"),
                "{message}"
            );
            continue;
        }
        let opened = match open(sample.clone(), OsStr::new("index")) {
            // Raw digests have no magic.
            Err(Error::Magic) => open(sample, OsStr::new("a.block-hash-index")).unwrap(),
            opened => opened.unwrap(),
        };
        let format = opened.format.unwrap();
        assert_eq!(
            opened.map.info().unwrap(),
            format!(r#"{{"made":{{"import":"{}"}}}}"#, format.name())
        );
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    assert_eq!(formats.len(), Format::ALL.len(), "{formats:?}");
}

#[test]
fn a_map_is_no_index() {
    // The beginning of a map is a map that is cut, whatever its name.
    let name = OsStr::new("x.block-hash-index");
    let message = open([&b"\x89BLKMAP\n"[..], &[0; 24]].concat(), name).unwrap_err().to_string();
    assert!(!message.contains("index"), "{message}");
    assert!(matches!(open(vec![0; 9000], OsStr::new("x")), Err(Error::Magic)));
    assert!(open(Vec::new(), OsStr::new("x")).is_err());
}

#[test]
fn names_have_suffixes() {
    for (name, rest) in [
        ("a.img.fidx", "a.img"),
        ("a.caibx", "a"),
        ("a.block-hash-index", "a"),
        ("a.bmap", "a"),
        (".fidx", ".fidx"),
        ("fidx", "fidx"),
        ("a.json", "a.json"),
    ] {
        assert_eq!(Format::without_suffix(OsStr::new(name)), rest);
        assert_eq!(
            Format::has_suffix(OsStr::new(name)),
            name.contains('.') && !name.contains("json")
        );
    }
}

#[test]
fn bmaps_are_read_in_small_parts_and_without_entities() {
    let sample = samples().into_iter().find(|it| it.starts_with(b"<?xml")).unwrap();
    let text = String::from_utf8(sample).unwrap();
    let long = format!("<!--{}-->", " ".repeat(5000));
    for (more, reason) in [
        ("<!-- <x> -->", None),
        ("<!DOCTYPE bmap [<!ENTITY a '4096'>]>", Some("XML that is not of a bmap")),
        ("&a;", Some("XML that is not of a bmap")),
        ("<![CDATA[]]>", Some("XML that is not of a bmap")),
        (&long, Some("longer than 4096 bytes")),
        (&long[..5000], Some("longer than 4096 bytes")),
        ("x", Some("text between elements")),
    ] {
        let changed = text.replacen("<ImageSize>", &format!("{more}<ImageSize>"), 1);
        let error = open(changed.into_bytes(), OsStr::new("index")).unwrap_err().to_string();
        // Everything is in the checksum of the file, which is compared after the head is read.
        assert!(error.contains(reason.unwrap_or("another checksum")), "{more}: {error}");
    }
}

#[test]
fn ranges_of_bmaps_of_every_version() {
    let mut versions = Vec::new();
    for sample in samples() {
        let Ok(bmap) = Bmap::open(&sample) else { continue };
        let ranges: Vec<_> = bmap.ranges().unwrap().map(Result::unwrap).collect();
        if bmap.image_size() != 10_000 {
            assert!(ranges.iter().all(|range| range.count == 1));
            continue;
        }
        let places: Vec<_> = ranges.iter().map(|range| (range.first, range.count)).collect();
        assert_eq!((places, bmap.mapped_blocks()), (vec![(0, 2), (7, 1), (10, 10)], 13));
        versions.push((bmap.algorithm(), bmap.block_size().get()));
    }
    let (sha1, sha256) = (blkhash::Algorithm::Sha1, blkhash::Algorithm::Sha256);
    assert_eq!(versions, [(sha256, 512), (sha256, 512), (sha1, 512)]);
}

#[test]
fn changed_and_cut_indexes() {
    for sample in samples() {
        // No map can be made of long ranges.
        assert_eq!(
            check_index(&sample) == 0,
            Bmap::open(&sample).is_ok_and(|it| it.image_size() == 10_000)
        );
        for at in (0..sample.len()).step_by(1 + sample.len() / 300) {
            check_index(&sample[..at]);
            let mut changed = sample.clone();
            changed[at] ^= 0x41;
            check_index(&changed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutants(
        start in any::<usize>(),
        changes in prop::collection::vec((any::<usize>(), 0..40_usize, "[ -~\n]{0,20}"), 1..4),
    ) {
        let samples = samples();
        let mut bytes = samples[start % samples.len()].clone();
        for (place, removed, text) in changes {
            let at = place % (bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, text.into_bytes());
        }
        check_index(&bytes);
    }
}
