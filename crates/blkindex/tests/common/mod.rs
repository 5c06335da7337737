//! Reads any bytes as an index of another program, and compares the map with a plain reading of the bytes. Used by tests and
//! by the fuzz target `index`.

use std::ffi::OsStr;

use blkhash::{Algorithm, BlockDigests, BlockSize, Salt, Sink};
use blkindex::{Format, Index, Options, export};
use blkmap::{BlockRun, Header, Map, Writer, check};

/// Returns a small index in each format, and a bmap and lines with unknown blocks.
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
    samples
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
    let formats = Format::ALL.iter().copied().map(Some).chain([None]);
    formats.filter(|format| check_format(&file, *format)).count()
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
