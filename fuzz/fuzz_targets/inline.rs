//! Verifies a btrfs whose only inline extent holds any bytes, or a compressed stream with changes, in a valid leaf.
//! There must be an error if another decoder does not find the content, and none if it does.

#![no_main]

#[path = "../../crates/blkbtrfs/tests/common/mod.rs"]
mod common;
#[path = "../../crates/blkimage/tests/common/liblzo2.rs"]
mod liblzo2;

use std::io::Read;
use std::sync::{LazyLock, Mutex};

use blkimage::lzo;
use common::{BLOCK, Block, Disk, HEADER, ITEM, u64_at};
use flate2::read::ZlibEncoder;
use libfuzzer_sys::fuzz_target;

/// A file system with a file of one inline extent, the leaf, and the place of the extent in it.
static DISK: LazyLock<Mutex<(Disk, Block, usize)>> = LazyLock::new(|| {
    let disk = Disk::of_files(&[("inline", &[b'x'; SIZE])], &["--mixed", "-b", "16M"]);
    let leaf = disk.block(5, 0);
    let bytes = &disk.bytes[leaf.physical..][..BLOCK];
    let places = (0..leaf.count as usize).filter_map(|index| {
        let head = HEADER + index * ITEM;
        let place = HEADER + u64_at(bytes, head + 17) as u32 as usize;
        (bytes[head + 8] == EXTENT_DATA && bytes[place + KIND] == 0).then_some(place)
    });
    let places: Vec<usize> = places.collect();
    assert_eq!(places.len(), 1);
    Mutex::new((disk, leaf, places[0]))
});

fuzz_target!(|input: (u8, bool, Vec<u8>, Vec<(u16, u8)>)| {
    let (compression, is_compressed, bytes, changes) = input;
    let compression = compression % 3 + 1;
    let content: Vec<u8> =
        bytes.iter().copied().chain(std::iter::repeat(b'x')).take(SIZE).collect();
    let mut stored = match (is_compressed, compression) {
        (false, _) => bytes,
        (true, ZLIB) => {
            let mut stream = Vec::new();
            ZlibEncoder::new(&content[..], flate2::Compression::fast())
                .read_to_end(&mut stream)
                .unwrap();
            stream
        }
        (true, LZO) => {
            let stream = liblzo2::compress(&content, false);
            let length = stream.len().min(SIZE - 8) as u32;
            let lengths = [SIZE as u32, length.max(SIZE as u32 - 8)].map(u32::to_le_bytes);
            [&lengths.concat()[..], &stream[..length as usize]].concat()
        }
        (true, _) => {
            let mut stream = vec![0; 2 * SIZE];
            let length = zstd_safe::compress(&mut stream[..], &content, 1).unwrap();
            stream.truncate(length);
            stream
        }
    };
    for (place, value) in changes {
        if let Some(length) = std::num::NonZero::new(stored.len()) {
            stored[usize::from(place) % length] = value;
        }
    }
    // The item keeps its length.
    stored.resize(SIZE, 0);
    let mut disk = DISK.lock().unwrap();
    let (disk, leaf, place) = &mut *disk;
    disk.change_block(*leaf, |block| {
        block[*place + COMPRESSION] = compression;
        block[*place + HEAD..][..SIZE].copy_from_slice(&stored);
    });
    let (_, findings) = disk.verify().expect("only an item was changed");
    let expected = match compression {
        ZLIB => miniz(&stored),
        LZO => Some(liblzo2_finds(&stored)),
        _ => None,
    };
    assert!(findings.len() <= 1, "{findings:?}");
    if let Some(is_valid) = expected {
        assert_eq!(
            findings.is_empty(),
            is_valid,
            "{compression}: {findings:?}: {}",
            stored.escape_ascii()
        );
    }
});

/// Returns whether a stream of zlib has `SIZE` bytes of content. `None` if it has and is damaged after them, where
/// decoders may stop or not.
fn miniz(stored: &[u8]) -> Option<bool> {
    use miniz_oxide::inflate::TINFLStatus;
    use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
    let mut content = vec![0; SIZE];
    let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
        | inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
        | inflate_flags::TINFL_FLAG_COMPUTE_ADLER32;
    let mut decoder = DecompressorOxide::new();
    let (status, _, written) = decompress(&mut decoder, stored, &mut content, 0, flags);
    // In builds for fuzzing, miniz_oxide does not compare the sums itself.
    let is_sum_right = decoder.adler32() == decoder.adler32_header();
    match (written == SIZE, status) {
        (true, TINFLStatus::Done) if is_sum_right => Some(true),
        (true, _) => None,
        (false, _) => Some(false),
    }
}

/// Returns whether the lengths are right and liblzo2 finds enough content.
fn liblzo2_finds(stored: &[u8]) -> bool {
    let length = |at: usize| u32::from_le_bytes(stored[at..at + 4].try_into().unwrap()) as usize;
    let is_valid = liblzo2::check(&stored[8..], BLOCK);
    let found = lzo::decompress(&stored[8..], BLOCK);
    (length(0), length(4)) == (SIZE, SIZE - 8)
        && is_valid
        && found.is_ok_and(|found| found.len() >= SIZE)
}

const SIZE: usize = 600;
const EXTENT_DATA: u8 = 108;
const COMPRESSION: usize = 16;
const KIND: usize = 20;
const HEAD: usize = 21;
const ZLIB: u8 = 1;
const LZO: u8 = 2;
