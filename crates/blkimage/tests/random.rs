//! Random images written by qemu-io. Our guest view must equal QEMU's, byte for byte. `scripts/test-emulated` runs this,
//! where tests/formats/test_qcow2.py cannot run.
//!
//! `BLKIMAGE_CASES` sets the number of images. `BLKIMAGE_SEED` repeats one case.

mod common;

use std::path::Path;

use common::{Random, assert_same_bytes, make_raw, options, our_view, qemu_io, qemu_view, sh};

#[test]
#[ignore = "slow"]
fn random_images() {
    let cases = std::env::var("BLKIMAGE_CASES").map_or(CASES, |n| n.parse().unwrap());
    let seeds: Vec<u64> = match std::env::var("BLKIMAGE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..cases).collect(),
    };
    std::thread::scope(|scope| {
        for part in 0..THREADS {
            let seeds = &seeds;
            scope.spawn(move || {
                for seed in seeds.iter().skip(part).step_by(THREADS) {
                    let folder = tempfile::tempdir().unwrap();
                    let guard = PrintSeed(*seed);
                    run_case(folder.path(), &mut Random(*seed));
                    std::mem::forget(guard);
                }
            });
        }
    });
}

/// Prints the seed of a failed case.
struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        eprintln!("failed: run again with BLKIMAGE_SEED={}", self.0);
    }
}

fn run_case(folder: &Path, random: &mut Random) {
    let mut below = base(folder, random);
    for level in 0..1 + random.below(3) {
        let name = format!("layer{level}.qcow2");
        create(folder, &name, below.as_ref(), random);
        let snapshots = fill(folder, &name, random);
        compare(folder, &name, &snapshots);
        below = Some((name, "qcow2"));
    }
}

/// Creates a raw file, a compressed image of one, or nothing as the bottom of a chain.
fn base(folder: &Path, random: &mut Random) -> Option<(String, &'static str)> {
    if random.one_in(2) {
        return None;
    }
    let size = random.below(3 << 20);
    make_raw(folder, "base.raw", &format!("{size}:R 100k:- 3k:A {size}:B 1:C"));
    if random.one_in(2) {
        return Some(("base.raw".to_owned(), "raw"));
    }
    let cluster = random.choose(&["512", "4k", "64k", "2M"]);
    let method = random.choose(&["zlib", "zstd"]);
    let order = random.choose(&["", "-W"]);
    let options = format!("cluster_size={cluster},compression_type={method}");
    sh(folder, &format!("qemu-img convert -c {order} -O qcow2 -o {options} base.raw base.qcow2"));
    Some(("base.qcow2".to_owned(), "qcow2"))
}

fn create(folder: &Path, name: &str, below: Option<&(String, &str)>, random: &mut Random) {
    let cluster = random.choose(&["512", "1k", "4k", "16k", "64k", "64k", "256k", "1M", "2M"]);
    let mut options = format!("cluster_size={cluster}");
    let is_large = !matches!(cluster, "512" | "1k" | "4k");
    match random.below(5) {
        0 => options += ",compat=0.10",
        1 | 2 if is_large => options += ",extended_l2=on",
        _ => {}
    }
    let is_v2 = options.ends_with("compat=0.10");
    if !is_v2 && random.one_in(2) {
        options += ",compression_type=zstd";
    }
    if below.is_none() && random.one_in(5) {
        options += ",preallocation=";
        options += random.choose(&["metadata", "falloc", "full"]);
    }
    if below.is_none() && !is_v2 && random.one_in(6) {
        options += &format!(",data_file={name}.data,data_file_raw=");
        options += random.choose(&["on", "off"]);
    }
    let backing = below.map_or_else(String::new, |(name, format)| format!("-F {format} -b {name}"));
    let size = (1 + random.below(3 << 20) / 512) * 512;
    sh(folder, &format!("qemu-img create -q -f qcow2 -o {options} {backing} {name} {size}"));
}

/// Writes to the image in a few sessions, with snapshots in between. Returns the names of the snapshots.
fn fill(folder: &Path, name: &str, random: &mut Random) -> Vec<String> {
    let info = sh(folder, &format!("qemu-img info --output=json {name}"));
    let size = number_after(&info, "\"virtual-size\": ");
    let cluster = number_after(&info, "\"cluster-size\": ");
    let has_data_file = info.contains("\"data-file\"");
    let mut snapshots = Vec::new();
    for sitting in 0..1 + random.below(3) {
        let count = 1 + random.below(12);
        // QEMU 7.2 can corrupt its own images, so that it cannot read them either, if one process mixes
        // compressed writes with other writes and discards.
        let is_compressed = !has_data_file && random.one_in(3);
        let make = if is_compressed { compressed_write } else { command };
        let commands: Vec<_> = (0..count).map(|_| make(size, cluster, random)).collect();
        qemu_io(folder, name, &commands);
        if !has_data_file && random.one_in(3) {
            let snapshot = format!("s{sitting}");
            sh(folder, &format!("qemu-img snapshot -c {snapshot} {name}"));
            snapshots.push(snapshot);
        }
    }
    snapshots
}

fn compressed_write(size: u64, cluster: u64, random: &mut Random) -> String {
    let at = random.below(size.div_ceil(cluster)) * cluster;
    format!("write -c -P {} {at} {}", random.below(256), cluster.min(size - at))
}

fn command(size: u64, cluster: u64, random: &mut Random) -> String {
    let pattern = random.below(256);
    let unit = random.choose(&[512, 512, 4096, cluster]);
    let at = random.below(size.div_ceil(unit)) * unit;
    let longest = (size - at).min(1 << 20);
    let length = (1 + random.below(longest.div_ceil(unit))) * unit;
    let length = length.min(size - at);
    match random.below(8) {
        0 | 1 => format!("write -z {at} {length}"),
        2 => format!("write -z -u {at} {length}"),
        3 => format!("discard {at} {length}"),
        _ => format!("write -P {pattern} {at} {length}"),
    }
}

fn compare(folder: &Path, name: &str, snapshots: &[String]) {
    let views = std::iter::once(None).chain(snapshots.iter().map(Some));
    for snapshot in views {
        let options = options().snapshot(snapshot.cloned());
        let ours = our_view(&options.open(folder.join(name)).unwrap());
        let theirs = match snapshot {
            Some(snapshot) => format!("-l snapshot.name={snapshot}"),
            None => String::new(),
        };
        assert_same_bytes(&ours, &qemu_view(folder, name, &theirs), &format!("{name} {theirs}"));
    }
}

fn number_after(text: &str, label: &str) -> u64 {
    let (_, rest) = text.split_once(label).unwrap();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
    rest[..end].parse().unwrap()
}

const CASES: u64 = 20;
const THREADS: usize = 2;
