//! Names in headers, and limits of tables.

use std::sync::Arc;

use super::*;
use crate::error::Result;
use crate::formats::named::Named;
use crate::storage::Memory;

/// A file that is built field by field.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(size: usize) -> Self {
        Self(vec![0; size])
    }

    fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn le32(self, at: usize, number: u32) -> Self {
        self.put(at, &number.to_le_bytes())
    }

    fn le64(self, at: usize, number: u64) -> Self {
        self.put(at, &number.to_le_bytes())
    }

    fn be32(self, at: usize, number: u32) -> Self {
        self.put(at, &number.to_be_bytes())
    }

    fn be64(self, at: usize, number: u64) -> Self {
        self.put(at, &number.to_be_bytes())
    }

    fn examine(self, format: Format) -> Result<Named> {
        examine(&HostFile::new("x".into(), Box::new(Memory(self.0)), Arc::default()), format)
    }

    #[track_caller]
    fn refused(self, format: Format, says: &str) {
        let error = self.examine(format).err().unwrap();
        assert!(error.reason().contains(says), "{error}");
    }
}

const CUT_OFF: &str = "past the end of the file";

/// Clusters of 4 KiB, tables of one cluster, 64 KiB of content: L1 at 4096, L2 at 8192, data at 12288.
fn qed() -> Bytes {
    Bytes::new(16384)
        .put(0, b"QED\0")
        .le32(4, 4096)
        .le32(8, 1)
        .le32(12, 1)
        .le64(40, 4096)
        .le64(48, 65536)
        .le64(4096, 8192)
        .le64(8192, 12288)
        .le64(8200, 1)
}

fn qcow1() -> Bytes {
    Bytes::new(16384)
        .put(0, b"QFI\xfb\0\0\0\x01")
        .be64(24, 65536)
        .put(32, &[12, 9])
        .be64(40, 4096)
        .be64(4096, 8192)
        .be64(8192, 12288)
}

fn vdi() -> Bytes {
    Bytes::new(8192)
        .put(64, b"\x7f\x10\xda\xbe")
        .le32(0x4c, 1)
        .le32(0x154, 1024)
        .le32(0x158, 2048)
        .le64(0x170, 4096 + 512)
        .le32(0x178, 4096)
        .le32(0x180, 2)
        .le32(1024, 0)
        .le32(1028, 1)
}

fn parallels() -> Bytes {
    Bytes::new(8192)
        .put(0, b"WithouFreSpacExt")
        .le32(28, 8)
        .le32(32, 2)
        .le64(36, 9)
        .le32(64, 0)
        .le32(68, 1)
}

/// 16 sectors in grains of 8. The directory is in sector 4, without tables.
fn vmdk() -> Bytes {
    Bytes::new(8192)
        .put(0, b"KDMV")
        .le32(4, 1)
        .le64(12, 16)
        .le64(20, 8)
        .le64(28, 1)
        .le32(44, 512)
        .le64(56, 4)
}

#[test]
fn qed_names_its_backing_file() {
    assert!(qed().examine(Format::Qed).unwrap().backing.is_none());
    let named = |features| {
        let image = qed().le64(16, features).put(1000, b"base").le32(56, 1000).le32(60, 4);
        image.examine(Format::Qed).unwrap().backing.unwrap()
    };
    assert_eq!((named(1).name, named(1).format), (b"base".to_vec(), None));
    assert_eq!(named(5).format, Some(Format::Raw));
    let image = || qed().le64(16, 1).le32(56, 1000);
    image().le32(60, 1024).refused(Format::Qed, "longer than 1023 bytes");
    image().le32(56, 16380).le32(60, 5).refused(Format::Qed, CUT_OFF);
}

#[test]
fn qed_cluster_past_the_end() {
    qed().le64(8192, 12289).refused(Format::Qed, CUT_OFF);
    qed().le64(8192, u64::MAX).refused(Format::Qed, CUT_OFF);
    qed().le64(4096, 16384).refused(Format::Qed, CUT_OFF);
    qed().le64(40, 16384).refused(Format::Qed, CUT_OFF);
    qed().le32(4, 4097).refused(Format::Qed, "impossible sizes");
}

#[test]
fn overlapping_tables_are_refused() {
    let image = (0..512).fold(qed(), |image, index| image.le64(4096 + index * 8, 8192));
    image.refused(Format::Qed, "tables that overlap");
}

#[test]
fn qcow1_names_its_backing_file() {
    assert!(qcow1().examine(Format::Qcow1).unwrap().backing.is_none());
    let image = qcow1().be64(8, 48).be32(16, 4).put(48, b"base");
    let backing = image.examine(Format::Qcow1).unwrap().backing.unwrap();
    assert_eq!((backing.name, backing.format), (b"base".to_vec(), None));
    qcow1().be32(36, 1).refused(Format::Qcow1, "encrypted");
    qcow1().put(32, &[8]).refused(Format::Qcow1, "impossible sizes");
}

#[test]
fn qcow1_cluster_past_the_end() {
    qcow1().be64(8192, 12289).refused(Format::Qcow1, CUT_OFF);
    // For a compressed cluster, the size is in the bits above the offset.
    let compressed = |offset: u64| qcow1().be64(8192, 1 << 63 | 100 << 51 | offset);
    assert!(compressed(16284).examine(Format::Qcow1).is_ok());
    compressed(16285).refused(Format::Qcow1, CUT_OFF);
}

#[test]
fn vdi_block_past_the_end() {
    assert!(vdi().examine(Format::Vdi).is_ok());
    assert!(vdi().le32(1028, 0xffff_ffff).examine(Format::Vdi).is_ok());
    vdi().le32(1028, 2).refused(Format::Vdi, CUT_OFF);
    vdi().le32(0x180, 0x4000_0000).refused(Format::Vdi, CUT_OFF);
    vdi().le32(0x4c, 4).refused(Format::Vdi, "difference to another disk");
}

#[test]
fn parallels_cluster_past_the_end() {
    assert!(parallels().examine(Format::Parallels).is_ok());
    parallels().le32(68, 2).refused(Format::Parallels, CUT_OFF);
    parallels().put(0, b"x").refused(Format::Parallels, "is not a parallels image");
}

#[test]
fn parallels_larger_than_its_table() {
    assert!(parallels().le64(36, 16).examine(Format::Parallels).is_ok());
    for size in [17, 1 << 52, u64::MAX] {
        parallels().le64(36, size).refused(Format::Parallels, "larger than its table");
    }
}

#[test]
fn vpc_disk_types() {
    let footer = |kind| Bytes::new(1024).put(512, b"conectix").be32(512 + 60, kind);
    assert!(footer(2).examine(Format::Vpc).is_ok());
    footer(4).refused(Format::Vpc, "difference to another disk");
    footer(5).refused(Format::Vpc, "unknown disk type 5");
    Bytes::new(1024).refused(Format::Vpc, "is not a vpc image");
    Bytes::new(1024).put(513, b"conectix").refused(Format::Vpc, "before 2004");
    Bytes::new(100).refused(Format::Vpc, "is not a vpc image");
}

#[test]
fn images_that_end_within_a_sector() {
    for format in [Format::Vhdx, Format::Luks] {
        assert!(Bytes::new(1024).examine(format).is_ok());
        Bytes::new(1023).refused(format, "within a sector");
    }
}

#[test]
fn vmdk_grain_past_the_end() {
    let image = |table, grain| vmdk().le32(2048, table).le32(2560, grain);
    assert!(image(5, 8).examine(Format::Vmdk).is_ok());
    assert!(image(5, 1).examine(Format::Vmdk).is_ok());
    image(5, 9).refused(Format::Vmdk, CUT_OFF);
    image(16, 8).refused(Format::Vmdk, CUT_OFF);
    image(5, 8).le64(56, 1 << 40).refused(Format::Vmdk, CUT_OFF);
    image(5, 8).le64(56, u64::MAX).refused(Format::Vmdk, "lacks its end");
    image(5, 8).le64(20, 0).refused(Format::Vmdk, "impossible sizes");
    image(5, 8).le64(12, 0).refused(Format::Vmdk, "names others");
}

#[test]
fn vmdk_with_a_parent_inside() {
    let image = |text: &[u8]| vmdk().put(512, text);
    let parent = |text: &[u8]| image(text).examine(Format::Vmdk).unwrap().backing;
    assert!(parent(b"# Disk DescriptorFile\n").is_none());
    assert!(parent(b"\0parentFileNameHint=\"base\"").is_none());
    let backing = parent(b"version=1\nparentFileNameHint=\"base.vmdk\"\n").unwrap();
    assert_eq!((backing.name, backing.format), (b"base.vmdk".to_vec(), Some(Format::Vmdk)));
    image(b"parentFileNameHint=base").refused(Format::Vmdk, "without quotes");
    let elsewhere = image(b"").le64(28, 6).put(6 * 512, b"parentFileNameHint=\"base\"");
    elsewhere.refused(Format::Vmdk, "unusual place");
}

#[test]
fn bochs_offset_past_2_to_the_64() {
    // With extents of 4 GiB and bitmaps of 512 bytes, the product wraps to just before
    // the end of the catalog.
    let (catalog, entry) = (262_652, u32::MAX - 511);
    let image = |entry| {
        Bytes::new(514 * 512)
            .put(0, b"Bochs Virtual HD Image")
            .le32(68, catalog)
            .le32(72, 1)
            .le32(76, 512)
            .le32(80, u32::MAX)
            .le32(catalog as usize, entry)
    };
    image(entry).refused(Format::Bochs, CUT_OFF);
    image(u32::MAX - 1).refused(Format::Bochs, CUT_OFF);
    image(u32::MAX).examine(Format::Bochs).unwrap();
}
