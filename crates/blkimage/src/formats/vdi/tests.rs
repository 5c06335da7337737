use super::DISCARDED;
use crate::error::ErrorKind;
use crate::formats::builder::Bytes;
use crate::probe::Format;
use crate::{ExtentKind, OpenOptions, Source};

const MIB: usize = 1 << 20;
const MAP: usize = 512;
const DATA: usize = 1024;

/// Three blocks and a sector of content: block 1 is stored second, block 2 first, and the last one third.
fn vdi() -> Bytes {
    header(4, 3 * MIB as u64 + 512, DATA + 2 * MIB + 512)
        .le32(MAP, 0xffff_ffff)
        .le32(MAP + 4, 1)
        .le32(MAP + 8, 0)
        .le32(MAP + 12, 2)
        .fill(DATA, MIB, b'c')
        .fill(DATA + MIB, MIB, b'b')
        .fill(DATA + 2 * MIB, 512, b'd')
}

fn header(blocks: u32, size: u64, length: usize) -> Bytes {
    Bytes::new(length)
        .put(64, b"\x7f\x10\xda\xbe")
        .le32(0x44, 0x0001_0001)
        .le32(0x4c, 1)
        .le32(0x154, MAP as u32)
        .le32(0x158, DATA as u32)
        .le32(0x168, 512)
        .le64(0x170, size)
        .le32(0x178, MIB as u32)
        .le32(0x180, blocks)
}

#[test]
fn content() {
    let content = vdi().content(Format::Vdi).unwrap();
    let expected = [vec![0; MIB], vec![b'b'; MIB], vec![b'c'; MIB], vec![b'd'; 512]].concat();
    assert!(content == expected);
    assert!(vdi().le32(MAP, DISCARDED as u32).content(Format::Vdi).unwrap() == expected);
    // Two entries of one block.
    let twice = vdi().le32(MAP, 1).content(Format::Vdi).unwrap();
    assert!(twice[..MIB] == expected[MIB..2 * MIB] && twice[MIB..] == expected[MIB..]);
}

#[test]
fn contiguous_blocks_form_one_extent() {
    let image = vdi().le32(MAP, 1).le32(MAP + 4, 2).le32(MAP + 8, 0xffff_ffff).le32(MAP + 12, 0);
    let image = image.open(Format::Vdi).unwrap();
    let extent = |offset| {
        let extent = image.extent(offset, u64::MAX).unwrap();
        (extent.kind, extent.length)
    };
    let mib = MIB as u64;
    assert_eq!(extent(0), (ExtentKind::Data, 2 * mib));
    assert_eq!(extent(2 * mib), (ExtentKind::Zero, mib));
    assert_eq!(extent(3 * mib), (ExtentKind::Data, 512));
}

#[test]
fn a_size_within_a_sector_is_rounded_up() {
    assert_eq!(vdi().le64(0x170, 100).content(Format::Vdi).unwrap(), [0; 512]);
    let error = vdi().le64(0x170, 0).open(Format::Vdi).err().unwrap();
    assert!(error.reason().contains("a virtual size of 0 bytes, and stores content"), "{error}");
}

#[test]
fn empty_ranges_cost_one_lookup_a_window() {
    // 1 TiB takes 64 windows.
    let blocks = 1 << 20;
    let table = vec![0xff; 4 * blocks as usize];
    let mut image = header(blocks, 1 << 40, MAP + table.len()).put(MAP, &table);
    image.0.truncate(MAP + table.len());
    let image = image.open(Format::Vdi).unwrap();
    let mut offset = 0;
    let mut extents = 0;
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        assert_eq!(extent.kind, ExtentKind::Zero);
        offset += extent.length;
        extents += 1;
    }
    assert!(extents <= 64, "{extents}");
}

#[test]
fn headers_that_are_refused() {
    for (at, value, says) in [
        (0x44, 0x0001_0000, "version 1.0"),
        (0x4c, 3, "difference to another disk"),
        (0x4c, 4, "difference to another disk"),
        (0x4c, 0, "image type 0"),
        (0x154, 513, "not aligned"),
        (0x158, 1025, "not aligned"),
        (0x168, 4096, "sectors of 4096 bytes"),
        (0x178, 65536, "blocks of 65536 bytes"),
        (0x17c, 512, "512 bytes of their own"),
        (0x180, 0x4000_0000, "blocks are not read"),
        (0x1a8, 1, "link UUID"),
        (0x1b8, 1, "parent UUID"),
    ] {
        vdi().le32(at, value).refused(Format::Vdi, ErrorKind::Unsupported, says);
    }
    vdi().le64(0x170, u64::MAX).refused(Format::Vdi, ErrorKind::Unsupported, "too large");
    vdi().le32(0x180, 3).refused(Format::Vdi, ErrorKind::Corrupt, "larger than its table");
    vdi().put(64, b"x").refused(Format::Vdi, ErrorKind::Format, "is not a vdi image");
    vdi().cut(511).refused(Format::Vdi, ErrorKind::Format, "is not a vdi image");
}

#[test]
fn what_lies_past_the_end() {
    let cut_off = |image: Bytes| image.refused(Format::Vdi, ErrorKind::Corrupt, "past the end");
    cut_off(vdi().cut(MAP + 15));
    cut_off(vdi().cut(DATA + 2 * MIB + 511));
    cut_off(vdi().le32(MAP, 3));
    cut_off(vdi().le32(MAP, 0xffff_fffd));
    cut_off(vdi().le32(0x154, 0xffff_fe00));
    cut_off(vdi().le32(0x158, 0xffff_fe00));
    // Content before it can be read.
    let image = vdi().cut(DATA + 2 * MIB).open(Format::Vdi).unwrap();
    image.read_exact_at(&mut vec![0; 3 * MIB], 0).unwrap();
    let error = image.read_exact_at(&mut [0; 512], 3 * MIB as u64).unwrap_err();
    assert_eq!(error.offset(), Some((DATA + 2 * MIB) as u64));
}

#[test]
#[cfg_attr(blkhash_portable, should_panic)] // stdin
fn holes_of_a_static_image_are_not_read() {
    let mut file = tempfile::tempfile().unwrap();
    let image = vdi().le32(0x4c, 2).le32(MAP, 3);
    std::io::Write::write_all(&mut file, &image.0).unwrap();
    file.set_len((DATA + 4 * MIB) as u64).unwrap();
    let open = |options: &OpenOptions| {
        options.open_file(file.try_clone().unwrap(), "x".as_ref(), 0).unwrap()
    };
    let image = open(&OpenOptions::new());
    assert_eq!(image.extent(1 << 16, 1 << 16).unwrap().kind, ExtentKind::Zero);
    assert_eq!(image.extent(MIB as u64, 1 << 16).unwrap().kind, ExtentKind::Data);
    let image = open(&OpenOptions::new().holes(crate::Holes::Ignore));
    assert_eq!(image.extent(1 << 16, 1 << 16).unwrap().kind, ExtentKind::Data);
}
