//! A test for each rule of the format, named after the violation.

use super::builder::{Builder, compressed, stored, summed, table, zlib};
use crate::{ErrorKind, Format, Image, Memory, OpenOptions, Result, Source, StatedDigest, Storage};
use std::io;

const CHUNK: usize = 8 << 10;
const SECTORS: u32 = 16;

fn open(bytes: Vec<u8>) -> Result<Image> {
    OpenOptions::new().open_storage(Box::new(Memory(bytes)), "test.E01")
}

fn content(count: usize) -> Vec<u8> {
    (0..count * CHUNK).map(|at| (at / 700 * at % 251) as u8).collect()
}

/// An image of chunks that are stored and compressed in turn.
fn image(content: &[u8]) -> Builder {
    let pieces = content.chunks(CHUNK).enumerate();
    let chunks: Vec<_> = pieces
        .map(|(index, it)| if index % 2 == 0 { stored(it) } else { compressed(it) })
        .collect();
    let size = content.len() as u64;
    Builder::new(1).volume("volume", chunks.len() as u32, SECTORS, size).chunks(&chunks)
}

fn assert_refused(bytes: Vec<u8>, kind: ErrorKind, reason: &str) {
    let error = open(bytes).err().expect("refused");
    assert!(error.kind() == kind && error.reason().contains(reason), "{error}");
}

#[test]
fn reads_of_any_length() {
    let content = &content(9)[..9 * CHUNK - 3 * 512];
    let image = open(image(content).done()).unwrap();
    assert_eq!((image.format(), image.size()), (Format::Ewf, content.len() as u64));
    for length in [1, 511, 512, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, content.len()] {
        let step = length.max(100);
        for start in (0..content.len()).step_by(step) {
            let end = (start + length).min(content.len());
            let mut buf = vec![0xee; end - start];
            image.read_exact_at(&mut buf, start as u64).unwrap();
            assert!(buf == content[start..end], "{start} {length}");
        }
    }
}

#[test]
fn several_tables_and_windows_of_one() {
    let content: Vec<u8> = content(1);
    let chunks = vec![compressed(&content); 20_000];
    let count = 2 * chunks.len() as u32 + 1;
    let size = u64::from(count) * CHUNK as u64;
    let builder = Builder::new(1).volume("volume", count, SECTORS, size);
    let builder = builder.chunks(&chunks).chunks(&[stored(&content)]).chunks(&chunks);
    let image = open(builder.done()).unwrap();
    let mut buf = vec![0; 5 * CHUNK];
    for first in [0, 16_382, 19_996, 19_999, 20_000, 36_383, 39_996] {
        image.read_exact_at(&mut buf, first * CHUNK as u64).unwrap();
        assert!(buf.chunks(CHUNK).all(|it| it == content), "{first}");
    }
}

#[test]
fn stated_digests() {
    let digests = |builder: Builder| {
        open(builder.done()).unwrap().stated_checksums().unwrap().unwrap().digests
    };
    let base = image(&content(1));
    assert_eq!(digests(base.clone()), []);
    let hash = summed(&[[7; 16], [0; 16]].concat());
    let digest = summed(&[&[7; 16][..], &[8; 20], &[0; 40]].concat());
    let md5 = StatedDigest::new("md5", [7; 16]);
    let found = digests(base.clone().section("hash", &hash).section("digest", &digest));
    assert_eq!(found, [md5.clone(), StatedDigest::new("sha1", [8; 20])]);
    // They contradict each other, so that one of them cannot match.
    let other = summed(&[[9; 16], [0; 16]].concat());
    let found = digests(base.clone().section("hash", &hash).section("hash", &other));
    assert_eq!(found, [md5, StatedDigest::new("md5", [9; 16])]);
    let xml = zlib(b"<xhash>\n<MD5>00ff00ff00ff00ff00ff00ff00ff00ff</MD5></xhash>");
    assert_eq!(digests(base.clone().section("xhash", &xml))[0].digest[..2], [0, 0xff]);
    let xml = zlib(b"<xhash>\n<MD5>00ff</MD5></xhash>");
    assert_refused(base.section("xhash", &xml).done(), ErrorKind::Corrupt, "another length");
}

#[test]
fn case_data() {
    let text: Vec<u8> =
        "\u{feff}3\nmain\na\tc\tn\te\tt\tm\tu\tp\nwhat\t1\t2\tJane \u{e9}\t\t1700000000\t0\t\n\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
    let header = zlib(b"1\r\nmain\r\nc\tm\r\nold \xe9\t2023 1 2 3 4 5\r\n");
    let builder = Builder::new(1).section("header", &header);
    let rest = |builder: Builder| {
        let chunks =
            builder.volume("volume", 1, SECTORS, CHUNK as u64).chunks(&[stored(&content(1))]);
        let image = open(chunks.done()).unwrap();
        let case = &image.acquisition().unwrap().case;
        case.iter().map(|field| format!("{}={}", field.name, field.value)).collect::<Vec<_>>()
    };
    assert_eq!(rest(builder.clone()), ["case_number=old \u{e9}", "acquired=2023-01-02 03:04:05"]);
    assert_eq!(
        rest(builder.section("header2", &zlib(&text))),
        [
            "case_number=1",
            "evidence_number=2",
            "description=what",
            "examiner=Jane \u{e9}",
            "acquired=2023-11-14T22:13:20Z"
        ]
    );
}

#[test]
fn damaged_chunks_have_their_place() {
    let content = content(4);
    let base = image(&content);
    let [first, second] = [0_u64, 1].map(|index| 13 + 1128 + 76 + index * (CHUNK as u64 + 4));
    for (at, guest) in [(first + 100, 0), (first + CHUNK as u64, 0), (second + 50, CHUNK as u64)] {
        let mut bytes = base.clone().done();
        bytes[at as usize] ^= 1;
        let image = open(bytes).unwrap();
        let mut buf = vec![0; content.len()];
        let error = image.read_exact_at(&mut buf, 0).unwrap_err();
        let expected = if guest == 0 { first } else { second };
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(expected)));
        assert!(
            error.is_of_bytes() && error.reason().contains(&format!("offset {guest} ")),
            "{error}"
        );
        // The others can be read.
        let other = 2 * CHUNK;
        image.read_exact_at(&mut buf[other..], other as u64).unwrap();
        assert!(buf[other..] == content[other..]);
    }
}

/// Returns the bytes with a change, and with the Adler-32 of a range after it.
fn changed(bytes: &[u8], at: usize, value: &[u8], sum: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + value.len()].copy_from_slice(value);
    let sealed = summed(&bytes[sum.clone()]);
    bytes[sum.start..sum.end + 4].copy_from_slice(&sealed);
    bytes
}

#[test]
fn sections_that_are_refused() {
    let bytes = image(&content(2)).done();
    let volume = 13;
    let descriptor = volume..volume + 72;
    let next = |value: u64| changed(&bytes, volume + 16, &value.to_le_bytes(), descriptor.clone());
    let size = |value: u64| changed(&bytes, volume + 24, &value.to_le_bytes(), descriptor.clone());
    let corrupt = ErrorKind::Corrupt;
    for value in [0, 13, 14, 13 + 75, bytes.len() as u64 + 1, u64::MAX] {
        assert_refused(next(value), corrupt, "no place for the next one");
    }
    for value in [1, 75, 1129, u64::MAX] {
        assert_refused(size(value), corrupt, "impossible size");
    }
    assert_refused(size(1000), corrupt, "its section \"volume\" does not match its Adler-32");
    assert!(open(size(0)).is_ok());
    assert_refused(bytes[..bytes.len() - 1].to_vec(), corrupt, "cut off");
    let mut flipped = bytes.clone();
    flipped[volume + 50] = 1;
    assert_refused(flipped, corrupt, "descriptor of a section does not match its Adler-32");
    assert_refused(
        image(&content(1)).section("next", &[]).0,
        ErrorKind::Reference,
        "folder that is unknown",
    );
}

#[test]
fn volumes_that_are_refused() {
    let make = |chunks, sectors, size| {
        let builder = Builder::new(1).volume("volume", chunks, sectors, size);
        builder.chunks(&[stored(&content(1))]).done()
    };
    let corrupt = ErrorKind::Corrupt;
    assert_refused(make(1, 0, CHUNK as u64), corrupt, "chunks without sectors");
    assert_refused(make(3, SECTORS, CHUNK as u64), corrupt, "number of chunks");
    assert_refused(make(2, SECTORS, 2 * CHUNK as u64), corrupt, "a segment may be missing");
    assert_refused(make(1, 1 << 20, CHUNK as u64), ErrorKind::Unsupported, "chunks of more than");
    let twice = image(&content(1)).volume("data", 1, SECTORS, 512);
    assert_refused(twice.done(), corrupt, "contradict");
    let copy = Builder::new(1).volume("data", 0, SECTORS, 0);
    assert_refused(copy.done(), corrupt, "copy without an original");
    let none = Builder::new(1);
    assert_refused(none.clone().done(), corrupt, "does not state the size");
    assert_refused(none.chunks(&[stored(&[1])]).done(), corrupt, "before the size");
    assert_eq!(open(Builder::new(1).volume("volume", 0, SECTORS, 0).done()).unwrap().size(), 0);
}

#[test]
fn tables_that_are_refused() {
    let content = content(2);
    let chunk = summed(&content[..CHUNK]);
    let make = |first: &[u8], second: &[u8]| {
        let builder = Builder::new(1).volume("volume", 2, SECTORS, 2 * CHUNK as u64);
        let builder = builder.section("sectors", &[&chunk[..], &chunk].concat());
        builder.section("table", first).section("table2", second).done()
    };
    let base = 13 + 1128;
    let next = 76 + chunk.len() as u32;
    let read = |bytes: Vec<u8>| {
        let mut buf = vec![0; CHUNK];
        open(bytes)?.read_exact_at(&mut buf, CHUNK as u64).map(|()| buf)
    };
    let good = table(base, &[76, next]);
    assert!(read(make(&good, &good)).unwrap() == content[..CHUNK]);
    let refused = |first: &[u8], second: &[u8], reason: &str| {
        let error = read(make(first, second)).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.reason().contains(reason), "{error}");
    };
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    refused(&flipped(0), &good, "does not match its Adler-32");
    refused(&flipped(25), &flipped(25), "its table does not match its Adler-32");
    refused(&good, &flipped(25), "(table2) differ");
    refused(&good, &flipped(32), "(table2) does not match its Adler-32");
    refused(&good, &table(base, &[76]), "not the copy");
    refused(&good, &table(0, &[76, next]), "not the copy");
    for second in [76, 0] {
        let other = table(base, &[76, second]);
        refused(&other, &other, "do not ascend");
    }
    // The highest bit is a part of an offset that would go back without it.
    for second in [1 << 30, 1 << 31, 1 << 31 | 76] {
        let far = table(base, &[76, second]);
        refused(&far, &far, "past the end");
    }
    let off = table(base, &[76, next + 1]);
    refused(&off, &off, "has another length");
    let packed = table(base, &[76, next | 1 << 31]);
    refused(&packed, &packed, "cannot be decompressed");
    let long = table(base, &[76, next, next + 1]);
    refused(&long, &long, "more chunks than the image");
    refused(&table(1 << 40, &[76, next]), &good, "past the end of the file");
}

#[test]
fn offsets_past_two_gib_of_one_table() {
    /// The bytes of an image, with a gap of zeros before the last bytes.
    struct Gap {
        head: Vec<u8>,
        tail: Vec<u8>,
        tail_at: u64,
    }
    impl Storage for Gap {
        fn size(&self) -> u64 {
            self.tail_at + self.tail.len() as u64
        }

        fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            for (byte, at) in buf.iter_mut().zip(offset..) {
                let head = usize::try_from(at).ok().and_then(|at| self.head.get(at));
                let tail = at.checked_sub(self.tail_at).and_then(|at| self.tail.get(at as usize));
                *byte = tail.or(head).copied().unwrap_or(0);
            }
            Ok(buf.len())
        }
    }
    let content = content(3);
    let [first, second, third] = [0, 1, 2].map(|at| &content[at * CHUNK..(at + 1) * CHUNK]);
    let builder = Builder::new(1).volume("volume", 3, SECTORS, 3 * CHUNK as u64);
    let base = builder.0.len() as u64;
    // The second chunk ends past 2 GiB: its stored bytes are a stream with zeros after it.
    let (packed, plain) = (zlib(first), summed(third));
    let middle = zlib(second);
    let start = 76 + packed.len() as u32;
    let far = (1 << 31) + 5;
    let end = base + u64::from(far) + plain.len() as u64;
    let mut sectors =
        Builder(builder.0.clone()).section("sectors", &[&packed[..], &middle].concat());
    let fields = [end.to_le_bytes(), (end - base).to_le_bytes()].concat();
    let at = base as usize;
    sectors.0 = changed(&sectors.0, at + 16, &fields, at..at + 72);
    let entries = table(base, &[76 | 1 << 31, start | 1 << 31, far]);
    let mut tail = plain;
    let table_at = end;
    for (kind, data) in [("table", &entries[..]), ("table2", &entries), ("done", &[])] {
        let offset = table_at + tail.len() as u64 - (end - base - u64::from(far));
        let mut section = Builder(Vec::new()).section(kind, data).0;
        let next = if kind == "done" { offset } else { offset + section.len() as u64 };
        section = changed(&section, 16, &next.to_le_bytes(), 0..72);
        tail.extend(section);
    }
    let gap = Gap { head: sectors.0, tail, tail_at: base + u64::from(far) };
    let image = OpenOptions::new().open_storage(Box::new(gap), "test.E01").unwrap();
    let mut buf = vec![0; CHUNK];
    for (index, expected) in [(0, first), (2, third)] {
        image.read_exact_at(&mut buf, index * CHUNK as u64).unwrap();
        assert!(buf == expected, "{index}");
    }
    let error = image.read_exact_at(&mut buf, CHUNK as u64).unwrap_err();
    assert!(error.reason().contains("stored in too many bytes"), "{error}");
}

#[test]
fn archives_of_files_are_refused() {
    let mut bytes = image(&content(1)).done();
    bytes[13 + 76] = 0x0e;
    let sealed = changed(&bytes, 0, b"EVF", 13 + 76..13 + 76 + 1048);
    assert_refused(sealed, ErrorKind::Unsupported, "archive of files");
}
