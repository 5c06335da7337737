//! Equal places of two images mean equal bytes, and images that share a file name the same places.
//!
//! `BLKIMAGE_CASES` sets the number of random cases, and `BLKIMAGE_SEED` the first seed.

mod common;

use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blkimage::{Holes, Image, OpenOptions, Origin, OriginKind, Source};
use common::{Random, make_raw, open, qemu_io, sh};

const CLUSTER: u64 = 64 << 10;

/// Returns all origins, asked for with `limit`. Fails unless they cover the image without gaps.
fn origins(image: &Image, limit: u64) -> Vec<Origin> {
    let mut origins = Vec::new();
    let mut offset = 0;
    while offset < image.size() {
        let origin = image.origin(offset, limit).unwrap();
        assert_eq!(origin.offset, offset);
        assert!(origin.length > 0 && origin.length <= limit && origin.end() <= image.size());
        offset = origin.end();
        origins.push(origin);
    }
    origins
}

fn content(image: &Image) -> Vec<u8> {
    let mut content = vec![0xee; image.size() as usize];
    image.read_exact_at(&mut content, 0).unwrap();
    content
}

/// Number of bytes that both images have at the same places. Fails unless these bytes are equal.
fn shared(left: &Image, right: &Image, limits: [u64; 2]) -> u64 {
    let (one, other) = (content(left), content(right));
    let (left, right) = (origins(left, limits[0]), origins(right, limits[1]));
    for (origins, bytes) in [(&left, &one), (&right, &other)] {
        for it in origins.iter().filter(|it| it.kind == OriginKind::Zero) {
            let bytes = &bytes[it.offset as usize..it.end() as usize];
            assert!(bytes.iter().all(|byte| *byte == 0), "{it:?} is not zero");
        }
    }
    let mut shared = 0;
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let (start, end) = (a.offset.max(b.offset), a.end().min(b.end()));
        let kinds = [a.kind.advanced(start - a.offset), b.kind.advanced(start - b.offset)];
        if matches!(kinds[0], OriginKind::Stored(_)) && kinds[0] == kinds[1] {
            let range = start as usize..end as usize;
            assert!(one[range.clone()] == other[range.clone()], "{range:?} differ: {kinds:?}");
            shared += end - start;
        }
        if a.end() == end {
            left.next();
        }
        if right.peek().is_some_and(|b| b.end() == end) {
            right.next();
        }
    }
    shared
}

#[test]
fn overlays_share_what_neither_holds() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make_raw(folder, "disk.raw", "1m:R 1m:- 1m:R");
    for (name, options) in [("raw", ""), ("qcow2", "-O qcow2"), ("packed", "-c -O qcow2")] {
        sh(folder, &format!("qemu-img convert {options} disk.raw base.{name}"));
        let format = if name == "raw" { "raw" } else { "qcow2" };
        for overlay in ["a", "b"] {
            sh(
                folder,
                &format!("qemu-img create -q -f qcow2 -F {format} -b base.{name} {overlay}"),
            );
        }
        qemu_io(folder, "a", &["write -P 1 0 64k".into()]);
        qemu_io(folder, "b", &["write -P 2 64k 64k".into()]);
        let [a, b, base] = ["a", "b", &format!("base.{name}")].map(|name| open(folder, name));
        for limits in [[u64::MAX, u64::MAX], [70_000, 3001]] {
            assert_eq!(shared(&a, &b, limits), (2 << 20) - 2 * CLUSTER, "{name}");
            assert_eq!(shared(&a, &base, limits), (2 << 20) - CLUSTER, "{name}");
            assert_eq!(shared(&a, &open(folder, "a"), limits), 2 << 20, "{name}");
        }
        let origin = a.origin(1 << 20, u64::MAX).unwrap();
        assert_eq!((origin.kind, origin.length), (OriginKind::Zero, 1 << 20), "{name}");
    }
}

#[test]
fn snapshots_share_with_their_image() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sh(folder, "qemu-img create -q -f qcow2 disk 1m");
    qemu_io(folder, "disk", &["write -P 1 0 512k".into()]);
    sh(folder, "qemu-img snapshot -c s disk");
    qemu_io(folder, "disk", &["write -P 2 64k 64k".into(), "write -P 2 768k 64k".into()]);
    let snapshot = OpenOptions::new().snapshot(Some("s".into())).open(folder.join("disk")).unwrap();
    assert_eq!(shared(&open(folder, "disk"), &snapshot, [u64::MAX; 2]), 7 * CLUSTER);
}

#[test]
fn other_files_and_bytes_to_verify_are_not_shared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = make_raw(folder, "disk.raw", "1m:R 1m:A");
    let image = open(folder, "disk.raw");
    assert_eq!(shared(&image, &open(folder, "disk.raw"), [u64::MAX; 2]), 2 << 20);
    std::fs::copy(&path, folder.join("copy.raw")).unwrap();
    assert_eq!(shared(&image, &open(folder, "copy.raw"), [u64::MAX; 2]), 0);
    let verified = OpenOptions::new().holes(Holes::Verify).open(&path).unwrap();
    assert_eq!(shared(&image, &verified, [u64::MAX; 2]), 0);
    // A link is the same file.
    std::fs::hard_link(&path, folder.join("link.raw")).unwrap();
    let [one, other] = ["disk.raw", "link.raw"].map(|name| open(folder, name));
    assert_eq!(shared(&one, &other, [u64::MAX; 2]), 2 << 20);
    // The same file in another state is not the same content.
    FileOptions::new().write(true).open(&path).unwrap().write_all_at(b"new", 0).unwrap();
    let changed = open(folder, "disk.raw");
    assert_ne!(one.origin(0, 1).unwrap().kind, changed.origin(0, 1).unwrap().kind);
    assert!(one.check_unchanged().is_err());
}

/// Reading these bytes fails, so they must not count as equal without being read.
#[test]
fn bytes_past_the_end_of_the_file_have_no_place() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sh(folder, "qemu-img create -q -f qcow2 disk 1m");
    qemu_io(folder, "disk", &["write -P 1 0 512k".into()]);
    let file = FileOptions::new().write(true).open(folder.join("disk")).unwrap();
    file.set_len(file.metadata().unwrap().len() - CLUSTER).unwrap();
    let image = open(folder, "disk");
    assert!(image.read_exact_at(&mut [0], 512 * 1024 - 1).is_err());
    assert_eq!(image.origin(512 * 1024 - 1, 1).unwrap().kind, OriginKind::Other);
}

#[test]
#[ignore = "slow"]
fn equal_places_of_random_chains_have_equal_bytes() {
    let number = |name, default| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let first = number("BLKIMAGE_SEED", 0);
    let mut total = 0;
    for seed in first..first + number("BLKIMAGE_CASES", CASES) {
        println!("seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        total += random_case(folder.path(), &mut Random(seed));
    }
    assert!(total > 0, "nothing was shared");
}

/// Makes a tree of overlays and compares all pairs. Returns the number of bytes that pairs share.
fn random_case(folder: &Path, random: &mut Random) -> u64 {
    let (one, other) = (random.below(1 << 20), random.below(1 << 20));
    make_raw(folder, "0", &format!("{one}:R 100k:- 3k:A {other}:B 70k:0 1:C"));
    let mut images = vec![("0".to_owned(), "raw")];
    if random.one_in(2) {
        let cluster = random.choose(&["512", "4k", "64k", "2M"]);
        let compress = random.choose(&["", "-c"]);
        sh(
            folder,
            &format!("qemu-img convert {compress} -O qcow2 -o cluster_size={cluster} 0 base"),
        );
        images[0] = ("base".to_owned(), "qcow2");
    }
    for number in 1..=2 + random.below(3) {
        let (backing, format) = images[random.below(images.len() as u64) as usize].clone();
        let cluster = random.choose(&["512", "4k", "64k", "256k"]);
        let is_large = matches!(cluster, "64k" | "256k");
        let extra = if is_large && random.one_in(2) { ",extended_l2=on" } else { "" };
        let size = (1 + random.below(3 << 20) / 512) * 512;
        sh(
            folder,
            &format!(
                "qemu-img create -q -f qcow2 -o cluster_size={cluster}{extra} -F {format} \
                 -b {backing} {number} {size}"
            ),
        );
        let commands: Vec<_> = (0..random.below(8))
            .map(|_| {
                let at = random.below(size / 512) * 512;
                let length = (1 + random.below((size - at).min(400_000) / 512 + 1)) * 512;
                let length = length.min(size - at);
                match random.below(4) {
                    0 => format!("write -z {at} {length}"),
                    1 => format!("discard {at} {length}"),
                    _ => format!("write -P {} {at} {length}", random.below(3)),
                }
            })
            .collect();
        if !commands.is_empty() {
            qemu_io(folder, &number.to_string(), &commands);
        }
        images.push((number.to_string(), "qcow2"));
    }
    let opened: Vec<_> = images.iter().map(|(name, _)| open(folder, name)).collect();
    let mut total = 0;
    for (index, left) in opened.iter().enumerate() {
        for right in &opened[index + 1..] {
            total += shared(left, right, [u64::MAX, 1 + random.below(200_000)]);
        }
    }
    total
}

const CASES: u64 = 40;
