//! Reads any bytes as an index of another program, and compares the map with a plain reading of the bytes. Used by tests and
//! by the fuzz target `index`.

use std::ffi::OsStr;

use blkhash::{Algorithm, BlockDigests, BlockSize, Digester, Salt, Sink};
use blkindex::{Bmap, Format, Index, Options, export};
use blkmap::{BlockRun, Header, Map, Writer, check};

/// Returns a small index in each format, a bmap and lines with unknown blocks, and bmaps with long ranges in each version.
pub fn samples() -> Vec<Vec<u8>> {
    let mut samples: Vec<Vec<u8>> = Vec::new();
    for (algorithm, first) in
        [(Algorithm::Sha256, 0), (Algorithm::Sha512_256, 0), (Algorithm::Sha256, 1)]
    {
        let map = map(algorithm, first);
        for &format in Format::ALL {
            let mut bytes = Vec::new();
            if export(&map, format, &mut bytes).is_ok() {
                samples.push(bytes);
            }
        }
    }
    samples.push(S3.as_bytes().to_vec());
    let new = (Algorithm::Sha256, "<ChecksumType>sha256</ChecksumType>", "BmapFileChecksum");
    for (version, (algorithm, kind, own), attribute) in [
        ("2.0", new, "chksum"),
        ("1.4", new, "chksum"),
        ("1.3", (Algorithm::Sha1, "", "BmapFileSHA1"), "sha1"),
    ] {
        samples.push(bmap(version, algorithm, kind, own, attribute).into_bytes());
    }
    samples
}

/// Returns a bmap of 20 blocks with three ranges.
fn bmap(version: &str, algorithm: Algorithm, kind: &str, own: &str, attribute: &str) -> String {
    let digest = |bytes: &[u8]| {
        let mut state = Digester::new(algorithm).start();
        state.update(bytes);
        state.finalize().to_string()
    };
    let range = |blocks| format!("<Range {attribute}=\"{}\"> {blocks} </Range>\n", digest(b"x"));
    let with = |checksum: &str| {
        format!(
            "<?xml version=\"1.0\" ?>\n<bmap version=\"{version}\">\n<ImageSize> 10000 </ImageSize>\n<BlockSize> 512 \
             </BlockSize>\n<BlocksCount> 20 </BlocksCount>\n<MappedBlocksCount> 13 </MappedBlocksCount>\n{kind}\n<{own}> \
             {checksum} </{own}>\n<BlockMap>\n{}{}{}</BlockMap>\n</bmap>\n",
            range("0-1"),
            range("7"),
            range("10-19"),
        )
    };
    with(&digest(with(&"0".repeat(algorithm.digest_size() * 2)).as_bytes()))
}

/// Returns a map of 140 blocks, which knows the pages from `first` on.
fn map(algorithm: Algorithm, first: u64) -> Map {
    let header = Header::with_id([7; 16], algorithm, BlockSize::MIN, Salt::EMPTY);
    let leaf = header.leaf();
    let mut digests = BlockDigests::default();
    for block in first * 128..140 {
        match block % 3 {
            0 => digests.push_zero_blocks(1, 512),
            _ => digests.push(&leaf.hash(&[block as u8; 512]), 512),
        }
    }
    digests.push(&leaf.hash(&[1; 100]), 100);
    let mut writer = Writer::new(Vec::new(), header, 140 * 512 + 100).unwrap();
    writer.skip_to(first).unwrap();
    writer.take(&digests).unwrap();
    Map::open(writer.finish("{}").unwrap().0).unwrap()
}

/// Reads bytes as each format. Returns the number of formats that they have.
pub fn check_index(bytes: &[u8]) -> usize {
    let file = bytes.to_vec();
    check_ranges(&file);
    let formats = Format::ALL.iter().copied().map(Some).chain([None]);
    formats.filter(|format| check_format(&file, *format)).count()
}

/// Reads bytes as a bmap. Its ranges are in order, and if all have one block, a map has their digests.
fn check_ranges(file: &Vec<u8>) {
    let bmap = match Bmap::open(file) {
        Ok(bmap) => bmap,
        Err(error) => {
            let message = error.to_string();
            assert!(!message.chars().any(char::is_control), "{message:?}");
            return;
        }
    };
    let blocks = bmap.image_size().div_ceil(bmap.block_size().into());
    let ranges: Vec<_> = bmap.ranges().unwrap().collect::<Result<_, _>>().unwrap();
    let end = ranges.iter().fold(0, |end, range| {
        assert!(range.first >= end && range.count > 0);
        assert_eq!(range.digest.as_bytes().len(), bmap.algorithm().digest_size());
        range.first + range.count
    });
    assert!(end <= blocks);
    assert_eq!(ranges.iter().map(|range| range.count).sum::<u64>(), bmap.mapped_blocks());
    let map = import(file, Some(Format::Bmap), &Options::default());
    assert_eq!(map.is_ok(), ranges.iter().all(|range| range.count == 1));
    let Ok((map, ..)) = map else { return };
    let mut runs = map.blocks().unwrap();
    while let Some(run) = runs.next(u64::MAX).unwrap() {
        let BlockRun::Digests { first, entries } = run else { continue };
        for (block, entry) in (first..).zip(entries.chunks_exact(map.header().entry_size())) {
            let range = ranges.iter().find(|range| range.first == block).unwrap();
            assert!(entry.starts_with(range.digest.as_bytes()));
        }
    }
}

fn check_format(file: &Vec<u8>, format: Option<Format>) -> bool {
    let map = match import(file, format, &Options::default()) {
        Ok(map) => map,
        Err(error) => {
            let message = error.to_string();
            assert!(!message.chars().any(char::is_control), "{message:?}");
            assert!(message.len() < 1000, "{message}");
            return false;
        }
    };
    let (map, format, left_out) = map;
    check(&map, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let parts = |from: usize, step: usize, skip: usize| -> Vec<Vec<u8>> {
        let rest = file.get(from..).unwrap_or_default().chunks_exact(step);
        rest.map(|item| item[skip..].to_vec()).collect()
    };
    match format {
        Format::Fidx => assert_eq!(digests(&map), parts(4096, 32, 0)),
        Format::Raw => assert_eq!(digests(&map), parts(0, 32, 0)),
        Format::Caibx => assert_eq!(digests(&map), parts(64, 40, 8)[..digests(&map).len()]),
        _ => {}
    }
    // What is in a map is the same after it is written and read again.
    let text = lines(&map);
    if left_out == 0 && map.header().salt.is_empty() && map.commit().image_size() > 0 {
        let mut options = Options::default();
        options.algorithm = Some(map.header().algorithm);
        options.block_size = Some(map.header().block_size);
        let (again, ..) = import(&text, Some(Format::Lines), &options).unwrap();
        assert_eq!(String::from_utf8(lines(&again)), String::from_utf8(text));
    }
    true
}

fn import(
    file: &Vec<u8>,
    format: Option<Format>,
    options: &Options,
) -> blkmap::Result<(Map, Format, u64)> {
    let index = Index::open(file, OsStr::new("index"), format, options)?;
    let format = index.format();
    let writer = Writer::new(Vec::new(), index.header()?, index.image_size())?;
    let (bytes, _, left_out) = index.write(writer, "{}")?;
    Ok((Map::open(bytes)?, format, left_out))
}

fn lines(map: &Map) -> Vec<u8> {
    let mut text = Vec::new();
    export(map, Format::Lines, &mut text).unwrap();
    text
}

/// Returns the digests of all blocks of a map with sha256 or sha512-256, which knows them all.
fn digests(map: &Map) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut blocks = map.blocks().unwrap();
    while let Some(run) = blocks.next(u64::MAX).unwrap() {
        match run {
            BlockRun::Digests { entries, .. } => {
                found.extend(entries.chunks_exact(32).map(<[u8]>::to_vec));
            }
            BlockRun::Zeros { count, .. } => {
                let zeros = map.zero_block().as_bytes().to_vec();
                found.extend((0..count).map(|_| zeros.clone()));
            }
            BlockRun::Unknown { .. } => panic!("an unknown block"),
        }
    }
    found
}

/// A list of parts of S3.
const S3: &str = r#"{
    "Checksum": {"ChecksumSHA256": "dIa4FL4XXK1yEMhT2U0k1glDtc9hYAbaGu5ltRsi5EM=-3", "ChecksumType": "FULL_OBJECT"},
    "ObjectParts": {
        "TotalPartsCount": 3,
        "IsTruncated": false,
        "Parts": [
            {"PartNumber": 1, "Size": 512, "ChecksumSHA256": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
            {"PartNumber": 2, "Size": 512, "ChecksumSHA256": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE="},
            {"PartNumber": 3, "Size": 100, "ChecksumSHA256": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI="}
        ]
    },
    "ObjectSize": 1124
}
"#;
