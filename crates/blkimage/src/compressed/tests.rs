use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proptest::prelude::*;

use super::*;
use crate::probe::Format;
use crate::storage::Memory;
use crate::{Image, Source};

/// Returns the file of a compressor: a member, stream or frame for each part.
fn compress(compression: Compression, parts: &[&[u8]]) -> Vec<u8> {
    if compression == Compression::Lzop {
        return lzop_member(&parts.concat());
    }
    let mut file = Vec::new();
    for part in parts {
        match compression {
            Compression::Lzop => unreachable!("has one member"),
            Compression::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
                encoder.write_all(part).unwrap();
                encoder.finish().unwrap();
            }
            Compression::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(&mut file, 0);
                encoder.write_all(part).unwrap();
                encoder.finish().unwrap();
            }
            Compression::Zstd => {
                let mut frame = vec![0; zstd_safe::compress_bound(part.len())];
                let length = zstd_safe::compress(&mut frame[..], part, 1).unwrap();
                file.extend(&frame[..length]);
            }
            Compression::Bzip2 => {
                let mut encoder =
                    ::bzip2::write::BzEncoder::new(&mut file, ::bzip2::Compression::fast());
                encoder.write_all(part).unwrap();
                encoder.finish().unwrap();
            }
            Compression::Lz4 => file.extend(lz4_frame(part)),
        }
    }
    file
}

/// Returns a frame that states its size, with blocks of 4 MiB that are stored as they are.
fn lz4_frame(content: &[u8]) -> Vec<u8> {
    let mut frame = 0x184d_2204_u32.to_le_bytes().to_vec();
    let mut descriptor = vec![0x6c, 0x70];
    descriptor.extend((content.len() as u64).to_le_bytes());
    descriptor.push((xxhash_rust::xxh32::xxh32(&descriptor, 0) >> 8) as u8);
    frame.extend(descriptor);
    for block in content.chunks(4 << 20) {
        frame.extend((block.len() as u32 | 1 << 31).to_le_bytes());
        frame.extend(block);
    }
    frame.extend([0; 4]);
    frame.extend(xxhash_rust::xxh32::xxh32(content, 0).to_le_bytes());
    frame
}

/// Returns a member with blocks of 256 KiB, which are stored as they are, with CRC-32.
fn lzop_member(content: &[u8]) -> Vec<u8> {
    let mut header = vec![0x10, 0x40, 0x20, 0xa0, 0x09, 0x40, 1, 5, 0, 0, 0x11, 0];
    header.extend([0; 12]);
    header.extend(b"\x04name");
    let mut member = b"\x89LZO\0\r\n\x1a\n".to_vec();
    member.extend(&header);
    member.extend(libdeflater::crc32(&header).to_be_bytes());
    for block in content.chunks(256 << 10) {
        let length = (block.len() as u32).to_be_bytes();
        member.extend([length, length, libdeflater::crc32(block).to_be_bytes()].concat());
        member.extend(block);
    }
    member.extend([0; 4]);
    member
}

fn options(compression: Compression) -> OpenOptions {
    OpenOptions::new().format(Format::Raw).compression(compression)
}

fn open(compression: Compression, file: Vec<u8>) -> Result<Image> {
    options(compression).open_storage(Box::new(Memory(file)), "disk")
}

/// Returns bytes that compress a little.
fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (*state >> 33) as u8 % 20
    };
    (0..length).map(|_| next(&mut state)).collect()
}

#[test]
fn contents_are_read_in_order() {
    for &compression in Compression::ALL {
        let content = content(3_000_000, 1);
        let file = compress(compression, &[&content[..1_100_000], &[], &content[1_100_000..]]);
        let image = open(compression, file).unwrap();
        assert_eq!(image.size(), content.len() as u64, "{compression}");
        let mut found = vec![0; content.len()];
        image.read_exact_at(&mut found, 0).unwrap();
        image.check_unchanged().unwrap();
        assert!(found == content, "{compression}");
    }
}

/// Threads that take the next piece, as in a pass, and hold up each other.
#[test]
fn threads_share_the_work() {
    for &compression in Compression::ALL {
        let content = content(9_000_000, 2);
        let parts: Vec<_> = content.chunks(1_300_000).collect();
        let image = open(compression, compress(compression, &parts)).unwrap();
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..5 {
                let (image, next, content) = (&image, &next, &content);
                scope.spawn(move || {
                    loop {
                        let at = next.fetch_add(100_001, Relaxed);
                        let length = image.size().saturating_sub(at).min(100_001) as usize;
                        if length == 0 {
                            break;
                        }
                        if (at + thread).is_multiple_of(7) {
                            std::thread::sleep(std::time::Duration::from_millis(3));
                        }
                        let mut found = vec![0; length];
                        image.read_exact_at(&mut found, at).unwrap();
                        assert!(found == content[at as usize..][..length], "{compression} at {at}");
                    }
                });
            }
        });
        image.check_unchanged().unwrap();
    }
}

/// A frame that states a size, with two bytes and an empty last block.
fn zstd_frame(stated: u8) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, stated];
    for block in [&[0x10, 0, 0, b'a', b'b'][..], &[1, 0, 0]] {
        frame.extend(block);
    }
    frame
}

/// libzstd finds this out only where it gets and returns a frame at once.
#[test]
fn the_stated_size_of_zstd() {
    for (stated, is_right) in [(2, true), (3, false), (1, false), (93, false)] {
        let file = [zstd_frame(2), zstd_frame(stated), zstd_frame(2)].concat();
        for room in [1, 2, 3, 7, 1000] {
            let options = options(Compression::Zstd);
            let stream = Decompressed::new(Compression::Zstd, &file[..], &options, "disk".as_ref());
            let (mut stream, mut found) = (stream.unwrap(), Vec::new());
            let mut buffer = vec![0; room];
            let result = loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break Ok(()),
                    Ok(count) => found.extend_from_slice(&buffer[..count]),
                    Err(error) => break Err(error),
                }
            };
            assert_eq!(result.is_ok(), is_right, "{stated} {room} {result:?}");
            assert!(!is_right || found == b"ababab");
        }
        let image = open(Compression::Zstd, file);
        let read = image.and_then(|image| {
            let mut content = vec![0; image.size() as usize];
            image.read_exact_at(&mut content, 0)?;
            image.check_unchanged()
        });
        assert_eq!(read.is_ok(), is_right, "{stated}: {read:?}");
    }
}

#[test]
fn a_large_part_is_not_decoded_again() {
    let content = vec![0; 70 << 20];
    let image = open(Compression::Zstd, compress(Compression::Zstd, &[&content])).unwrap();
    let mut byte = [1];
    image.read_exact_at(&mut byte, (70 << 20) - 1).unwrap();
    let error = (0..70).find_map(|at| image.read_exact_at(&mut [1; 1 << 20], at << 20).err());
    assert!(error.is_none(), "what was not read is kept: {error:?}");
    let error = image.read_exact_at(&mut byte, 30 << 20).unwrap_err();
    assert!(error.reason().starts_with("is zstd in one piece"), "{error}");
    // Another pass.
    let mut again = vec![1; 70 << 20];
    image.read_exact_at(&mut again, 0).unwrap();
    assert!(again == content);
    let ends = (0..100).find_map(|_| {
        image.read_exact_at(&mut byte, 0).ok()?;
        image.read_exact_at(&mut again, 0).err()
    });
    assert!(ends.is_some(), "passes are limited");
}

/// An image may leave out some of its file, and the tool would find damage there.
#[test]
fn parts_that_were_not_read_are_verified() {
    for &compression in Compression::ALL {
        let content = content(4_000_000, 3);
        let parts: Vec<_> = content.chunks(1_100_000).collect();
        let file = compress(compression, &parts);
        for seed in 0..4 {
            let mut damaged = file.clone();
            // Not in the header of a member, which has bytes that no checksum covers.
            let at = 1000 + seed * (file.len() - 2000) / 3;
            damaged[at] ^= 0x55;
            let mut found = Vec::new();
            let stream = Decompressed::new(
                compression,
                &damaged[..],
                &options(compression),
                Path::new("disk"),
            );
            let is_bad = stream.and_then(|mut it| it.read_to_end(&mut found)).is_err();
            let Ok(image) = open(compression, damaged) else { continue };
            // A read elsewhere, which may succeed.
            let _ = image.read_exact_at(&mut [0; 10], if seed < 2 { 3_900_000 } else { 5 });
            // Several threads that end a pass have one verdict.
            let verdicts: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..3).map(|_| scope.spawn(|| image.check_unchanged().is_err())).collect();
                threads.into_iter().map(|it| it.join().unwrap()).collect()
            });
            assert_eq!(verdicts, [is_bad; 3], "{compression} at {at}");
        }
        let image = open(compression, file).unwrap();
        image.check_unchanged().unwrap();
        let mut found = vec![0; content.len()];
        image.read_exact_at(&mut found, 0).unwrap();
        assert!(found == content);
    }
}

/// A unit that is decoded twice has the same last bytes.
#[test]
fn a_footer_is_found_after_other_reads() {
    let mut disk = vec![0; 66 << 20];
    let footer = disk.len() - 512;
    disk[footer..footer + 8].copy_from_slice(b"conectix");
    let (large, small) = disk.split_at(disk.len() - 300);
    let file = compress(Compression::Zstd, &[large, small]);
    let options = OpenOptions::new().compression(Compression::Zstd);
    let image = options.open_storage(Box::new(Memory(file)), "disk").unwrap();
    let mut byte = [0];
    for at in [disk.len() - 1, 0, disk.len() - 200] {
        image.read_exact_at(&mut byte, at as u64).unwrap();
    }
    let mut found = vec![0; disk.len() - 300];
    image.read_exact_at(&mut found, 0).unwrap();
    image.read_exact_at(&mut byte, disk.len() as u64 - 100).unwrap();
    let error = image.check_unchanged().unwrap_err();
    assert!(error.reason().contains("vpc+zstd"), "{error}");
}

#[test]
fn memory_is_limited() {
    let content = vec![0; 70 << 20];
    let file = compress(Compression::Zstd, &[&content]);
    let options = options(Compression::Zstd).max_memory(8 << 20);
    let image = options.open_storage(Box::new(Memory(file)), "disk").unwrap();
    let mut byte = [1];
    image.read_exact_at(&mut byte, (70 << 20) - 1).unwrap();
    assert!(image.read_exact_at(&mut byte, 30 << 20).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_order(
        which in 0..5_usize,
        cuts in prop::collection::vec(0..400_000_usize, 0..6),
        reads in prop::collection::vec((0..500_000_usize, 0..90_000_usize), 0..20),
        is_all: bool,
        change in prop::option::of((any::<prop::sample::Index>(), 1..=u8::MAX)),
    ) {
        let compression = Compression::ALL[which];
        let content = content(500_000, cuts.len() as u64);
        let mut ends = cuts;
        ends.sort_unstable();
        ends.push(content.len());
        let mut start = 0;
        let parts: Vec<&[u8]> = ends.iter().map(|&end| &content[std::mem::replace(&mut start, end)..end]).collect();
        let mut file = compress(compression, &parts);
        let is_changed = change.is_some();
        if let Some((place, by)) = change {
            let at = place.index(file.len());
            file[at] ^= by;
        }
        let streamed = {
            let mut found = Vec::new();
            let stream = Decompressed::new(compression, &file[..], &options(compression), Path::new("disk"));
            stream.and_then(|mut it| it.read_to_end(&mut found)).map(|_| found)
        };
        let image = match open(compression, file) {
            Ok(image) => image,
            Err(error) => {
                prop_assert!(is_changed && streamed.is_err(), "{error}, {streamed:?}");
                return Ok(());
            }
        };
        let mut is_good = true;
        // What is not read is verified as well.
        let all = is_all.then_some((0, 500_000));
        for (at, length) in reads.into_iter().chain(all) {
            let length = length.min((image.size() as usize).saturating_sub(at));
            let mut found = vec![0; length];
            let read = image.read_exact_at(&mut found, at as u64);
            is_good &= read.is_ok();
            if let (Ok(()), Ok(streamed)) = (read, &streamed) {
                prop_assert!(found == streamed[at..at + length]);
            }
        }
        is_good &= image.check_unchanged().is_ok();
        prop_assert_eq!(is_good, streamed.is_ok(), "{:?}", streamed.err());
        if let Ok(streamed) = streamed {
            prop_assert!(streamed == content || is_changed);
        }
    }
}
