//! Images of each kind of run, and images that are refused.

use data_encoding::BASE64;

use super::plist;
use super::table::{ENTRY, HEADER};
use crate::error::ErrorKind;
use crate::formats::builder::Bytes;
use crate::probe::Format;
use crate::{ExtentKind, Source, SumOf};

/// A run: type, sectors, and its bytes in the file.
type Run<'a> = (u32, u64, &'a [u8]);

const ZERO: u32 = 0;
const RAW: u32 = 1;
const IGNORED: u32 = 2;
const COMMENT: u32 = 0x7fff_fffe;
const ADC: u32 = 0x8000_0004;
const ZLIB: u32 = 0x8000_0005;
const END: u32 = 0xffff_ffff;

/// A table that begins at sector `start`, with runs in `data`.
fn table(start: u64, runs: &[Run<'_>], sum: u32, data: &mut Vec<u8>) -> Vec<u8> {
    let sectors: u64 = runs.iter().map(|run| run.1).sum();
    let mut table = b"mish\0\0\0\x01".to_vec();
    table.extend([start, sectors, 0].map(u64::to_be_bytes).concat());
    table.resize(64, 0);
    table.extend([2, 32, sum].map(u32::to_be_bytes).concat());
    table.resize(HEADER - 4, 0);
    table.extend((runs.len() as u32 + 1).to_be_bytes());
    let mut next = 0;
    for (kind, sectors, stored) in runs.iter().chain([&(END, 0, &b""[..])]) {
        table.extend([*kind, 0].map(u32::to_be_bytes).concat());
        let numbers = [next, *sectors, data.len() as u64, stored.len() as u64];
        table.extend(numbers.map(u64::to_be_bytes).concat());
        data.extend(*stored);
        next += sectors;
    }
    table
}

fn list(tables: &[Vec<u8>]) -> String {
    let mut text = "<plist><dict><key>resource-fork</key><dict><key>blkx</key><array>".to_owned();
    for (number, table) in tables.iter().enumerate() {
        let data = BASE64.encode(table);
        text += &format!("<dict><key>Name</key><string>part {number} &lt;&#33;</string>");
        text += &format!("<key>Data</key>\n<data>\n{data}\n</data></dict>");
    }
    text + "</array></dict></dict></plist>"
}

/// A resource fork with tables.
fn fork(tables: &[Vec<u8>]) -> Vec<u8> {
    let data: Vec<u8> = tables
        .iter()
        .flat_map(|table| [&(table.len() as u32).to_be_bytes()[..], table].concat())
        .collect();
    let length = data.len() as u32;
    let head = [16, 16 + length, length, 0].map(u32::to_be_bytes).concat();
    [head, data].concat()
}

/// A file of these parts. The trailer is its last sector.
fn file(data: &[u8], fork: &[u8], list: &str, sectors: u64) -> Bytes {
    let mut bytes = [data, fork, list.as_bytes()].concat();
    let at = bytes.len();
    bytes.resize(at + 512, 0);
    let ends = [data.len() as u64, (data.len() + fork.len()) as u64];
    let image = Bytes(bytes).put(at, b"koly").be32(at + 4, 4).be32(at + 8, 512).be32(at + 60, 1);
    let image = image.be64(at + 32, ends[0]).be64(at + 40, ends[0]);
    let image = image.be64(at + 48, fork.len() as u64).be64(at + 216, ends[1]);
    let image = image.be64(at + 224, list.len() as u64).be64(at + 492, sectors);
    image.be32(at + 80, 2).be32(at + 84, 32).be32(at + 88, 7)
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
    let mut stream = vec![0; compressor.zlib_compress_bound(content.len())];
    let length = compressor.zlib_compress(content, &mut stream).unwrap();
    stream.truncate(length);
    stream
}

/// An image of one table.
fn image(runs: &[Run<'_>]) -> Bytes {
    let mut data = Vec::new();
    let table = table(0, runs, 0, &mut data);
    file(&data, b"", &list(&[table]), runs.iter().map(|run| run.1).sum())
}

fn content() -> Vec<u8> {
    (0..3000 * 512_u32).map(|at| ((at / 7).wrapping_mul(at) % 251) as u8).collect()
}

#[test]
fn runs_of_each_kind() {
    let content = content();
    let (deflated, raw) = (zlib(&content), [b'r'; 1024]);
    let literal = [&[0x80, b'a'][..], &b"\x7f\0\0".repeat(7), b"\x66\0\0"].concat();
    let runs: &[Run<'_>] = &[
        (ZLIB, 3000, &deflated),
        (ZERO, 5, b""),
        (COMMENT, 0, b"comment"),
        (IGNORED, 6, b""),
        (RAW, 2, &raw),
        (ADC, 1, &literal),
    ];
    let expected = [&content[..], &[0; 11 * 512], &raw, &[b'a'; 512]].concat();
    assert!(image(runs).content(Format::Dmg).unwrap() == expected);
    let image = image(runs).open(Format::Dmg).unwrap();
    let zeros = image.extent(content.len() as u64, u64::MAX).unwrap();
    assert_eq!((zeros.kind, zeros.length), (ExtentKind::Zero, 11 * 512));
    let before = image.bytes_read();
    for (offset, piece) in (0..).step_by(1000).zip(expected.chunks(1000)) {
        let mut buf = vec![0xee; piece.len()];
        image.read_exact_at(&mut buf, offset).unwrap();
        assert!(buf == piece, "{offset}");
    }
    let read = image.bytes_read() - before;
    assert!(read < 2 * deflated.len() as u64, "decompressed more than once: {read}");
}

#[cfg(feature = "compressed")]
#[test]
fn runs_of_other_compressions() {
    use std::io::Read;

    let content = content();
    let mut bzip2 = Vec::new();
    bzip2::read::BzEncoder::new(&content[..], bzip2::Compression::fast())
        .read_to_end(&mut bzip2)
        .unwrap();
    let mut lzfse = Vec::new();
    lzfse_rust::encode_bytes(&content, &mut lzfse).unwrap();
    let xz = |preset| {
        let mut xz = Vec::new();
        liblzma::read::XzEncoder::new(&content[..], preset).read_to_end(&mut xz).unwrap();
        xz
    };
    // A dictionary of 64 MiB.
    for (kind, stored) in [(6, &bzip2), (7, &lzfse), (8, &xz(0)), (8, &xz(9))] {
        let kind = 0x8000_0000 + kind;
        assert!(
            image(&[(kind, 3000, stored)]).content(Format::Dmg).unwrap() == content,
            "{kind:x}"
        );
        for sectors in [2999, 3001] {
            let image = image(&[(kind, sectors, stored)]);
            image.refused(Format::Dmg, ErrorKind::Corrupt, "cannot be decompressed");
        }
        let cut = image(&[(kind, 3000, &stored[..stored.len() / 2])]);
        cut.refused(Format::Dmg, ErrorKind::Corrupt, "cannot be decompressed");
    }
}

#[test]
fn tables_of_a_resource_fork() {
    let mut data = Vec::new();
    let raw = [b'r'; 1024];
    let tables =
        [table(0, &[(RAW, 2, &raw)], 0, &mut data), table(2, &[(ZERO, 1, b"")], 0, &mut data)];
    let expected = [&raw[..], &[0; 512]].concat();
    let other = [&tables[0][..], &tables[1]].concat();
    for list in ["", &list(&tables)] {
        let image = file(&data, &fork(&tables), list, 3);
        assert_eq!(image.content(Format::Dmg).unwrap(), expected);
    }
    let changed = [tables[0].clone(), table(2, &[(IGNORED, 1, b"")], 0, &mut data)];
    let image = file(&data, &fork(&changed), &list(&tables), 3);
    image.refused(Format::Dmg, ErrorKind::Corrupt, "two copies of its tables of runs");
    file(&data, &fork(&[]), "", 3).refused(Format::Dmg, ErrorKind::Unsupported, "UDRW");
    file(&data, b"", "", 0).refused(Format::Dmg, ErrorKind::Unsupported, "UDRW");
    let short = fork(&tables).len() - 1;
    for fork in [&fork(&tables)[..short], &other, b"short"] {
        file(&data, fork, "", 3).refused(Format::Dmg, ErrorKind::Corrupt, "resource fork");
    }
}

#[test]
fn sums_are_stated() {
    let mut data = Vec::new();
    let runs: &[Run<'_>] =
        &[(RAW, 1, &[b'r'; 512]), (ZERO, 1, b""), (IGNORED, 2, b""), (ZERO, 3, b"")];
    let tables = [table(0, runs, 5, &mut data), table(7, &[(ZERO, 1, b"")], 6, &mut data)];
    let image = file(&data, b"", &list(&tables), 8);
    let master = image.0.len() - 512 + 352;
    let image = image.be32(master, 4).open(Format::Dmg).unwrap();
    let stated = image.stated_checksums().unwrap().unwrap();
    let sums: Vec<_> = stated.sums.into_iter().map(|sum| (sum.crc32, sum.of)).collect();
    let part = |name: &str, ranges| SumOf::Content { name: name.into(), ranges };
    assert_eq!(
        sums,
        [
            (5, part("part 0 <!", vec![0..1024, 2048..3584])),
            (6, part("part 1 <!", std::iter::once(3584..4096).collect())),
            (7, SumOf::File(0..512)),
        ]
    );
    assert_eq!((stated.unknown_sums, stated.digests.len()), (1, 0));
}

#[test]
fn trailers_that_are_refused() {
    let valid = || image(&[(RAW, 1, &[b'r'; 512]), (ZERO, 1, b"")]);
    let at = valid().0.len() - 512;
    let size = valid().0.len() as u64;
    for (case, bytes, kind) in [
        ("magic", valid().put(at, b"kolx"), ErrorKind::Format),
        ("two", valid().put(at - 4, b"koly"), ErrorKind::Corrupt),
        ("two that overlap", valid().put(at - 511, b"koly"), ErrorKind::Corrupt),
        ("version", valid().be32(at + 4, 5), ErrorKind::Unsupported),
        ("size", valid().be32(at + 8, 511), ErrorKind::Unsupported),
        ("segments", valid().be32(at + 60, 2), ErrorKind::Unsupported),
        ("data fork", valid().be64(at + 32, size + 1), ErrorKind::Corrupt),
        ("far", valid().be64(at + 24, u64::MAX), ErrorKind::Corrupt),
        ("list", valid().be64(at + 224, u64::MAX), ErrorKind::Corrupt),
        ("short list", valid().be64(at + 224, 100), ErrorKind::Corrupt),
        ("more sectors", valid().be64(at + 492, 3), ErrorKind::Corrupt),
        ("fewer sectors", valid().be64(at + 492, 1), ErrorKind::Corrupt),
        ("encrypted", Bytes::new(4096).put(0, b"encrcdsa"), ErrorKind::Unsupported),
        ("old encrypted", Bytes::new(4096).put(4088, b"cdsaencr"), ErrorKind::Unsupported),
        ("short", Bytes::new(100), ErrorKind::Format),
    ] {
        let error = bytes.open(Format::Dmg).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), kind, "{case}: {error}");
    }
}

#[test]
fn errors_have_one_line() {
    let error = super::plist::tables(b"<plist></a\x1b[2J\n></plist>").err().unwrap();
    assert!(error.starts_with("is no XML: ") && !error.contains(char::is_control), "{error:?}");
}

#[test]
fn tables_that_are_refused() {
    let raw = [b'r'; 1024];
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut data = Vec::new();
        let mut table = table(0, &[(RAW, 2, &raw), (ZERO, 1, b"")], 0, &mut data);
        change(&mut table);
        file(&data, b"", &list(&[table]), 3)
    };
    let put = |at: usize, number: u64| {
        let mut data = Vec::new();
        let mut table = table(0, &[(RAW, 2, &raw), (ZERO, 1, b"")], 0, &mut data);
        table[at..at + 8].copy_from_slice(&number.to_be_bytes());
        file(&data, b"", &list(&[table]), 3)
    };
    assert_eq!(changed(|_| ()).content(Format::Dmg).unwrap().len(), 1536);
    let (first, second) = (HEADER, HEADER + ENTRY);
    let kinds = |kind: u32| u64::from(kind) << 32;
    for (case, bytes, says) in [
        ("cut", changed(|table| table.truncate(HEADER - 1)), "that is none"),
        ("version", changed(|table| table[7] = 2), "of version 2"),
        ("count", changed(|table| table[HEADER - 1] = 2), "another number of runs"),
        ("tail", changed(|table| table.push(0)), "another number of runs"),
        ("start", put(8, 1), "overlap"),
        ("sectors", put(16, 4), "of 4 sectors with runs of 3"),
        ("data offset", put(24, 1 << 40), "past the end"),
        ("huge data offset", put(24, u64::MAX), "past the end"),
        ("kind", put(first, kinds(0x8000_0009)), "0x80000009"),
        ("early end", put(first, kinds(END)), "past its end"),
        ("gap", put(second + 8, 3), "overlap"),
        ("overlap", put(second + 8, 1), "overlap"),
        ("huge", put(second + 16, u64::MAX), "more sectors"),
        ("large", put(second + 16, 1 << 54), "more sectors"),
        ("offset", put(first + 24, 1 << 40), "past the end"),
        ("huge offset", put(first + 24, u64::MAX), "past the end"),
        ("length", put(first + 32, 1023), "stored in 1023"),
        ("length of zeros", put(second + 32, 1 << 40), "stored in"),
    ] {
        println!("{case}");
        bytes.refused(Format::Dmg, ErrorKind::Corrupt, says);
    }
    for (sectors, stored) in [((64 << 11) + 1, 2), (1, (64 << 20) + 1)] {
        let mut data = Vec::new();
        let mut table = table(0, &[(ZLIB, sectors, b"zz")], 0, &mut data);
        table[first + 32..first + 40].copy_from_slice(&u64::to_be_bytes(stored));
        let image = file(&data, b"", &list(&[table]), sectors);
        image.refused(Format::Dmg, ErrorKind::Corrupt, "more than 64 MiB");
    }
    for (sectors, content) in [(1, &[7; 1024][..]), (2, &[7; 1023]), (3, &[7; 1024])] {
        let image = image(&[(ZLIB, sectors, &zlib(content))]);
        image.refused(Format::Dmg, ErrorKind::Corrupt, "cannot be decompressed");
    }
}

#[test]
fn lists_that_are_refused() {
    let table = table(0, &[(ZERO, 1, b"")], 0, &mut Vec::new());
    let valid = list(std::slice::from_ref(&table));
    let parse = |text: &str| plist::tables(text.as_bytes()).map(|tables| tables.len());
    assert_eq!(parse(&valid), Ok(1));
    let doctype = "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"x\">";
    assert_eq!(parse(&format!("<?xml version=\"1.0\"?>{doctype}{valid}")), Ok(1));
    assert_eq!(parse(""), Ok(0));
    assert_eq!(parse("<plist><dict/></plist>"), Ok(0));
    for (case, text) in [
        ("entities", format!("<!DOCTYPE plist [<!ENTITY a \"b\">]>{valid}")),
        ("entity", valid.replace("&lt;", "&other;")),
        ("base64", valid.replace("bWlz", "bW!z")),
        ("padding", valid.replace("bWlz", "bWl=")),
        ("other key", valid.replace("blkx", "blky")),
        ("other place", valid.replace("resource-fork", "resource_fork")),
        ("other name", valid.replace("<key>Data", "<key>Datb")),
        ("no table", valid.replace("bWlz", "bWlt")),
        ("without data", valid.replace("<key>Data</key>", "").replace("data>", "string>")),
        ("two tables", valid.replace("</data>", "</data><key>Data</key><data>bWlzaA==</data>")),
        ("comment", valid.replace("bWlz", "bWlz<!-- c -->")),
        ("section", valid.replace("bWlz", "<![CDATA[bWlz]]>")),
        ("end", valid.replace("</array>", "")),
        ("cut", valid[..valid.len() - 10].to_owned()),
        ("depth", "<a>".repeat(1000)),
    ] {
        assert!(parse(&text).is_err(), "{case}");
    }
    assert!(plist::tables(b"\xff").is_err());
}
