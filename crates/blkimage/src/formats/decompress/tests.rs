//! Streams that fill a cluster, and streams that do not.

use super::*;
use crate::formats::qcow2::builder::Builder;
use crate::{ErrorKind, Source};

const CLUSTER: usize = 64 << 10;

fn content() -> Vec<u8> {
    (0..CLUSTER as u32).map(|i| (i / 7 * i % 251) as u8).collect()
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
    let mut stream = vec![0; compressor.deflate_compress_bound(content.len())];
    let length = compressor.deflate_compress(content, &mut stream).unwrap();
    stream.truncate(length);
    stream
}

fn zstd(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![0; zstd_safe::compress_bound(content.len())];
    let length = zstd_safe::compress(&mut stream[..], content, 1).unwrap();
    stream.truncate(length);
    stream
}

fn decompress(compression: Compression, stream: &[u8]) -> Result<Vec<u8>, Damaged> {
    let mut codecs = Codecs::default();
    // Twice, because decoder states are reused after errors.
    let mut out = vec![0; CLUSTER];
    let first = codecs.decompress(compression, stream, &mut out, CLUSTER);
    assert_eq!(codecs.decompress(compression, stream, &mut out, CLUSTER), first);
    first.map(|()| out)
}

#[test]
fn whole_streams() {
    let (deflated, zstd) = (deflate(&content()), zstd(&content()));
    assert!(decompress(Compression::Deflate, &deflated) == Ok(content()));
    assert!(decompress(Compression::Zstd, &zstd) == Ok(content()));
}

#[test]
fn trailing_bytes_are_padding() {
    for tail in [&[0; 511][..], &[0xff; 511]] {
        let stream = [&deflate(&content()), tail].concat();
        assert!(decompress(Compression::Deflate, &stream) == Ok(content()));
        let stream = [&zstd(&content()), tail].concat();
        assert!(decompress(Compression::Zstd, &stream) == Ok(content()));
    }
}

#[test]
fn short_streams_are_damaged() {
    let short = &content()[..CLUSTER - 1];
    for tail in [&[][..], &[0; 100]] {
        let stream = [&deflate(short), tail].concat();
        assert_eq!(decompress(Compression::Deflate, &stream), Err(Damaged));
        let stream = [&zstd(short), tail].concat();
        assert_eq!(decompress(Compression::Zstd, &stream), Err(Damaged));
    }
    assert_eq!(decompress(Compression::Deflate, &[]), Err(Damaged));
    assert_eq!(decompress(Compression::Zstd, &[]), Err(Damaged));
}

#[test]
fn truncated_streams_are_damaged() {
    let (deflated, zstd) = (deflate(&content()), zstd(&content()));
    let cut = &deflated[..deflated.len() / 2];
    assert_eq!(decompress(Compression::Deflate, cut), Err(Damaged));
    assert_eq!(decompress(Compression::Zstd, &zstd[..zstd.len() / 2]), Err(Damaged));
}

#[test]
fn deflate_stream_longer_than_the_cluster() {
    let longer = [content(), vec![9; 100_000]].concat();
    assert!(decompress(Compression::Deflate, &deflate(&longer)) == Ok(content()));
}

#[test]
fn zstd_frame_longer_than_the_cluster() {
    let longer = [content(), vec![9; 100_000]].concat();
    assert_eq!(decompress(Compression::Zstd, &zstd(&longer)), Err(Damaged));
}

#[test]
fn zstd_in_several_frames() {
    let content = content();
    let (head, tail) = content.split_at(1000);
    let stream = [zstd(head), zstd(&[]), zstd(tail), vec![1, 2, 3]].concat();
    assert!(decompress(Compression::Zstd, &stream).as_ref() == Ok(&content));
}

#[test]
fn zstd_with_a_window_of_128_mib() {
    // Magic, no content size, a window descriptor of 2^27, and one run-length block of
    // the size of a cluster.
    let block = (CLUSTER as u32) << 3 | 1 << 1 | 1;
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (27 - 10) << 3];
    stream.extend(&block.to_le_bytes()[..3]);
    stream.push(b'w');
    assert!(decompress(Compression::Zstd, &stream) == Ok(vec![b'w'; CLUSTER]));
}

#[test]
fn bombs_make_no_more_than_a_cluster() {
    let bomb = vec![0; 64 << 20];
    assert!(decompress(Compression::Deflate, &deflate(&bomb)) == Ok(vec![0; CLUSTER]));
    assert_eq!(decompress(Compression::Zstd, &zstd(&bomb)), Err(Damaged));
}

#[test]
fn noise_is_damaged() {
    let noise: Vec<u8> =
        (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_eq!(decompress(Compression::Deflate, &noise), Err(Damaged));
    assert_eq!(decompress(Compression::Zstd, &noise), Err(Damaged));
}

#[test]
fn clusters_are_read_in_pieces_and_whole() {
    let mut builder = Builder::new(16, 3 << 16);
    builder.map_compressed(0, &deflate(&content()));
    builder.map_compressed(1 << 16, &deflate(&[5; CLUSTER]));
    let image = builder.open().unwrap();
    let mut all = vec![1; 3 * CLUSTER];
    image.read_exact_at(&mut all, 0).unwrap();
    assert!(all == [content(), vec![5; CLUSTER], vec![0; CLUSTER]].concat());
    let before = image.bytes_read();
    for offset in (0..2 * CLUSTER).step_by(1000) {
        let mut piece = [0; 1000];
        image.read_exact_at(&mut piece, offset as u64).unwrap();
        assert!(piece == all[offset..offset + 1000]);
    }
    let compressed = image.bytes_read() - before;
    assert!(compressed < 3 * CLUSTER as u64, "decompressed more than once: {compressed}");
}

#[test]
fn the_last_cluster_may_reach_past_the_virtual_size() {
    let mut builder = Builder::new(16, 1000 * 512);
    let stream = deflate(&content());
    builder.map_compressed(7 << 16, &stream);
    let image = builder.open().unwrap();
    let mut tail = vec![0; (1000 * 512) - (7 << 16)];
    image.read_exact_at(&mut tail, 7 << 16).unwrap();
    assert!(tail == content()[..tail.len()]);
}

#[test]
fn a_file_may_end_within_the_last_sector_of_a_stream() {
    let mut builder = Builder::new(16, 1 << 16);
    builder.map(0, 0);
    let stream = deflate(&content());
    builder.map_compressed(0, &stream);
    let used = builder.bytes.len() - CLUSTER + stream.len() % CLUSTER;
    builder.bytes.truncate(used);
    let mut all = vec![0; CLUSTER];
    builder.open().unwrap().read_exact_at(&mut all, 0).unwrap();
    assert!(all == content());
    builder.bytes.truncate(used - 1);
    let error = builder.open().unwrap().read_exact_at(&mut all, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    builder.bytes.truncate(used - stream.len());
    let error = builder.open().unwrap().read_exact_at(&mut all, 0).unwrap_err();
    assert!(error.reason().contains("past the end"), "{error}");
}

#[test]
fn an_error_in_one_cluster_leaves_the_next_readable() {
    let mut builder = Builder::new(16, 2 << 16);
    builder.map_compressed(0, &[0xff; 512]);
    builder.map_compressed(1 << 16, &deflate(&[5; CLUSTER]));
    let image = builder.open().unwrap();
    for _ in 0..2 {
        assert!(image.read_exact_at(&mut [0; 10], 0).is_err());
        let mut piece = [0; 10];
        image.read_exact_at(&mut piece, 1 << 16).unwrap();
        assert_eq!(piece, [5; 10]);
    }
}
