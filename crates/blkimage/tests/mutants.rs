//! Valid images with one field changed. No image that QEMU refuses to open is read.
//!
//! Each field of the header, its extensions, the snapshot table and the bitmap directory is set to
//! boundary values and has single bits flipped. If `CI` is set in the environment, all of these are
//! tested, and otherwise a sample. QEMU's verdict comes from `qemu-io`, which opens an image as a guest
//! does. `qemu-img info` skips data files.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{options, qemu_io, sh};

/// The offset and size of a field in bytes. All fields are big endian.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    offset: usize,
    width: usize,
}

const fn field(name: &'static str, offset: usize, width: usize) -> Field {
    Field { name, offset, width }
}

const HEADER: [Field; 18] = [
    field("version", 4, 4),
    field("backing_file_offset", 8, 8),
    field("backing_file_size", 16, 4),
    field("cluster_bits", 20, 4),
    field("size", 24, 8),
    field("crypt_method", 32, 4),
    field("l1_size", 36, 4),
    field("l1_table_offset", 40, 8),
    field("refcount_table_offset", 48, 8),
    field("refcount_table_clusters", 56, 4),
    field("nb_snapshots", 60, 4),
    field("snapshots_offset", 64, 8),
    field("incompatible_features", 72, 8),
    field("compatible_features", 80, 8),
    field("autoclear_features", 88, 8),
    field("refcount_order", 96, 4),
    field("header_length", 100, 4),
    field("compression_type", 104, 1),
];

const SNAPSHOT: [Field; 9] = [
    field("snapshot l1_table_offset", 0, 8),
    field("snapshot l1_size", 8, 4),
    field("snapshot id_size", 12, 2),
    field("snapshot name_size", 14, 2),
    field("snapshot vm_state_size", 32, 4),
    field("snapshot extra_data_size", 36, 4),
    field("snapshot extra vm_state_size", 40, 8),
    field("snapshot extra disk_size", 48, 8),
    field("snapshot extra icount", 56, 8),
];

const BITMAPS: [Field; 4] = [
    field("bitmaps nb_bitmaps", 8, 4),
    field("bitmaps reserved", 12, 4),
    field("bitmaps directory_size", 16, 8),
    field("bitmaps directory_offset", 24, 8),
];

const BITMAP: [Field; 7] = [
    field("bitmap table_offset", 0, 8),
    field("bitmap table_size", 8, 4),
    field("bitmap flags", 12, 4),
    field("bitmap type", 16, 1),
    field("bitmap granularity_bits", 17, 1),
    field("bitmap name_size", 18, 2),
    field("bitmap extra_data_size", 20, 4),
];

fn get(bytes: &[u8], offset: usize, width: usize) -> u64 {
    bytes[offset..offset + width].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn put(bytes: &mut [u8], Field { offset, width, .. }: Field, value: u64) {
    bytes[offset..offset + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
}

/// Returns the fields of a valid image.
fn fields(bytes: &[u8]) -> Vec<Field> {
    let is_v2 = get(bytes, 4, 4) == 2;
    let header_length = if is_v2 { 72 } else { get(bytes, 100, 4) as usize };
    let mut fields: Vec<_> =
        HEADER.into_iter().filter(|field| field.offset < header_length).collect();
    let at = |field: Field, base: usize| Field { offset: base + field.offset, ..field };
    let mut extension = header_length;
    loop {
        let (kind, length) = (get(bytes, extension, 4), get(bytes, extension + 4, 4) as usize);
        fields.push(field("extension type", extension, 4));
        fields.push(field("extension length", extension + 4, 4));
        if kind == 0 {
            break;
        }
        if kind == 0x2385_2875 {
            fields.extend(BITMAPS.map(|field| at(field, extension)));
            let mut entry = get(bytes, extension + 24, 8) as usize;
            for _ in 0..get(bytes, extension + 8, 4) {
                fields.extend(BITMAP.map(|field| at(field, entry)));
                let table = get(bytes, entry, 8) as usize;
                fields.push(field("bitmap table entry", table, 8));
                let length = 24 + get(bytes, entry + 18, 2) + get(bytes, entry + 20, 4);
                entry += length.next_multiple_of(8) as usize;
            }
        }
        extension += 8 + length.next_multiple_of(8);
    }
    let mut entry = get(bytes, 64, 8) as usize;
    for _ in 0..get(bytes, 60, 4) {
        fields.extend(SNAPSHOT.map(|field| at(field, entry)));
        let length =
            40 + get(bytes, entry + 36, 4) + get(bytes, entry + 12, 2) + get(bytes, entry + 14, 2);
        entry += length.next_multiple_of(8) as usize;
    }
    fields
}

/// Returns values at which a rule may begin or end, and the old value with every single bit flipped.
fn values(bytes: &[u8], field: Field) -> Vec<u64> {
    let old = get(bytes, field.offset, field.width);
    let max = u64::MAX >> (64 - 8 * field.width);
    let mut values = vec![
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        15,
        16,
        17,
        21,
        22,
        23,
        24,
        25,
        31,
        32,
        63,
        64,
        65,
        104,
        112,
        120,
        255,
        256,
        511,
        512,
        1023,
        1024,
        1025,
        4096,
        65_535,
        65_536,
        65_537,
        131_072,
        1 << 20,
        (1 << 22) - 1,
        1 << 22,
        (1 << 22) + 1,
        1 << 29,
        1 << 31,
        1 << 32,
        i64::MAX as u64 & !0xffff,
        i64::MAX as u64,
        max,
        max - 1,
        max & !0xffff,
        old / 2,
        old.wrapping_mul(2),
        old.wrapping_add(1),
        old.wrapping_sub(1),
        old.wrapping_add(8),
        old.wrapping_add(512),
        bytes.len() as u64,
        (bytes.len() as u64).next_multiple_of(65_536),
    ];
    values.extend((0..8 * field.width).map(|bit| old ^ 1 << bit));
    values.retain(|value| *value <= max && *value != old);
    values.sort_unstable();
    values.dedup();
    values
}

fn qemu_opens(path: &Path) -> bool {
    let status = Command::new("qemu-io")
        .current_dir(path.parent().unwrap())
        .args(["-r", "-f", "qcow2", "-c", "length", path.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("qemu-io (Debian: qemu-utils)").success()
}

/// Returns whether this error is a known reason to refuse an image that QEMU opens.
fn stricter(error: &str) -> bool {
    STRICTER.iter().any(|(reason, _)| error.contains(reason))
}

/// Errors for images that QEMU opens, and the reasons for refusing them.
const STRICTER: [(&str, &str); 9] = [
    ("past the end of the file", "QEMU reads zeros where a copy was cut off"),
    ("contains a NUL byte", "QEMU takes what is before it for the name"),
    ("format is not recorded", "it is never guessed"),
    ("is not known", "the specification knows no such format of a backing file"),
    ("header length", "the specification wants a multiple of 8"),
    ("header extension is too long", "no path and no table of features is that long"),
    ("tables take more than 32 MiB", "bitmaps that overlap keep QEMU busy"),
    ("virtual size of 0 bytes, and stores content", "the size makes all content disappear"),
    ("cannot be opened", "the data file that it names is another one"),
];

fn compare(folder: &Path, image: &str, share: usize) {
    let bytes = fs::read(folder.join(image)).unwrap();
    assert!(qemu_opens(&folder.join(image)) && options().open(folder.join(image)).is_ok());
    let mut mutants = Vec::new();
    for field in fields(&bytes) {
        mutants.extend(values(&bytes, field).into_iter().map(|value| (field, value)));
    }
    let share = if std::env::var_os("CI").is_some() { 1 } else { share };
    let mutants: Vec<_> = mutants.into_iter().step_by(share).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut bytes = bytes.clone();
        let mut wrong = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(field, value)) = mutants.get(index) else { return wrong };
            let old = get(&bytes, field.offset, field.width);
            put(&mut bytes, field, value);
            let path = folder.join(format!("{index}.qcow2"));
            fs::write(&path, &bytes).unwrap();
            let ours = options().open(&path).err().map(|error| error.to_string());
            let what = format!("{image}: {} {old:#x} -> {value:#x}", field.name);
            match (qemu_opens(&path), ours) {
                (false, None) => wrong.push(format!("QEMU refuses {what}")),
                (true, Some(error)) if !stricter(&error) => {
                    wrong.push(format!("QEMU opens {what}: {error}"));
                }
                _ => {}
            }
            fs::remove_file(path).unwrap();
            put(&mut bytes, field, old);
        }
    };
    let threads = 1 + thread::available_parallelism().map_or(1, usize::from);
    let wrong: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), mutants.len(), wrong.join("\n"));
}

#[test]
#[ignore = "slow"]
fn snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sh(folder, "qemu-img create -q -f qcow2 a.qcow2 1M");
    qemu_io(folder, "a.qcow2", &["write -P 7 0 100k".into()]);
    sh(folder, "qemu-img snapshot -c one a.qcow2");
    sh(folder, "qemu-img snapshot -c two a.qcow2");
    compare(folder, "a.qcow2", 5);
}

#[test]
fn version_2_with_a_backing_file() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sh(folder, "qemu-img create -q -f raw base.raw 1M");
    sh(folder, "qemu-img create -q -f qcow2 -o compat=0.10 -b base.raw -F raw a.qcow2 1M");
    qemu_io(folder, "a.qcow2", &["write -P 7 0 100k".into()]);
    compare(folder, "a.qcow2", 3);
}

#[test]
#[ignore = "slow"]
fn small_clusters() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sh(folder, "qemu-img create -q -f qcow2 -o cluster_size=512,refcount_bits=1 a.qcow2 100k");
    qemu_io(folder, "a.qcow2", &["write -P 7 0 50k".into()]);
    compare(folder, "a.qcow2", 3);
}

#[test]
fn bitmaps() {
    if common::lacks_qemu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sh(folder, "qemu-img create -q -f qcow2 a.qcow2 1M");
    for name in ["one", "second"] {
        sh(folder, &format!("qemu-img bitmap --add a.qcow2 {name}"));
    }
    qemu_io(folder, "a.qcow2", &["write -P 7 0 100k".into()]);
    compare(folder, "a.qcow2", 7);
}

#[test]
#[ignore = "slow"]
fn data_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for raw in ["on", "off"] {
        let options = format!("data_file=a.data,data_file_raw={raw}");
        sh(folder, &format!("qemu-img create -q -f qcow2 -o {options} a.qcow2 1M"));
        qemu_io(folder, "a.qcow2", &["write -P 7 0 100k".into()]);
        compare(folder, "a.qcow2", 3);
    }
}

#[test]
#[ignore = "slow"]
fn extended_entries_and_zstd() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let options = "extended_l2=on,compression_type=zstd,cluster_size=16k,lazy_refcounts=on";
    sh(folder, &format!("qemu-img create -q -f qcow2 -o {options} a.qcow2 1M"));
    qemu_io(folder, "a.qcow2", &["write -P 7 0 100k".into()]);
    compare(folder, "a.qcow2", 3);
}
