use crate::error::ErrorKind;
use crate::formats::builder::Bytes;
use crate::probe::Format;
use crate::{ExtentKind, Source};

/// An export with these options and differences, each of which is its records.
fn export(options: &[Vec<u8>], diffs: &[Vec<Vec<u8>>]) -> Bytes {
    let mut bytes = b"rbd image v2\n".to_vec();
    bytes.extend(options.concat());
    bytes.extend(b"Erbd image diffs v2\n");
    bytes.extend((diffs.len() as u64).to_le_bytes());
    for records in diffs {
        bytes.extend(b"rbd diff v2\n");
        bytes.extend(records.concat());
        bytes.push(b'e');
    }
    Bytes(bytes)
}

fn record(tag: u8, length: u64, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &length.to_le_bytes(), body].concat()
}

fn text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text].concat()
}

fn value(tag: u8, value: u64) -> Vec<u8> {
    record(tag, 8, &value.to_le_bytes())
}

fn size(size: u64) -> Vec<u8> {
    value(b's', size)
}

fn write(offset: u64, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u64;
    record(b'w', 16 + length, &[&offset.to_le_bytes(), &length.to_le_bytes(), data].concat())
}

fn zero(offset: u64, length: u64) -> Vec<u8> {
    record(b'z', 16, &[offset.to_le_bytes(), length.to_le_bytes()].concat())
}

fn snapshot(tag: u8, name: &[u8]) -> Vec<u8> {
    record(tag, 4 + name.len() as u64, &text(name))
}

fn protection() -> Vec<u8> {
    record(b'p', 8, &[1])
}

fn options() -> Vec<Vec<u8>> {
    let metadata = [text(b"note"), text(b"hello")].concat();
    let stripes = [value(b'U', 1 << 16), value(b'C', 4)].concat();
    vec![value(b'O', 22), value(b'T', 61), stripes, record(b'M', 17, &metadata)]
}

/// An image of 20 bytes with one difference.
fn of(records: &[Vec<u8>]) -> Bytes {
    export(&options(), &[[&[size(20)], records].concat()])
}

/// An image with two snapshots.
fn image() -> Bytes {
    export(
        &options(),
        &[
            vec![snapshot(b't', b"s1"), protection(), size(20), write(2, b"aaaaaaaa")],
            vec![
                snapshot(b'f', b"s1"),
                snapshot(b't', b"s2"),
                size(8),
                size(16),
                write(4, b"bb"),
                zero(7, 1),
            ],
            vec![snapshot(b'f', b"s2"), size(18), write(0, b"c"), write(15, b"ddd")],
        ],
    )
}

#[test]
fn differences_in_order() {
    let image = image();
    assert_eq!(
        image.clone().content(Format::Rbd).unwrap(),
        b"c\0aabba\0\0\0\0\0\0\0\0ddd".as_slice()
    );
    let image = image.open(Format::Rbd).unwrap();
    assert_eq!(image.format(), Format::Rbd);
    for (offset, kind, length) in [
        (0, ExtentKind::Data, 1),
        (1, ExtentKind::Zero, 1),
        (2, ExtentKind::Data, 5),
        (7, ExtentKind::Zero, 8),
        (9, ExtentKind::Zero, 6),
        (15, ExtentKind::Data, 3),
    ] {
        let mut found = image.extent(offset, u64::MAX).unwrap();
        while found.offset + found.length < offset + length {
            let next = image.extent(found.offset + found.length, u64::MAX).unwrap();
            assert_eq!(next.kind, kind, "{offset}");
            found.length += next.length;
        }
        assert_eq!((found.kind, found.length), (kind, length), "{offset}");
    }
}

#[test]
fn later_records_win() {
    for (records, content) in [
        (vec![], &[0; 20][..]),
        (vec![write(0, b"abcdefghijklmnopqrst")], b"abcdefghijklmnopqrst"),
        (vec![write(0, b"abcdefghijklmnopqrst"), write(5, b"XYZ")], b"abcdeXYZijklmnopqrst"),
        (vec![write(5, b"XYZ"), write(0, b"abcdefghijklmnopqrst")], b"abcdefghijklmnopqrst"),
        (
            vec![write(0, b"aaaa"), write(6, b"bbbb"), write(2, b"cccccc"), zero(3, 2)],
            b"aac\0\0cccbb\0\0\0\0\0\0\0\0\0\0",
        ),
        (vec![write(18, b"yz"), zero(0, 20), write(20, b""), zero(20, 0)], &[0; 20]),
        (
            vec![write(0, b"abcdefghijklmnopqrst"), size(1), size(20)],
            b"a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ),
        (vec![write(0, b"a"), size(0)], b""),
    ] {
        assert_eq!(of(&records).content(Format::Rbd).unwrap(), content);
    }
    let stated = record(b'p', 1, &[0]);
    assert_eq!(of(&[stated]).content(Format::Rbd).unwrap(), [0; 20]);
}

#[test]
fn records_that_are_not_valid() {
    let diffs = [vec![size(20)]];
    let corrupt = |bytes: Bytes, says: &str| bytes.refused(Format::Rbd, ErrorKind::Corrupt, says);
    for (bytes, says) in [
        (of(&[write(19, b"ab")]), "2 bytes at 19, past the end of the image"),
        (of(&[zero(u64::MAX, 2)]), "past the end of the image"),
        (of(&[zero(21, 0)]), "past the end of the image"),
        (of(&[size(1), write(0, b"ab")]), "past the end of the image"),
        (of(&[size(1 << 63)]), "an image of 9223372036854775808 bytes, which is too large"),
        (of(&[record(b's', 4, &[0; 4])]), "kind \"s\" with 4 bytes, not 8"),
        (of(&[record(b'w', 17, &[0; 16])]), "kind \"w\" with 17 bytes, not 16"),
        (of(&[record(b'z', 17, &[0; 17])]), "kind \"z\" with 17 bytes, not 16"),
        (of(&[record(b'p', 2, &[0; 2])]), "kind \"p\" with 2 bytes, not 8"),
        (of(&[record(b't', 8, &text(b"s"))]), "kind \"t\" with 8 bytes, not 5"),
        (of(&[snapshot(b't', &[b's'; 4097])]), "a name of a snapshot of more than 4096 bytes"),
        (of(&[snapshot(b'f', b"s")]), "does not begin at the snapshot before it"),
        (of(&[value(b'x', 0)]), "kind \"x\", which is not known"),
        (of(&[value(0, 0)]), "kind \"\\x00\", which is not known"),
        (export(&[value(b'o', 0)], &diffs), "kind \"o\", which is not known"),
        (export(&[record(b'O', 4, &[0; 4])], &diffs), "kind \"O\" with 4 bytes, not 8"),
        (
            export(&[record(b'M', 11, &[text(b"a"), text(b"b")].concat())], &diffs),
            "kind \"M\" with 11 bytes, not 10",
        ),
        (export(&[record(b'M', 8, &[0xff; 8])], &diffs), "past the end of the file"),
        (export(&[], &[]), "has no size of the image"),
        (export(&[], &[vec![]]), "has no size of the image"),
        (export(&[], &[vec![write(0, b"a"), size(1)]]), "past the end of the image"),
        (
            export(&[], &[vec![snapshot(b't', b"a"), size(1)], vec![]]),
            "does not begin at the snapshot before it",
        ),
    ] {
        corrupt(bytes, says);
    }
    let mut longer = image();
    longer.0.push(b'e');
    corrupt(longer, "1 bytes after its last difference");
    let count = 13 + options().concat().len() + 1 + 19;
    corrupt(image().le64(count, 2), "bytes after its last difference");
    corrupt(image().le64(count, 4), "past the end of the file");
    corrupt(image().put(count - 2, b"1"), "something else in place of \"rbd image diffs v2\"");
    corrupt(image().put(count + 10, b"x"), "something else in place of \"rbd diff v2\"");
    image().put(10, b"3").refused(Format::Rbd, ErrorKind::Format, "is not an rbd export");
    for length in 0..image().0.len() {
        assert!(image().cut(length).open(Format::Rbd).is_err(), "{length}");
    }
}
