//! Reads a compressed cluster of a qcow2 image: any bytes, or a stream of a compressor with changes. The content must
//! be what was compressed, and what a decoder of other authors makes of the stream.

#![no_main]

use std::io::Read;

use blkimage::{Format, Memory, OpenOptions, Source};
use flate2::read::DeflateEncoder;
use flate2::{Compression, Decompress, FlushDecompress};
use libfuzzer_sys::fuzz_target;

type Input = (bool, u8, bool, Vec<u8>, Vec<(u16, u8)>);

fuzz_target!(|input: Input| {
    let (is_zstd, level, is_compressed, bytes, changes) = input;
    let content: Vec<u8> = bytes.iter().copied().cycle().take(CLUSTER).collect();
    let mut stream = match (is_compressed && !bytes.is_empty(), is_zstd) {
        (false, _) => bytes,
        (true, false) => deflate(&content, level),
        (true, true) => zstd(&content, level),
    };
    stream.truncate(MAX_STREAM);
    let is_whole =
        is_compressed && changes.is_empty() && stream.len() < MAX_STREAM && !stream.is_empty();
    for (place, value) in changes {
        if let Some(length) = std::num::NonZero::new(stream.len()) {
            stream[usize::from(place) % length] = value;
        }
    }
    let found = read(&stream, is_zstd);
    if is_whole && content.len() == CLUSTER {
        assert!(found.as_ref() == Some(&content), "the stream of a compressor is not read");
    }
    let expected = if is_zstd { unzstd(&stream) } else { inflate(&stream) };
    match (found, expected) {
        // ruzstd decodes some damaged streams to other bytes than zstd and QEMU do.
        (Some(found), Some(expected)) => assert!(found == expected || is_zstd && !is_whole),
        // The other decoders are laxer than the formats, so QEMU's way has to fail as well.
        (None, Some(_)) => assert!(is_zstd || !is_inflated(&stream), "the stream is not read"),
        (_, None) => {}
    }
});

fn deflate(content: &[u8], level: u8) -> Vec<u8> {
    let mut stream = Vec::new();
    DeflateEncoder::new(content, Compression::new((level % 10).into()))
        .read_to_end(&mut stream)
        .unwrap();
    stream
}

fn zstd(content: &[u8], level: u8) -> Vec<u8> {
    let mut stream = vec![0; 2 * CLUSTER];
    let length = zstd_safe::compress(&mut stream[..], content, i32::from(level % 10)).unwrap();
    stream.truncate(length);
    stream
}

/// Returns the first cluster of a qcow2 image that stores `stream` for it, if that can be read.
fn read(stream: &[u8], is_zstd: bool) -> Option<Vec<u8>> {
    let mut image = vec![0; STREAM];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb\0\0\0\x03");
    put(20, &CLUSTER_BITS.to_be_bytes());
    put(24, &(CLUSTER as u64).to_be_bytes());
    put(36, &1_u32.to_be_bytes());
    put(40, &(CLUSTER as u64).to_be_bytes());
    put(48, &(3 * CLUSTER as u64).to_be_bytes());
    put(56, &1_u32.to_be_bytes());
    put(72, &(u64::from(is_zstd) << 3).to_be_bytes());
    put(96, &4_u32.to_be_bytes());
    put(100, &112_u32.to_be_bytes());
    put(104, &[is_zstd.into()]);
    put(CLUSTER, &(1 << 63 | 2 * CLUSTER as u64).to_be_bytes());
    let sectors = (stream.len().div_ceil(512).max(1) - 1) as u64;
    let entry = 1 << 62 | sectors << (62 - (CLUSTER_BITS - 8)) | STREAM as u64;
    put(2 * CLUSTER, &entry.to_be_bytes());
    put(3 * CLUSTER, &(4 * CLUSTER as u64).to_be_bytes());
    image.extend(stream);
    // Without a byte of the stream, the cluster is past the end of the file.
    let image =
        OpenOptions::new().format(Format::Qcow2).open_storage(Box::new(Memory(image)), "fuzz");
    let image = image.expect("the image is valid but for the cluster");
    let mut content = vec![0xee; CLUSTER];
    let result = image.read_exact_at(&mut content, 0);
    let mut piece = vec![0xdd; 100];
    match (result, image.read_exact_at(&mut piece, 1000)) {
        (Ok(()), Ok(())) => assert!(piece == content[1000..1100]),
        (Err(error), Err(_)) => {
            let message = error.to_string();
            assert!(
                message.starts_with("fuzz: ") && !message.chars().any(char::is_control),
                "{message}"
            );
            return None;
        }
        _ => panic!("whole and in pieces, only one works"),
    }
    Some(content)
}

/// Returns the first cluster of a deflate stream, if it has one.
fn inflate(stream: &[u8]) -> Option<Vec<u8>> {
    use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
    let mut content = vec![0; CLUSTER];
    let flags = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (_, _, written) = decompress(&mut DecompressorOxide::new(), stream, &mut content, 0, flags);
    (written == CLUSTER).then_some(content)
}

/// Says whether zlib writes a cluster, as QEMU calls it. It decodes on until it has to write more, so what follows the
/// cluster may not be damaged, and it wants a code for the end of a block.
fn is_inflated(stream: &[u8]) -> bool {
    let mut zlib = Decompress::new_with_window_bits(false, 12);
    let mut content = vec![0; CLUSTER];
    let status = zlib.decompress(stream, &mut content, FlushDecompress::Finish);
    status.is_ok() && zlib.total_out() == CLUSTER as u64
}

/// Returns the content of one frame of zstd, if that is a cluster.
fn unzstd(stream: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let decoder = ruzstd::decoding::StreamingDecoder::new(stream).ok()?;
    decoder.take(CLUSTER as u64 + 1).read_to_end(&mut content).ok()?;
    (content.len() == CLUSTER).then_some(content)
}

const CLUSTER_BITS: u32 = 12;
const CLUSTER: usize = 1 << CLUSTER_BITS;

/// Offset of the stream, after the header, the tables of the image and the tables of its references.
const STREAM: usize = 5 * CLUSTER;

/// Maximum length of a stream: 16 sectors.
const MAX_STREAM: usize = 8 << 10;
