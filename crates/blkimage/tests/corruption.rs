//! Reads of damaged images return content or an error in bounded time, and never panic.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use blkimage::{Image, Memory, OpenOptions, Source};
use common::{Random, make_raw, qemu_io, sh};

/// Creates images of every kind, small enough to be damaged often.
fn originals(folder: &Path) -> Vec<Vec<u8>> {
    make_raw(folder, "disk.raw", "20k:R 100k:A 70k:- 30k:R 512:B 300k:0 2k:C");
    let mut images = Vec::new();
    for (flags, options) in [
        ("", "compat=0.10,cluster_size=512"),
        ("", "cluster_size=4k"),
        ("-c", "cluster_size=64k"),
        ("-c", "cluster_size=64k,compression_type=zstd"),
        ("", "cluster_size=16k,extended_l2=on"),
        ("-c", "cluster_size=16k,extended_l2=on"),
        ("", "cluster_size=2M"),
    ] {
        sh(folder, &format!("qemu-img convert {flags} -O qcow2 -o {options} disk.raw a.qcow2"));
        sh(folder, "qemu-img snapshot -c first a.qcow2");
        qemu_io(folder, "a.qcow2", &["write -P 5 64k 64k".into(), "write -z 128k 64k".into()]);
        images.push(std::fs::read(folder.join("a.qcow2")).unwrap());
    }
    images
}

/// Opens the image and reads as much as possible. Only the time matters, not the result.
fn read(bytes: &[u8]) -> (u32, u32) {
    let (mut good, mut bad) = (0, 0);
    let mut count = |is_good| if is_good { good += 1 } else { bad += 1 };
    let start = Instant::now();
    for snapshot in [None, Some("first".to_owned())] {
        let options = OpenOptions::new().snapshot(snapshot);
        match options.open_storage(Box::new(Memory(bytes.to_vec())), "damaged") {
            Ok(image) => count(read_all(&image)),
            Err(error) => {
                assert!(!error.to_string().contains('\n'));
                count(false);
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    (good, bad)
}

fn read_all(image: &Image) -> bool {
    let mut buf = vec![0; 100_000];
    let mut offset = 0;
    let mut is_good = true;
    // The size may be damaged too.
    for _ in 0..500 {
        if offset >= image.size() {
            break;
        }
        let length = (image.size() - offset).min(buf.len() as u64);
        is_good &= image.read_exact_at(&mut buf[..length as usize], offset).is_ok();
        match image.extent(offset, u64::MAX) {
            Ok(extent) => {
                assert!(extent.offset == offset && extent.length > 0);
                assert!(extent.end() <= image.size());
                offset = extent.end().min(offset + length);
            }
            Err(_) => {
                is_good = false;
                offset += length;
            }
        }
    }
    is_good
}

#[test]
#[ignore = "slow"]
fn flipped_bits() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    for original in originals(folder.path()) {
        let mut bad = 0;
        for round in 0..300 {
            let mut bytes = original.clone();
            for _ in 0..1 + random.below(8) {
                // The header and tables are in the first clusters.
                let within = random.choose(&[128, 512, 16 << 10, bytes.len() as u64]);
                let at = random.below(within.min(bytes.len() as u64)) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            if round % 3 == 0 {
                let at = random.below(bytes.len() as u64 - 8) as usize;
                bytes[at..at + 8].copy_from_slice(&random.next().to_be_bytes());
            }
            bad += read(&bytes).1;
        }
        assert!(bad > 0);
    }
}

#[test]
fn truncated() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(2);
    for original in originals(folder.path()) {
        let mut bad = 0;
        for _ in 0..100 {
            let mut bytes = original.clone();
            bytes.truncate(random.below(bytes.len() as u64) as usize);
            // The zeros and magic of a cut header may be a valid raw image.
            bad += read(&bytes).1;
        }
        assert!(bad > 0);
    }
}

/// Random tables with a valid header.
#[test]
#[ignore = "slow"]
fn random_tables() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(3);
    for original in originals(folder.path()) {
        let cluster = 1 << u32::from_be_bytes(original[20..24].try_into().unwrap());
        for _ in 0..100 {
            let mut bytes = original.clone();
            let size = bytes.len() as u64;
            for at in (cluster..bytes.len() - 8).step_by(8) {
                if random.one_in(3) {
                    let entry = match random.below(4) {
                        0 => random.below(size),
                        1 => random.below(size) / cluster as u64 * cluster as u64,
                        2 => (random.below(size) / cluster as u64 * cluster as u64) | (1 << 63),
                        _ => random.next(),
                    };
                    bytes[at..at + 8].copy_from_slice(&entry.to_be_bytes());
                }
            }
            read(&bytes);
        }
    }
}
