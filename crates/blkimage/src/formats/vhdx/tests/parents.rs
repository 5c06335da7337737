//! Differencing images: sector bitmaps, parent locators and chains.

use std::fs;
use std::path::Path;

use super::*;

const LINKAGE: (&str, &str) = ("parent_linkage", DATA_WRITE);
const RELATIVE: (&str, &str) = ("relative_path", r".\parent.vhdx");

/// Returns the bytes of the child, with a parent in the same folder, or the error.
fn read_child(child: &Builder, parent: &Builder) -> crate::Result<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("parent.vhdx"), parent.sealed()).unwrap();
    fs::write(folder.path().join("child.vhdx"), child.sealed()).unwrap();
    let image = OpenOptions::default().open(folder.path().join("child.vhdx"))?;
    let mut bytes = vec![0xee; image.virtual_size() as usize];
    image.read_exact_at(&mut bytes, 0)?;
    let mut extents = 0;
    while extents < image.virtual_size() {
        extents += image.extent(extents, u64::MAX)?.length;
    }
    Ok(bytes)
}

fn parent() -> Builder {
    let mut parent = image();
    for (index, byte) in [0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7].into_iter().enumerate() {
        let block = parent.block(byte);
        parent.map(index as u64, block | PRESENT);
    }
    parent
}

fn child() -> Builder {
    let mut child = image();
    child.locator(&[LINKAGE, RELATIVE]);
    child
}

#[test]
fn states_of_a_differencing_image() {
    let mut builder = child();
    let block = builder.block(0xcc);
    let mut bitmap = vec![0; MIB as usize];
    // Block 7: its first sector, its last one, and some between.
    let first = 7 * 2048 / 8;
    bitmap[first] = 0b1000_0001;
    bitmap[first + 1] = 0b11;
    bitmap[first + 255] = 0x80;
    let bitmap = builder.append(&bitmap);
    for (block_index, state) in [1, 2, 3, 5].into_iter().enumerate() {
        builder.map(block_index as u64 + 1, state);
    }
    builder.map(5, block | PRESENT);
    builder.map(7, block | PARTIAL);
    builder.map(4096, bitmap | 6);
    let bytes = read_child(&builder, &parent()).unwrap();
    let mut expected =
        [0xa0, 0, 0, 0, 0, 0xcc, 0xa6, 0xa7].map(|byte| vec![byte; MIB as usize]).concat();
    for sector in [0, 7, 8, 9, 2047] {
        expected[7 * MIB as usize + sector * 512..][..512].fill(0xcc);
    }
    assert!(bytes == expected);
}

#[test]
fn bitmap_of_large_sectors() {
    let mut builder = Builder::with(8 * MIB, MIB as u32, 4096);
    builder.locator(&[LINKAGE, RELATIVE]);
    let block = builder.block(0xcc);
    let mut bitmap = vec![0; MIB as usize];
    bitmap[256 / 8] = 0b10;
    let bitmap = builder.append(&bitmap);
    builder.map(1, block | PARTIAL);
    // A chunk has 32768 blocks.
    builder.map(32768, bitmap | 6);
    let bytes = read_child(&builder, &parent()).unwrap();
    let mut expected = (0xa0..0xa8).flat_map(|byte| vec![byte; MIB as usize]).collect::<Vec<_>>();
    expected[MIB as usize + 4096..][..4096].fill(0xcc);
    assert!(bytes == expected);
}

#[test]
fn bitmaps_that_are_missing_or_misplaced() {
    for (entry, says) in [
        (0, "has no sector bitmap"),
        (5 * MIB, "has no sector bitmap"),
        ((5 * MIB) | 7, "has no sector bitmap"),
        (METADATA | 6, "sector bitmap overlaps"),
        (6, "sector bitmap overlaps"),
        ((100 * MIB) | 6, "sector bitmap lies past"),
        (!7 | 6, "sector bitmap lies past"),
    ] {
        let mut builder = child();
        let block = builder.block(0xcc);
        builder.map(1, block | PARTIAL);
        let at = builder.map(4096, entry);
        let error = read_child(&builder, &parent()).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(at)), "{error}");
        assert!(error.reason().contains(says), "{error}");
    }
}

#[test]
fn parents_of_other_sizes() {
    let mut builder = Builder::new(10 * MIB);
    builder.locator(&[LINKAGE, RELATIVE]);
    let bytes = read_child(&builder, &parent()).unwrap();
    assert!(bytes[7 * MIB as usize] == 0xa7 && bytes[8 * MIB as usize..].iter().all(|it| *it == 0));
    let mut builder = Builder::new(2 * MIB);
    builder.locator(&[LINKAGE, RELATIVE]);
    assert_eq!(read_child(&builder, &parent()).unwrap().len(), 2 * MIB as usize);
}

#[track_caller]
fn refused_child(entries: &[(&str, &str)], kind: ErrorKind, says: &str) {
    let mut builder = image();
    builder.locator(entries);
    let error = read_child(&builder, &parent()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn parent_is_identified() {
    let other = "{00000000-0000-0000-0000-000000000001}";
    for linkages in [
        vec![LINKAGE],
        vec![("parent_linkage", other), ("parent_linkage2", DATA_WRITE)],
        vec![("parent_linkage2", DATA_WRITE)],
        vec![("unknown", "x"), ("parent_linkage", &DATA_WRITE[1..37])],
    ] {
        let mut builder = image();
        builder.locator(&[linkages, vec![RELATIVE]].concat());
        assert_eq!(read_child(&builder, &parent()).unwrap()[0], 0xa0);
    }
    let reference = ErrorKind::Reference;
    refused_child(&[("parent_linkage", other), RELATIVE], reference, "is not the parent of");
    refused_child(&[RELATIVE], ErrorKind::Corrupt, "does not identify");
    refused_child(&[("parent_linkage", "x"), RELATIVE], ErrorKind::Corrupt, "than a GUID");
    refused_child(&[LINKAGE, LINKAGE, RELATIVE], ErrorKind::Corrupt, "two entries");
}

#[test]
fn names_of_parents() {
    let found = |entries: &[(&str, &str)]| {
        let mut builder = image();
        builder.locator(&[&[LINKAGE], entries].concat());
        read_child(&builder, &parent())
    };
    let drive = ("absolute_win32_path", r"C:\disks\parent.vhdx");
    for entries in [
        &[RELATIVE][..],
        &[("relative_path", "parent.vhdx")],
        &[drive, RELATIVE],
        &[("absolute_win32_path", "parent.vhdx")],
        &[("relative_path", r"C:\x"), ("volume_path", "./parent.vhdx")],
    ] {
        assert_eq!(found(entries).unwrap()[0], 0xa0);
    }
    let reference = ErrorKind::Reference;
    for (name, says) in [
        (r"C:\disks\parent.vhdx", "not a path of this system"),
        (r"\\?\Volume{x}\parent.vhdx", "not a path of this system"),
        (r"\\server\share\parent.vhdx", "not a path of this system"),
        (r"..\parent.vhdx", "leads out of the image's own folder"),
        ("/etc/passwd", "leads out of the image's own folder"),
        ("json:{}", "never followed"),
        ("nbd://host/x", "never followed"),
        ("child.vhdx", "its own backing chain"),
        ("missing.vhdx", "cannot open"),
        ("a\0b", "NUL"),
    ] {
        refused_child(&[LINKAGE, ("relative_path", name)], reference, says);
    }
    refused_child(&[LINKAGE], ErrorKind::Corrupt, "does not name");
}

#[test]
fn parent_of_another_format() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("parent.vhdx"), [0; 4096]).unwrap();
    fs::write(folder.path().join("child.vhdx"), child().sealed()).unwrap();
    let error = OpenOptions::default().open(folder.path().join("child.vhdx")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    assert_eq!(error.name(), Path::new(&folder.path().join("parent.vhdx")));
}

#[test]
fn locators_that_are_damaged() {
    for (at, value, says) in [
        (16, 4 << 16, "too short"),
        (20, 10_000, "outside of it"),
        (20, u32::MAX, "outside of it"),
        (24, u32::MAX - 5, "outside of it"),
        (28, 0x4c_0000, "invalid length"),
        (28, 0x4c_0003, "invalid length"),
    ] {
        let mut builder = child();
        // Make room, so that only the changed field is wrong.
        builder.put32(METADATA + 6 * 32 + 20, if at == 16 { 60 } else { 8192 });
        builder.put32(LOCATOR + at, value);
        corrupt(&builder, says);
    }
    let mut builder = child();
    builder.put(LOCATOR, &[0]);
    refused(&builder, ErrorKind::Unsupported, "unknown type");
    let mut builder = child();
    builder.put32(METADATA + 6 * 32 + 20, 19);
    corrupt(&builder, "too short");
    let mut builder = child();
    let key = builder.get(LOCATOR + 20);
    builder.put(LOCATOR + u64::from(key), &[0, 0xd8]);
    corrupt(&builder, "not UTF-16");
}
