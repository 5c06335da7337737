use std::fs;
use std::path::Path;

use super::size::Sizes;
use crate::error::ErrorKind;
use crate::formats::builder::Bytes;
use crate::options::VpcSize;
use crate::probe::Format;
use crate::{ExtentKind, Hint, Image, OpenOptions, Result, Source};

const BLOCK: usize = 4096;
const HEADER: usize = 512;
const TABLE: usize = 1536;
const DATA: usize = 2048;
/// A block and its bitmap.
const STRIDE: usize = 512 + BLOCK;

/// Writes the checksum of `length` bytes at `start` to `at` within them.
fn sum(image: Bytes, start: usize, length: usize, at: usize) -> Bytes {
    let image = image.be32(start + at, 0);
    let sum: u32 = image.0[start..start + length].iter().map(|byte| u32::from(*byte)).sum();
    image.be32(start + at, !sum)
}

fn footer(image: Bytes, at: usize, kind: u32, size: u64) -> Bytes {
    let next = if kind == 2 { u64::MAX } else { HEADER as u64 };
    let image = image
        .put(at, b"conectix")
        .be32(at + 12, 0x0001_0000)
        .be64(at + 16, next)
        .put(at + 28, b"win ")
        .be64(at + 48, size)
        .be32(at + 60, kind)
        .fill(at + 68, 16, 7);
    sum(image, at, 512, 64)
}

/// Three blocks of content. Block 0 is stored second, block 2 first.
fn sparse(kind: u32) -> Bytes {
    let end = DATA + 2 * STRIDE;
    let image = Bytes::new(end + 512)
        .put(HEADER, b"cxsparse")
        .be64(HEADER + 16, TABLE as u64)
        .be32(HEADER + 24, 0x0001_0000)
        .be32(HEADER + 28, 3)
        .be32(HEADER + 32, BLOCK as u32)
        .be32(TABLE, ((DATA + STRIDE) / 512) as u32)
        .be32(TABLE + 4, u32::MAX)
        .be32(TABLE + 8, (DATA / 512) as u32)
        .put(DATA, &[0xff])
        .fill(DATA + 512, BLOCK, b'c')
        .put(DATA + STRIDE, &[0xff])
        .fill(DATA + STRIDE + 512, BLOCK, b'a');
    let size = 3 * BLOCK as u64;
    header(footer(footer(image, 0, kind, size), end, kind, size))
}

fn dynamic() -> Bytes {
    sparse(3)
}

fn fixed(size: usize) -> Bytes {
    footer(Bytes::new(size + 512).fill(0, size, b'f'), size, 2, size as u64)
}

/// Makes the checksum of the second header valid.
fn header(image: Bytes) -> Bytes {
    sum(image, HEADER, 1024, 36)
}

/// Applies a change to both footers, and makes their checksums valid.
fn both(image: Bytes, change: impl Fn(Bytes, usize) -> Bytes) -> Bytes {
    let end = image.0.len() - 512;
    [0, end].into_iter().fold(image, |image, at| sum(change(image, at), at, 512, 64))
}

fn expected() -> Vec<u8> {
    [[b'a'; BLOCK], [0; BLOCK], [b'c'; BLOCK]].concat()
}

#[track_caller]
fn corrupt(image: Bytes, says: &str) {
    image.refused(Format::Vpc, ErrorKind::Corrupt, says);
}

#[test]
fn content() {
    assert!(dynamic().content(Format::Vpc).unwrap() == expected());
    assert!(fixed(10240).content(Format::Vpc).unwrap() == [b'f'; 10240]);
    // Empty, and one block twice.
    let image = dynamic().be32(TABLE, u32::MAX).be32(TABLE + 4, (DATA / 512) as u32);
    let content = image.content(Format::Vpc).unwrap();
    assert!(content == [[0; BLOCK], [b'c'; BLOCK], [b'c'; BLOCK]].concat());
}

#[test]
fn both_sizes() {
    let sizes = |creator: &[u8; 4], geometry| Sizes { current: 5000, geometry, creator: *creator };
    let (auto, geometry, current) = (VpcSize::Auto, VpcSize::Geometry, VpcSize::Current);
    for creator in
        [b"win ", b"qem2", b"d2v ", b"tap\0", b"CTXS", b"vbox", b"wa\0\0", b"xo  ", b"vpc\0"]
    {
        assert_eq!(sizes(creator, 4096).choose(auto), 4608);
        assert_eq!(sizes(creator, 4096).choose(geometry), 4096);
    }
    for creator in [b"vpc ", b"qemu"] {
        assert_eq!(sizes(creator, 4096).choose(auto), 4096);
        assert_eq!(sizes(creator, 4096).choose(current), 4608);
        assert_eq!(sizes(creator, 65535 * 16 * 255 * 512).choose(auto), 4608);
        assert_eq!(sizes(creator, 65535 * 16 * 255 * 512).choose(geometry), 4608);
    }
}

#[test]
fn warnings_about_sizes() {
    let sizes = |creator: &[u8; 4], current| Sizes { current, geometry: 4096, creator: *creator };
    assert_eq!(sizes(b"win ", 4096).doubt(4096), None);
    assert_eq!(sizes(b"qem2", 4000).doubt(4000), None);
    let (doubt, hint) = sizes(b"qemu", 4096).doubt(4096).unwrap();
    assert!(doubt.contains("whole cylinders") && hint.is_none());
    let (doubt, hint) = sizes(b"vpc ", 5000).doubt(4096).unwrap();
    assert!(doubt.contains("not the 5000 bytes") && hint == Some(Hint::CurrentSize));
    let (doubt, hint) = sizes(b"vbox", 5000).doubt(4608).unwrap();
    assert!(doubt.contains("earlier versions read the 4096 bytes"));
    assert_eq!((hint, sizes(b"win ", 5000).doubt(4608)), (Some(Hint::VpcSize), None));
    // 2 cylinders, 2 heads and 2 sectors are one block.
    let image = both(dynamic(), |it, at| it.put(at + 28, b"vpc ").be32(at + 56, 0x0002_0202));
    let size = |choice| {
        let options = OpenOptions::new().vpc_size(choice);
        let image = image.clone().open_with(&options).unwrap();
        let hints = image.warnings().iter().map(|warning| warning.hint);
        (image.size(), hints.collect::<Vec<_>>())
    };
    assert_eq!(size(VpcSize::Auto), (4096, vec![Some(Hint::CurrentSize)]));
    assert_eq!(size(VpcSize::Geometry), (4096, vec![]));
    assert_eq!(size(VpcSize::Current), (3 * 4096, vec![]));
}

#[test]
fn sectors_that_are_not_stored() {
    // Sectors 1 and 7 are unused. They must be zero, because QEMU reads them.
    let zeros = |image: Bytes, sectors: &[usize]| {
        sectors.iter().fold(image.put(DATA, &[0xbe]), |image, sector| {
            image.fill(DATA + 512 + sector * 512, 512, 0)
        })
    };
    let content = zeros(dynamic(), &[1, 7]).content(Format::Vpc).unwrap();
    let mut wanted = expected();
    for sector in [1, 7] {
        wanted[2 * BLOCK + sector * 512..][..512].fill(0);
    }
    assert!(content == wanted);
    corrupt(zeros(dynamic(), &[1]), "unused and not zero");
    corrupt(zeros(dynamic(), &[7]), "unused and not zero");
    let error = zeros(dynamic(), &[1]).content(Format::Vpc).unwrap_err();
    assert_eq!(error.offset(), Some((DATA + 512 + 7 * 512) as u64));
}

#[test]
fn footers_that_are_refused() {
    let end = DATA + 2 * STRIDE;
    let image = || dynamic();
    corrupt(image().put(100, b"x"), "checksum");
    corrupt(image().put(end + 100, b"x"), "checksum");
    corrupt(image().put(HEADER + 800, b"x"), "checksum");
    corrupt(fixed(1024).put(1024 + 100, b"x"), "checksum");
    corrupt(image().cut(end), "does not end with its footer");
    corrupt(image().put(0, &[0; 512]), "begins without the copy");
    corrupt(footer(image(), end, 2, 3 * BLOCK as u64), "begins like a dynamic disk");
    corrupt(footer(image(), 0, 2, 3 * BLOCK as u64), "ends with another footer");
    corrupt(footer(image(), end, 3, 512), "ends with another footer");
    corrupt(both(image(), |it, at| it.be32(at + 60, 5)), "unknown disk type 5");
    corrupt(both(image(), |it, at| it.be64(at + 48, 1 << 60)), "more than a vpc image can have");
    corrupt(both(image(), |it, at| it.be64(at + 48, 3 * 4096 + 512)), "larger than its table");
    corrupt(both(image(), |it, at| it.be64(at + 16, 0)), "no second header");
    corrupt(both(image(), |it, at| it.be64(at + 16, u64::MAX)), "past the end");
    let version = both(image(), |it, at| it.be32(at + 12, 0x0002_0000));
    version.refused(Format::Vpc, ErrorKind::Unsupported, "version 0x20000");
    image().put(0, b"x").put(end, b"x").refused(Format::Vpc, ErrorKind::Format, "is not a vpc");
    image().cut(511).refused(Format::Vpc, ErrorKind::Format, "is not a vpc");
    let old = fixed(1024).put(1024, b" conectix");
    old.refused(Format::Vpc, ErrorKind::Unsupported, "before 2004");
    // The image is the footer alone.
    corrupt(fixed(0), "begins like a dynamic disk");
}

#[test]
fn second_headers_that_are_refused() {
    let with = |at, value| header(dynamic().be32(HEADER + at, value));
    corrupt(with(28, 2), "larger than its table");
    corrupt(with(28, 1 << 29), "entries");
    corrupt(with(32, 0), "block size 0");
    corrupt(with(32, 4097), "block size 4097");
    corrupt(with(20, 0xffff_fff0), "past the end");
    corrupt(with(28, 4000), "past the end");
    // An entry that maps no guest bytes.
    let image = || header(dynamic().be32(HEADER + 28, 4));
    assert!(image().be32(TABLE + 12, u32::MAX).content(Format::Vpc).unwrap() == expected());
    corrupt(image().be32(TABLE + 12, 100), "past the end");
    corrupt(with(16, 0xffff_ffff), "past the end");
    with(32, 2048).refused(Format::Vpc, ErrorKind::Unsupported, "blocks of 2048 bytes");
    with(24, 0x0001_0001).refused(Format::Vpc, ErrorKind::Unsupported, "version 0x10001");
}

#[test]
fn what_lies_past_the_end() {
    let sector = (DATA + STRIDE) / 512;
    corrupt(dynamic().be32(TABLE, sector as u32 + 1), "past the end");
    corrupt(dynamic().be32(TABLE, 0xffff_fffe), "past the end");
    let short = footer(Bytes::new(1024 + 512), 1024, 2, 1536);
    corrupt(short, "has 1536 bytes of content, and stores 1024");
    let short = footer(Bytes::new(1024 + 512), 1024, 2, 1024).put(1024 + 28, b"vpc ");
    let short = sum(short.be32(1024 + 56, 0x0001_0103), 1024, 512, 64);
    assert_eq!(short.open(Format::Vpc).err().unwrap().hint(), Some(Hint::CurrentSize));
}

#[test]
fn a_guest_cannot_turn_its_fixed_disk_into_a_dynamic_one() {
    let end = dynamic().0.len();
    let mut image = dynamic();
    image.0.resize(end + 512, 0);
    corrupt(footer(image, end, 2, end as u64), "begins like a dynamic disk and ends like a fixed");
}

#[test]
fn blocks_lie_between_bitmaps() {
    let image = dynamic().open(Format::Vpc).unwrap();
    let extent = image.extent(0, u64::MAX).unwrap();
    assert_eq!((extent.kind, extent.length), (ExtentKind::Data, BLOCK as u64));
    let extent = image.extent(BLOCK as u64, u64::MAX).unwrap();
    assert_eq!((extent.kind, extent.length), (ExtentKind::Zero, BLOCK as u64));
}

// Differencing disks

/// A differencing disk that names its parent in both ways. Of block 2, only sectors 0 and 2 are stored.
fn difference(relative: &str, name: &str) -> Bytes {
    let utf16 = |name: &str| name.encode_utf16().collect::<Vec<u16>>();
    let relative: Vec<u8> = utf16(relative).into_iter().flat_map(u16::to_le_bytes).collect();
    let name: Vec<u8> = utf16(name).into_iter().flat_map(u16::to_be_bytes).collect();
    let image = sparse(4).put(DATA, &[0xa0]).be32(TABLE, u32::MAX);
    let image = image.fill(HEADER + 40, 16, 7).put(HEADER + 64, &name);
    // The locator is in the block that is not used.
    let at = DATA + STRIDE;
    let image = match relative.is_empty() {
        true => image,
        false => image
            .put(HEADER + 576, b"W2ru")
            .be32(HEADER + 584, relative.len() as u32)
            .be64(HEADER + 592, at as u64)
            .put(at, &relative),
    };
    header(image)
}

fn open_in(folder: &Path, image: Bytes) -> Result<Image> {
    let path = folder.join("child.vhd");
    fs::write(&path, image.0).unwrap();
    OpenOptions::new().open(path)
}

#[test]
fn parents() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("base.vhd"), dynamic().0).unwrap();
    fs::write(folder.path().join("sub/b\u{e4}se.vhd"), fixed(3 * BLOCK).0).unwrap();
    let read = |relative, name| {
        let image = open_in(folder.path(), difference(relative, name)).unwrap();
        let mut content = vec![0; image.size() as usize];
        image.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(image.chain().len(), 2);
        content
    };
    assert!(read(".\\base.vhd", "x.vhd") == expected());
    assert!(read("base.vhd", "") == expected());
    assert!(read("", "base.vhd") == expected());
    assert!(read("", "C:\\disks\\base.vhd") == expected());
    let mut wanted = vec![b'f'; 3 * BLOCK];
    wanted[2 * BLOCK..][..512].fill(b'c');
    wanted[2 * BLOCK + 1024..][..512].fill(b'c');
    assert!(read(".\\sub\\b\u{e4}se.vhd", "") == wanted);
}

#[test]
fn parents_that_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("base.vhd"), dynamic().0).unwrap();
    let refused = |image: Bytes, says: &str| {
        let error = open_in(path, image).err().unwrap();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.kind(), ErrorKind::Reference, "{error}");
    };
    refused(difference("", ""), "does not name it");
    refused(difference("..\\base.vhd", "base.vhd"), "leads out of the image's own folder");
    refused(difference("C:\\base.vhd", ""), "protocol");
    refused(difference("missing.vhd", ""), "cannot open its backing file \"missing.vhd\"");
    refused(difference("child.vhd", ""), "is a part of its own backing chain");
    refused(header(difference("base.vhd", "").put(HEADER + 40, b"x")), "identifiers differ");
    let surrogate = header(difference("base.vhd", "").put(DATA + STRIDE, &[0, 0xd8]));
    refused(surrogate, "does not name it");
    let long = header(difference("base.vhd", "").be32(HEADER + 584, 1024));
    assert_eq!(open_in(path, long).err().unwrap().kind(), ErrorKind::Corrupt);
    let outside = header(difference("base.vhd", "").be64(HEADER + 592, u64::MAX - 10));
    assert_eq!(open_in(path, outside).err().unwrap().kind(), ErrorKind::Corrupt);
    // The parent has another format.
    fs::write(path.join("base.vhd"), b"x").unwrap();
    let error = open_in(path, difference("base.vhd", "")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Format);
}

#[test]
fn a_parent_is_not_cut_off_by_its_geometry() {
    let folder = tempfile::tempdir().unwrap();
    let base = both(dynamic(), |it, at| it.put(at + 28, b"vpc ").be32(at + 56, 0x0001_0101));
    fs::write(folder.path().join("base.vhd"), base.0).unwrap();
    let image = open_in(folder.path(), difference("base.vhd", "")).unwrap();
    let mut content = vec![0; image.size() as usize];
    image.read_exact_at(&mut content, 0).unwrap();
    assert!(content == expected() && image.warnings().is_empty());
}
