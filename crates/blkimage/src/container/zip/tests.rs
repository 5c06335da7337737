use std::io::Read;

use super::fields::Extra;
use super::*;
use crate::storage::Memory;

/// Returns an archive of one stored member with other fields of its local header and its record, and what follows.
fn archive(local: &[(usize, u8)], central: &[(usize, u8)], comment: &[u8]) -> Vec<u8> {
    let content = b"content";
    let mut numbers = libdeflater::crc32(content).to_le_bytes().to_vec();
    numbers.extend([7, 0, 0, 0, 7, 0, 0, 0]);
    let mut header =
        [&b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0"[..], &numbers, &[5, 0, 0, 0], b"a.img"].concat();
    local.iter().for_each(|(at, value)| header[*at] = *value);
    let mut record =
        [&b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0"[..], &numbers, &[5], &[0; 17], b"a.img"]
            .concat();
    central.iter().for_each(|(at, value)| record[*at] = *value);
    let start = header.len() + content.len();
    let mut end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0".to_vec();
    end.extend((record.len() as u32).to_le_bytes());
    end.extend((start as u32).to_le_bytes());
    end.extend((comment.len() as u16).to_le_bytes());
    [&header, &content[..], &record, &end, comment].concat()
}

fn read(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let zip = Zip::new(Arc::new(Memory(bytes)), Path::new("x.zip")).map_err(|it| it.to_string())?;
    let member = zip.find(b"a.img").map_err(|it| it.to_string())?;
    let content = zip.content(&OpenOptions::new(), member).map_err(|it| it.to_string())?;
    let mut bytes = vec![0; content.size() as usize];
    content.read_exact_at(&mut bytes, 0).map_err(|it| it.to_string())?;
    content.verify().map(|()| bytes).map_err(|it| it.to_string())
}

#[test]
fn one_member() {
    assert_eq!(read(archive(&[], &[], b"")).unwrap(), b"content");
    assert_eq!(read(archive(&[], &[], b"a comment")).unwrap(), b"content");
}

#[test]
fn headers_that_differ() {
    for (local, central, word) in [
        (&[(30, b'b')][..], &[][..], "another name"),
        (&[(8, 8)], &[], "another method"),
        (&[(6, 1)], &[], "another method"),
        (&[(14, 1)], &[], "another CRC-32"),
        (&[(18, 6)], &[], "another size"),
        (&[(22, 8)], &[], "another size"),
        (&[(14, 1)], &[(16, 1)], "does not match its CRC-32"),
        (&[], &[(42, 1)], "of no member"),
        (&[], &[(20, 8)], "another number of bytes"),
        (&[(28, 9)], &[], "lacks its header"),
    ] {
        let local: Vec<_> = local.iter().map(|(at, value)| (*at, *value)).collect();
        let error = read(archive(&local, central, b"")).unwrap_err();
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test]
fn the_end_is_one_place() {
    let inner = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    let error = read(archive(&[], &[], &inner)).unwrap_err();
    assert!(error.contains("several ends"), "{error}");
    let longer = [archive(&[], &[], b""), b"x".to_vec()].concat();
    assert!(read(longer).unwrap_err().contains("past its end"));
    let behind = [b"#!/bin/sh\n".to_vec(), archive(&[], &[], b"")].concat();
    assert!(read(behind).unwrap_err().contains("after 10 other bytes"));
    for length in 0..archive(&[], &[], b"").len() {
        assert!(read(archive(&[], &[], b"")[..length].to_vec()).is_err(), "{length}");
    }
}

#[test]
fn extra_fields() {
    let field = |id: u16, bytes: &[u8]| {
        [&id.to_le_bytes()[..], &(bytes.len() as u16).to_le_bytes(), bytes].concat()
    };
    assert!(Extra::new(&field(9, b"ab")[..5]).is_err());
    assert!(Extra::new(&[field(1, b""), field(1, b"")].concat()).is_err());
    assert!(Extra::new(&[field(9, b""), field(9, b"ab")].concat()).is_ok());
    let name = field(0x7075, b"\x01\0\0\0\0other");
    assert!(Extra::new(&name).unwrap().renames(b"name"));
    assert!(!Extra::new(&name).unwrap().renames(b"other"));
    let large = field(1, &[1, 0, 0, 0, 0, 0, 0, 0]);
    let (mut first, mut second) = (u64::from(u32::MAX), 5);
    assert_eq!(Extra::new(&large).unwrap().widen(&mut [&mut second, &mut first]), Some(()));
    assert_eq!((first, second), (1, 5));
    let (mut first, mut second) = (u64::from(u32::MAX), u64::from(u32::MAX));
    assert_eq!(Extra::new(&large).unwrap().widen(&mut [&mut first, &mut second]), None);
}

#[test]
fn deflate_of_another_length() {
    let packed = [0x4b, 0xce, 0xcf, 0x2b, 0x49, 0xcd, 0x2b, 0x01, 0x00];
    let crc = libdeflater::crc32(b"content");
    let member = |size, stored| directory::tests_member(b"a", crc, size, stored);
    let inflate = |size, stored| {
        let storage = Arc::new(Memory([&packed[..], b"more"].concat()));
        let mut content = Vec::new();
        Inflated::new(storage, &member(size, stored)).read_to_end(&mut content).map(|_| content)
    };
    assert_eq!(inflate(7, 9).unwrap(), b"content");
    for (size, stored) in [(6, 9), (8, 9), (7, 8), (7, 10), (0, 9), (7, 0)] {
        assert!(inflate(size, stored).is_err(), "{size} {stored}");
    }
}
