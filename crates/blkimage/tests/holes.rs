//! Images whose files have holes in allocated clusters. Our guest view must equal QEMU's, and holes must not be
//! read.
//!
//! `BLKIMAGE_CASES` sets the number of random cases, and `BLKIMAGE_SEED` the first seed.

mod common;

use std::fs::OpenOptions as FileOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use blkimage::{ExtentKind, Image, Source};
use common::{
    Random, assert_same, assert_same_bytes, noise, open, options, our_view, qemu_io, qemu_view, sh,
};

const K: u64 = 1 << 10;

#[test]
fn random_images() {
    if common::lacks_qemu() {
        return;
    }
    let number = |name, default| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let first = number("BLKIMAGE_SEED", 0);
    for seed in first..first + number("BLKIMAGE_CASES", CASES) {
        println!("seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        random_case(folder.path(), &mut Random(seed));
    }
}

/// Creates an image of a random format, often with a chain or a snapshot, punches holes into its files, and
/// compares.
fn random_case(folder: &Path, random: &mut Random) {
    let size = (1 + random.below(6000)) * 512;
    let format = random.choose(&FORMATS);
    if format.starts_with("qcow2") {
        qcow2_case(folder, random, size);
        return;
    }
    let (format, extra) = format.split_once(' ').unwrap_or((format, ""));
    sh(folder, &format!("qemu-img create -q -f {format} {extra} disk {size}"));
    let size = open(folder, "disk").size();
    qemu_io(folder, "disk", &writes(random, size, false));
    punch(folder, random, "disk", format);
    check(folder, "disk", format);
}

fn qcow2_case(folder: &Path, random: &mut Random, size: u64) {
    let layers = 1 + random.below(3);
    for layer in 0..layers {
        let name = format!("layer{layer}");
        let cluster = random.choose(&["512", "4k", "64k", "256k", "2M"]);
        let is_large = matches!(cluster, "64k" | "256k" | "2M");
        let mut words = vec![format!("cluster_size={cluster}")];
        if is_large && random.one_in(3) {
            words.push("extended_l2=on".into());
        }
        let has_data_file = random.one_in(3);
        if has_data_file {
            words.push(format!("data_file={name}.data"));
        }
        let backing = match layer {
            0 => {
                let modes: &[&str] = match is_large {
                    true => &["off", "metadata", "falloc", "full"],
                    false => &["off", "metadata"],
                };
                words.push(format!("preallocation={}", random.choose(modes)));
                if has_data_file && random.one_in(2) {
                    words.push("data_file_raw=on".into());
                }
                String::new()
            }
            _ => format!("-F qcow2 -b layer{}", layer - 1),
        };
        let words = words.join(",");
        sh(folder, &format!("qemu-img create -q -f qcow2 -o {words} {backing} {name} {size}"));
        qemu_io(folder, &name, &writes(random, size, true));
        if random.one_in(3) && !has_data_file {
            sh(folder, &format!("qemu-img snapshot -c before {name}"));
            qemu_io(folder, &name, &writes(random, size, true));
        }
        punch(folder, random, &name, "qcow2");
        if has_data_file {
            scribble(&folder.join(format!("{name}.data")), random, size);
        }
    }
    check(folder, &format!("layer{}", layers - 1), "qcow2");
    for layer in 0..layers {
        let name = format!("layer{layer}");
        if sh(folder, &format!("qemu-img snapshot -l {name}")).contains("before") {
            let image = options().snapshot(Some("before".into())).open(folder.join(&name)).unwrap();
            let theirs = qemu_view(folder, &name, "-l before");
            assert_same_bytes(&our_view(&image), &theirs, &format!("{name}, snapshot"));
        }
    }
}

/// Returns random writes of data and zeros, and discards where a format has them.
fn writes(random: &mut Random, size: u64, discards: bool) -> Vec<String> {
    let mut write = || {
        let offset = random.below(size / 512) * 512;
        let limit = random.choose(&[4 * K, 64 * K, 1024 * K]) / 512;
        let length = ((1 + random.below(limit)) * 512).min(size - offset);
        match random.below(if discards { 6 } else { 4 }) {
            0 => format!("write -P 0 {offset} {length}"),
            4 => format!("write -z {offset} {length}"),
            5 => format!("discard {offset} {length}"),
            _ => format!("write -P {} {offset} {length}", 1 + offset / 512 % 255),
        }
    };
    (0..12).map(|_| write()).collect()
}

/// Punches holes into the data of an image, and nowhere else.
fn punch(folder: &Path, random: &mut Random, image: &str, format: &str) {
    for (file, offset, length) in stored(folder, image, format) {
        if random.one_in(3) {
            continue;
        }
        for _ in 0..1 + random.below(3) {
            let start = random.below(length);
            let count = 1 + random.below(length - start);
            let unit = random.choose(&[1, 512, 4 * K]);
            let [start, end] = [start, start + count].map(|at| (offset + at) / unit * unit);
            let start = start.max(offset);
            if end > start {
                sh(folder, &format!("fallocate -p -o {start} -l {} {file}", end - start));
            }
        }
    }
}

/// Returns where an image stores data, without its backing files: the file, the offset and the length.
fn stored(folder: &Path, image: &str, format: &str) -> Vec<(String, u64, u64)> {
    if format == "vhdx" {
        // QEMU does not tell. Only data has a page of one byte.
        let bytes = std::fs::read(folder.join(image)).unwrap();
        let pages = bytes.chunks(4 * K as usize).zip(0..);
        let is_data = |page: &[u8]| page[0] != 0 && page.iter().all(|byte| *byte == page[0]);
        let data = pages.filter(|(page, _)| is_data(page));
        return data.map(|(page, i)| (image.to_owned(), i * 4 * K, page.len() as u64)).collect();
    }
    let map = sh(folder, &format!("qemu-img map -f {format} {image}"));
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0);
    let lines = map.lines().skip(1).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, length, offset, file] = words[..] else { panic!("{map}") };
        (file.to_owned(), number(offset), number(length))
    });
    lines.filter(|(file, ..)| file.starts_with(image)).collect()
}

/// Writes data into a data file where the image may say that there is none.
fn scribble(path: &Path, random: &mut Random, size: u64) {
    let file = FileOptions::new().write(true).open(path).unwrap();
    for _ in 0..random.below(4) {
        let offset = random.below(size);
        let length = (1 + random.below(100 * K)).min(size - offset);
        file.write_all_at(&noise(length as usize, offset), offset).unwrap();
    }
}

fn check(folder: &Path, name: &str, format: &str) {
    let image = open(folder, name);
    let theirs = qemu_view(folder, name, &format!("-f {format}"));
    assert_same_bytes(&our_view(&image), &theirs, name);
    // Bytes that are not stored are not read.
    let files = std::fs::read_dir(folder).unwrap();
    let stored: u64 = files.map(|file| file.unwrap().metadata().unwrap().blocks() * 512).sum();
    let data = data_length(&image);
    assert!(data <= stored, "{name}: {data} bytes to read of {stored}");
}

fn data_length(image: &Image) -> u64 {
    let (mut offset, mut data) = (0, 0);
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        data += if extent.kind == ExtentKind::Data { extent.length } else { 0 };
        offset = extent.end();
    }
    data
}

#[test]
fn preallocated_images_of_any_size_are_not_read() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let prefix = "qemu-img create -q -f qcow2 -o";
    let raw = "data_file_raw=on,cluster_size=2M";
    sh(path, &format!("{prefix} preallocation=metadata,cluster_size=2M metadata 64G"));
    sh(path, &format!("{prefix} data_file=data,{raw} raw 64G"));
    sh(path, &format!("{prefix} cluster_size=64k -F qcow2 -b raw top"));
    for name in ["metadata", "raw", "top"] {
        let image = open(path, name);
        // QEMU writes the first page of a data file.
        assert!(data_length(&image) <= 4 * K, "{name}");
        // Tables of 256 KiB, and headers.
        assert!(image.bytes_read() < 1 << 20, "{name}: {}", image.bytes_read());
    }
}

#[test]
fn data_behind_zeros_and_zeros_behind_data() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let options = "data_file=data,data_file_raw=on,cluster_size=64k";
    sh(path, &format!("qemu-img create -q -f qcow2 -o {options} disk 1m"));
    qemu_io(path, "disk", &["write -P 7 0 512k".into(), "write -z 64k 64k".into()]);
    // The image says that this cluster is zero, and the file has data.
    let file = FileOptions::new().write(true).open(path.join("data")).unwrap();
    file.write_all_at(&[9; 4096], 64 * K + 512).unwrap();
    // The image says that these clusters are data: zeros that are stored, and a hole.
    file.write_all_at(&[0; 4096], 128 * K).unwrap();
    sh(path, "fallocate -p -o 200000 -l 100000 data");
    assert_same(path, "disk");
}

/// Formats of single files, and qcow2 as often as all others together.
const FORMATS: [&str; 19] = [
    "vmdk",
    "vmdk -o zeroed_grain=on",
    "vmdk -o subformat=monolithicFlat",
    "vmdk -o subformat=twoGbMaxExtentSparse",
    "vhdx",
    "vhdx -o subformat=fixed",
    "vdi",
    "vdi -o static=on",
    "qed",
    "qcow",
    "vpc -o force_size=on",
    "parallels",
    "qcow2",
    "qcow2",
    "qcow2",
    "qcow2",
    "qcow2",
    "qcow2",
    "qcow2",
];

/// Number of random cases in the suite.
const CASES: u64 = 8;
