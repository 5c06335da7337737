use super::crc::{SEED, register};
use crate::check::{Finding, Severity, Visitor};
use crate::error::ErrorKind;
use crate::formats::builder::Bytes;
use crate::probe::Format;
use crate::{ExtentKind, Source};

const BLOCK: usize = 512;

/// The device has some bytes after its 30 blocks.
const SIZE: usize = 30 * BLOCK + 100;

/// Blocks of different bytes, of which some are used.
#[derive(Clone, Copy)]
struct Case {
    used: fn(usize) -> bool,
    /// Blocks with one checksum, 0 for none.
    per_sum: u32,
    is_reseeded: bool,
}

const CASE: Case =
    Case { used: |block| block % 7 != 2 && block / 4 != 3, per_sum: 4, is_reseeded: true };

impl Case {
    fn block(block: usize) -> Vec<u8> {
        (0..BLOCK).map(|at| (block * 31 + at) as u8 | 1).collect()
    }

    fn content(self) -> Vec<u8> {
        let blocks = (0..30).map(|block| match (self.used)(block) {
            true => Self::block(block),
            false => vec![0; BLOCK],
        });
        let mut content: Vec<u8> = blocks.flatten().collect();
        content.resize(SIZE, 0);
        content
    }

    fn image(self) -> Bytes {
        let mut bits = 0_u32;
        let mut stored = Vec::new();
        let (mut sum, mut in_strip) = (SEED, 0);
        for block in (0..30).filter(|block| (self.used)(*block)) {
            bits |= 1 << block;
            stored.extend(Self::block(block));
            sum = register(sum, &Self::block(block));
            in_strip += 1;
            if in_strip == self.per_sum {
                stored.extend(sum.to_le_bytes());
                in_strip = 0;
                sum = if self.is_reseeded { SEED } else { sum };
            }
        }
        if in_strip > 0 && self.per_sum > 0 {
            stored.extend(sum.to_le_bytes());
        }
        let (mode, length) = if self.per_sum == 0 { (0, 0) } else { (0x20, 4) };
        let image = Bytes::new(118)
            .put(0, b"partclone-image\x000.3.23")
            .put(30, b"0002\xde\xc0EXTFS")
            .le64(52, SIZE as u64)
            .le64(60, 30)
            .le32(84, BLOCK as u32)
            .put(96, &[mode, 0, length])
            .le32(100, self.per_sum)
            .put(104, &[u8::from(self.is_reseeded), 1])
            .le32(110, bits)
            .le32(114, register(SEED, &bits.to_le_bytes()));
        let mut image = with_sum(image);
        image.0.extend(stored);
        image
    }
}

/// Computes the checksum of the header anew.
fn with_sum(image: Bytes) -> Bytes {
    let sum = register(SEED, &image.0[..106]);
    image.le32(106, sum)
}

fn cases() -> impl Iterator<Item = Case> {
    let used: [fn(usize) -> bool; 4] = [CASE.used, |_| true, |_| false, |block| block == 29];
    let sums = [(0, true), (1, true), (4, true), (1, false), (4, false), (1000, false)];
    used.into_iter().flat_map(move |used| {
        sums.into_iter().map(move |(per_sum, is_reseeded)| Case { used, per_sum, is_reseeded })
    })
}

#[test]
fn content() {
    for (number, case) in cases().enumerate() {
        let image = case.image().open(Format::Partclone).unwrap();
        let expected = case.content();
        assert_eq!(image.size(), SIZE as u64);
        for length in [1, 100, BLOCK, 700, 5 * BLOCK, SIZE] {
            let mut found = vec![1; SIZE];
            for (index, part) in found.chunks_mut(length).enumerate() {
                image.read_exact_at(part, (index * length) as u64).unwrap();
            }
            assert!(found == expected, "{number} {length}");
        }
        let mut offset = 0;
        while offset < SIZE as u64 {
            let extent = image.extent(offset, u64::MAX).unwrap();
            let block = offset as usize / BLOCK;
            let is_data = block < 30 && (case.used)(block);
            assert_eq!(extent.kind == ExtentKind::Data, is_data, "{number} {block}");
            offset += extent.length;
        }
    }
}

#[test]
fn what_the_image_says_of_itself() {
    let image = CASE.image().open(Format::Partclone).unwrap();
    let backup = image.backup().unwrap();
    assert_eq!((&*backup.file_system, &*backup.version), ("EXTFS", "0.3.23"));
    assert_eq!((backup.block_size, backup.used), (512, 22 * 512));
    assert!(image.stated_checksums().unwrap().unwrap().parts.is_some());
    let image = Case { per_sum: 0, ..CASE }.image().open(Format::Partclone).unwrap();
    assert_eq!(image.stated_checksums().unwrap().unwrap().parts, None);
}

#[test]
fn every_damaged_byte_is_found() {
    for case in cases().filter(|case| case.per_sum > 0) {
        let image = case.image();
        for at in 0..image.0.len() {
            let byte = image.0[at];
            let damaged = image.clone().put(at, &[byte ^ 4]);
            assert!(damaged.content(Format::Partclone).is_err(), "{at}");
        }
    }
}

#[test]
fn one_strip_is_damaged() {
    struct Count(Vec<Finding>);
    impl Visitor for Count {
        fn finding(&mut self, finding: Finding) {
            self.0.push(finding);
        }
    }
    // Blocks 0, 1, 3, 4, then 5 to 8.
    let image = CASE.image().put(118 + 4 * BLOCK + 4, b"?").open(Format::Partclone).unwrap();
    let mut byte = [0];
    for block in [0, 1, 3, 4, 10, 29] {
        image.read_exact_at(&mut byte, (block * BLOCK) as u64).unwrap();
    }
    for block in [5, 6, 7, 8] {
        let error = image.read_exact_at(&mut byte, (block * BLOCK) as u64).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(118 + 2048 + 4)));
    }
    let mut found = Count(Vec::new());
    let summary = image.check_structure(&mut found).unwrap().unwrap();
    assert_eq!((summary.units, found.0.len()), (6, 1));
    assert_eq!(found.0[0].severity, Severity::Error);
}

#[test]
fn headers_that_are_not_valid() {
    for (case, image, kind) in [
        ("magic", CASE.image().put(0, b"P"), ErrorKind::Format),
        ("version", CASE.image().put(30, b"0001"), ErrorKind::Unsupported),
        ("order", CASE.image().put(34, b"\xc0\xde"), ErrorKind::Unsupported),
        ("size", CASE.image().le64(52, 1 << 63), ErrorKind::Corrupt),
        ("short", CASE.image().le64(52, 30 * 512 - 1), ErrorKind::Corrupt),
        ("blocks", CASE.image().le64(60, 31), ErrorKind::Corrupt),
        ("huge", CASE.image().le64(60, u64::MAX), ErrorKind::Corrupt),
        ("no block size", CASE.image().le32(84, 0), ErrorKind::Corrupt),
        ("block size", CASE.image().le64(60, 1).le32(84, (64 << 20) + 1), ErrorKind::Corrupt),
        ("xxh64", CASE.image().put(96, &[0x30, 0, 8]), ErrorKind::Unsupported),
        ("mode", CASE.image().put(96, &[1]), ErrorKind::Unsupported),
        ("length", CASE.image().put(98, &[8]), ErrorKind::Corrupt),
        ("none", CASE.image().put(96, &[0]), ErrorKind::Corrupt),
        ("sums of nothing", CASE.image().le32(100, 0), ErrorKind::Corrupt),
        ("no bitmap", CASE.image().put(105, &[0]), ErrorKind::Unsupported),
        ("bytes", CASE.image().put(105, &[8]), ErrorKind::Unsupported),
        ("more sums", CASE.image().le32(100, 3), ErrorKind::Corrupt),
        ("sum", CASE.image().put(110, &[0]), ErrorKind::Corrupt),
    ] {
        let error = with_sum(image).open(Format::Partclone).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), kind, "{case}: {error}");
    }
    let tiny = CASE.image().le64(52, 1 << 40).le64(60, 1 << 35).le32(84, 1);
    with_sum(tiny).refused(Format::Partclone, ErrorKind::Unsupported, "17179869184 blocks");
    let wide = CASE.image().le64(52, 1 << 40).le32(84, 4 << 20).le32(100, 30);
    let mut wide = with_sum(wide);
    wide.0.resize(200 << 20, 0);
    wide.refused(Format::Partclone, ErrorKind::Unsupported, "64 MiB");
    let length = CASE.image().0.len();
    for length in 0..length {
        assert!(CASE.image().cut(length).open(Format::Partclone).is_err(), "{length}");
    }
}
