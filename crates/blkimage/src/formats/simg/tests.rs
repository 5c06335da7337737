use crate::error::ErrorKind;
use crate::formats::builder::Bytes;
use crate::probe::Format;
use crate::{ExtentKind, Result, Source, StatedDigest};

const BLOCK: usize = 4096;

/// A chunk, which is kind, number of blocks and data.
type Chunk<'a> = (u16, u32, &'a [u8]);

/// An image with these numbers of blocks and of chunks in its header.
fn simg(blocks: u32, count: u32, chunks: &[Chunk<'_>]) -> Bytes {
    let mut bytes = b"\x3a\xff\x26\xed\x01\0\0\0\x1c\0\x0c\0\0\x10\0\0".to_vec();
    for number in [blocks, count, 0] {
        bytes.extend(number.to_le_bytes());
    }
    for (kind, blocks, data) in chunks {
        bytes.extend(kind.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(blocks.to_le_bytes());
        bytes.extend((12 + data.len() as u32).to_le_bytes());
        bytes.extend(*data);
    }
    Bytes(bytes)
}

/// Five blocks: one that is stored, two of zeros in two ways, and two of a word.
fn image() -> Bytes {
    let stored = [b'a'; BLOCK];
    let chunks: &[Chunk<'_>] =
        &[(0xcac1, 1, &stored), (0xcac3, 1, b""), (0xcac2, 1, &[0; 4]), (0xcac2, 2, b"word")];
    simg(5, 4, chunks)
}

fn expected() -> Vec<u8> {
    [vec![b'a'; BLOCK], vec![0; 2 * BLOCK], b"word".repeat(BLOCK / 2)].concat()
}

fn content(bytes: Bytes) -> Result<Vec<u8>> {
    let image = bytes.open(Format::Simg)?;
    let mut content = vec![1; image.size() as usize];
    image.read_exact_at(&mut content, 0)?;
    Ok(content)
}

#[test]
fn chunks() {
    assert_eq!(content(image()).unwrap(), expected());
    let image = image().open(Format::Simg).unwrap();
    assert_eq!(image.format(), Format::Simg);
    let zeros = image.extent(BLOCK as u64, u64::MAX).unwrap();
    assert_eq!((zeros.kind, zeros.length), (ExtentKind::Zero, 2 * BLOCK as u64));
    for start in [0, 1, BLOCK - 3, 3 * BLOCK - 5, 3 * BLOCK + 1, 3 * BLOCK + 2, 3 * BLOCK + 7] {
        for length in [1, 2, 3, 4, 5, 11, BLOCK] {
            let mut buf = vec![1; length];
            image.read_exact_at(&mut buf, start as u64).unwrap();
            assert_eq!(buf, expected()[start..start + length], "{start} {length}");
        }
    }
}

#[test]
fn headers_that_are_not_valid() {
    for (case, bytes, kind) in [
        ("magic", image().put(0, b"x"), ErrorKind::Format),
        ("version", image().put(4, &[2]), ErrorKind::Unsupported),
        ("file header", image().put(8, &[27]), ErrorKind::Corrupt),
        ("chunk header", image().put(10, &[11]), ErrorKind::Corrupt),
        ("no block size", image().le32(12, 0), ErrorKind::Corrupt),
        ("odd block size", image().le32(12, 4098), ErrorKind::Corrupt),
        ("more blocks", image().le32(16, 6), ErrorKind::Corrupt),
        ("fewer blocks", image().le32(16, 4), ErrorKind::Corrupt),
        ("more chunks", image().le32(20, 5), ErrorKind::Corrupt),
        ("fewer chunks", image().le32(20, 3), ErrorKind::Corrupt),
        ("too many chunks", image().le32(20, u32::MAX), ErrorKind::Corrupt),
        ("no block", image().le32(32, 0).le32(16, 4), ErrorKind::Corrupt),
        ("kind", image().put(28, &[0xc5]), ErrorKind::Corrupt),
        ("blocks", image().le32(32, 2), ErrorKind::Corrupt),
        ("length", image().le32(36, 11), ErrorKind::Corrupt),
        ("longer", image().le32(36, 4109), ErrorKind::Corrupt),
        ("huge", image().le32(36, u32::MAX), ErrorKind::Corrupt),
        ("skipped data", image().le32(4144, 16), ErrorKind::Corrupt),
        ("wide word", image().le32(4156, 20), ErrorKind::Corrupt),
    ] {
        let error = bytes.open(Format::Simg).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), kind, "{case}: {error}");
    }
    for length in 0..image().0.len() {
        let bytes = Bytes(image().0[..length].to_vec());
        assert!(bytes.open(Format::Simg).is_err(), "{length}");
    }
}

#[test]
fn sums_of_all_content_are_stated() {
    let sum = |value: u32| StatedDigest::new("crc32", value.to_be_bytes());
    let stated = |bytes: Bytes| {
        let image = bytes.open(Format::Simg).unwrap();
        image.stated_checksums().unwrap().unwrap().digests
    };
    assert_eq!(stated(image()), []);
    assert_eq!(stated(image().le32(24, 7)), [sum(7)]);
    let chunks: &[Chunk<'_>] = &[
        (0xcac2, 1, b"word"),
        (0xcac4, 0, &[1, 0, 0, 0]),
        (0xcac3, 1, b""),
        (0xcac4, 0, &[2, 0, 0, 0]),
    ];
    assert_eq!(stated(simg(2, 4, chunks)), [sum(2)]);
    assert_eq!(stated(simg(2, 4, chunks).le32(24, 2)), [sum(2)]);
    assert_eq!(stated(simg(2, 4, chunks).le32(24, 3)), [sum(3), sum(2)]);
    assert_eq!(stated(simg(0, 0, &[])), []);
    assert!(content(simg(0, 0, &[])).unwrap().is_empty());
}
