use crate::error::ErrorKind;
use crate::formats::builder::Bytes;
use crate::probe::Format;
use crate::{ExtentKind, Source};

const CLUSTER: usize = 4096;

/// Three clusters and a sector. Cluster 1 is empty, 0 is stored second, 2 third, and the last one first.
fn parallels() -> Bytes {
    Bytes::new(4 * CLUSTER)
        .put(0, b"WithouFreSpacExt")
        .le32(16, 2)
        .le32(28, 8)
        .le32(32, 4)
        .le64(36, 25)
        .le32(48, 8)
        .le32(64, 2)
        .le32(72, 3)
        .le32(76, 1)
        .fill(CLUSTER, CLUSTER, b'd')
        .fill(2 * CLUSTER, CLUSTER, b'a')
        .fill(3 * CLUSTER, CLUSTER, b'c')
}

fn expected() -> Vec<u8> {
    [vec![b'a'; CLUSTER], vec![0; CLUSTER], vec![b'c'; CLUSTER], vec![b'd'; 512]].concat()
}

/// The older variant, whose entries count sectors.
fn in_sectors() -> Bytes {
    parallels().put(0, b"WithoutFreeSpace").le32(64, 16).le32(72, 24).le32(76, 8)
}

/// With a cluster of extensions.
fn extended(features: &[(u64, u64, u32)]) -> Bytes {
    let mut image = parallels().le64(56, 32);
    image.0.resize(5 * CLUSTER, 0);
    let mut at = 4 * CLUSTER + 24;
    let mut image = image.le64(4 * CLUSTER, 0xab23_4cef_23dc_ea87);
    for (magic, flags, length) in features {
        image = image.le64(at, *magic).le64(at + 8, *flags).le32(at + 16, *length);
        at += 24 + (*length as usize).next_multiple_of(8);
    }
    image
}

const BITMAP: u64 = 0x2038_5fae_252c_b34a;

#[test]
fn content() {
    assert!(parallels().content(Format::Parallels).unwrap() == expected());
    assert!(in_sectors().content(Format::Parallels).unwrap() == expected());
    // The upper half of the size is not used.
    assert!(in_sectors().le32(40, 1).content(Format::Parallels).unwrap() == expected());
    let error = parallels().le64(36, 0).open(Format::Parallels).err().unwrap();
    assert!(error.reason().contains("a virtual size of 0 bytes, and stores content"), "{error}");
}

#[test]
fn contiguous_clusters_form_one_extent() {
    let image = parallels().le32(64, 1).le32(68, 2).le32(72, 3).le32(76, 0);
    let image = image.open(Format::Parallels).unwrap();
    let extent = image.extent(0, u64::MAX).unwrap();
    assert_eq!((extent.kind, extent.length), (ExtentKind::Data, 3 * CLUSTER as u64));
}

#[test]
fn an_image_that_was_not_closed_gets_a_warning() {
    let image = parallels().le32(44, 0x746f_6e59).open(Format::Parallels).unwrap();
    assert!(image.warnings()[0].reason.contains("was not closed"));
    assert!(parallels().open(Format::Parallels).unwrap().warnings().is_empty());
}

#[test]
fn headers_that_are_refused() {
    for (at, value, kind, says) in [
        (16, 3, ErrorKind::Unsupported, "version 3"),
        (28, 0, ErrorKind::Corrupt, "clusters of 0 sectors"),
        (28, 4_186_130, ErrorKind::Corrupt, "clusters of 4186130 sectors"),
        (32, 1 << 29, ErrorKind::Corrupt, "entries"),
        (32, 3, ErrorKind::Corrupt, "larger than its table"),
        (40, 1, ErrorKind::Corrupt, "larger than its table"),
        (52, 2, ErrorKind::Unsupported, "being converted"),
        (52, 4, ErrorKind::Unsupported, "flags 0x4"),
        (0, 0, ErrorKind::Format, "is not a parallels image"),
    ] {
        parallels().le32(at, value).refused(Format::Parallels, kind, says);
    }
    parallels().cut(63).refused(Format::Parallels, ErrorKind::Format, "is not a parallels image");
}

#[test]
fn an_empty_image_has_no_clusters() {
    let image = parallels().le32(52, 1);
    image.clone().refused(Format::Parallels, ErrorKind::Corrupt, "marked as empty");
    let empty = image.le32(64, 0).le32(72, 0).le32(76, 0);
    assert!(empty.content(Format::Parallels).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn what_lies_past_the_end() {
    let cut_off =
        |image: Bytes| image.refused(Format::Parallels, ErrorKind::Corrupt, "past the end");
    cut_off(parallels().cut(79));
    cut_off(parallels().cut(4 * CLUSTER - 1));
    cut_off(parallels().le32(64, 4));
    cut_off(parallels().le32(64, u32::MAX));
    cut_off(in_sectors().le32(64, u32::MAX));
    cut_off(in_sectors().le32(64, 25));
    cut_off(parallels().le64(56, u64::MAX));
    cut_off(parallels().le64(56, 32));
}

#[test]
fn extensions() {
    let bitmaps = [(BITMAP, 0, 9), (BITMAP, 0, 40), (0, 0, 0)];
    assert!(extended(&bitmaps).content(Format::Parallels).unwrap() == expected());
    let refused = |features: &[(u64, u64, u32)], kind, says: &str| {
        extended(features).refused(Format::Parallels, kind, says);
    };
    refused(&[(1, 0, 0)], ErrorKind::Unsupported, "extension 0x1");
    refused(&[(BITMAP, 1, 0), (0, 0, 0)], ErrorKind::Unsupported, "with flags 0x1");
    refused(&[(BITMAP, 0, 4096 - 47)], ErrorKind::Corrupt, "larger than its cluster");
    refused(&[(BITMAP, 0, 4096 - 48)], ErrorKind::Corrupt, "have no end");
    refused(&[(BITMAP, 0, 0); 65], ErrorKind::Unsupported, "more than 64");
    let other = extended(&[(0, 0, 0)]).le64(4 * CLUSTER, 0);
    other.refused(Format::Parallels, ErrorKind::Corrupt, "magic");
}
