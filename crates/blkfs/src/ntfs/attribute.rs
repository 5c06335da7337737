//! The attributes in a record of the MFT.

use super::record::{Header, Reference};
use super::runs::Pairs;
use crate::bytes::{le16_at, le32_at, le64_at, u8_at};

/// The types of attributes that are looked at.
pub(super) mod kind {
    pub const ATTRIBUTE_LIST: u32 = 0x20;
    pub const FILE_NAME: u32 = 0x30;
    pub const SECURITY_DESCRIPTOR: u32 = 0x50;
    pub const VOLUME_NAME: u32 = 0x60;
    pub const VOLUME_INFORMATION: u32 = 0x70;
    pub const DATA: u32 = 0x80;
    pub const INDEX_ROOT: u32 = 0x90;
    pub const INDEX_ALLOCATION: u32 = 0xa0;
    pub const BITMAP: u32 = 0xb0;
    pub const REPARSE_POINT: u32 = 0xc0;
    pub const EA: u32 = 0xe0;
    pub const LOGGED_UTILITY_STREAM: u32 = 0x100;
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    pub kind: u32,
    /// The name in UTF-16, empty if it has none.
    pub name: &'a [u8],
    pub body: Body<'a>,
}

/// Where the content of an attribute is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body<'a> {
    /// In the record.
    Resident(&'a [u8]),
    /// In clusters.
    NonResident(NonResident<'a>),
}

/// The clusters of an attribute, or of a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NonResident<'a> {
    /// The first cluster of this part, within the content.
    pub lowest: u64,
    highest: u64,
    /// Size of the content in bytes. Only the first part has it, and the next field.
    pub size: u64,
    /// Number of bytes that were written. The others are zeros.
    pub initialized: u64,
    pairs: &'a [u8],
}

impl<'a> NonResident<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        Some(Self {
            lowest: le64_at(bytes, 16)?,
            highest: le64_at(bytes, 24)?,
            size: le64_at(bytes, 48)?,
            initialized: le64_at(bytes, 56)?,
            pairs: bytes.get(usize::from(le16_at(bytes, 32)?)..)?,
        })
    }

    /// Returns the runs of clusters on a volume of `clusters`.
    pub fn runs(&self, clusters: u64) -> Pairs<'a> {
        Pairs::new(self.pairs, self.lowest, self.highest, clusters)
    }
}

/// Returns the attributes of a record. After an error there are no more.
pub(super) fn attributes(record: &[u8]) -> Attributes<'_> {
    let header = Header::parse(record).filter(|header| header.size == record.len());
    let bytes = header.and_then(|header| record.get(..header.end));
    Attributes { bytes, at: header.map_or(0, |header| header.attributes), last: 0 }
}

/// Iterator over the attributes of a record.
pub(super) struct Attributes<'a> {
    /// The used part. `None` if it is longer than the record, or after the end.
    bytes: Option<&'a [u8]>,
    at: usize,
    /// Type of the last attribute. They ascend.
    last: u32,
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(bytes) = self.bytes else {
            // Says it once.
            return (std::mem::replace(&mut self.at, usize::MAX) != usize::MAX)
                .then_some(Err("impossible sizes"));
        };
        let found = Self::at(bytes, self.at);
        match found {
            Some(Some((attribute, length))) if attribute.kind >= self.last => {
                self.at += length;
                self.last = attribute.kind;
                Some(Ok(attribute))
            }
            other => {
                (self.bytes, self.at) = (None, usize::MAX);
                let is_end = matches!(other, Some(None));
                (!is_end).then_some(Err("an attribute of an impossible type or size"))
            }
        }
    }
}

impl<'a> Attributes<'a> {
    /// Returns the attribute at an offset and its length, or `Some(None)` at the mark of the end.
    fn at(bytes: &'a [u8], at: usize) -> Option<Option<(Attribute<'a>, usize)>> {
        let kind = le32_at(bytes, at)?;
        if kind == END {
            return Some(None);
        }
        let length = le32_at(bytes, at + 4)? as usize;
        let own = bytes.get(at..at.checked_add(length)?)?;
        if length < 24 || !length.is_multiple_of(8) || kind == 0 || !kind.is_multiple_of(16) {
            return None;
        }
        let (name_length, name_at) = (u8_at(own, 9)?, le16_at(own, 10)?);
        let name = match name_length {
            0 => &[],
            _ => part(own, name_at.into(), usize::from(name_length) * 2)?,
        };
        let body = match u8_at(own, 8)? {
            0 => {
                let size = le32_at(own, 16)? as usize;
                Body::Resident(part(own, le16_at(own, 20)?.into(), size)?)
            }
            1 => Body::NonResident(NonResident::parse(own)?),
            _ => return None,
        };
        Some(Some((Attribute { kind, name, body }, length)))
    }
}

fn part(bytes: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    bytes.get(at..)?.get(..length)
}

/// The value that follows the last attribute.
const END: u32 = 0xffff_ffff;

/// A name of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileName<'a> {
    pub parent: Reference,
    /// The name space.
    pub space: u8,
    /// The name in UTF-16.
    pub name: &'a [u8],
}

impl<'a> FileName<'a> {
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let length = usize::from(u8_at(value, 64)?) * 2;
        Some(Self {
            parent: Reference::from_raw(le64_at(value, 0)?),
            space: u8_at(value, 65)?,
            name: part(value, 66, length)?,
        })
    }

    /// Returns whether it is the short name of a file that also has a long one.
    pub fn is_short(&self) -> bool {
        self.space == 2
    }
}

/// Returns whether a name in UTF-16 is one in ASCII.
pub(super) fn is_name(name: &[u8], ascii: &str) -> bool {
    name.len() == 2 * ascii.len()
        && name.chunks_exact(2).zip(ascii.bytes()).all(|(unit, letter)| unit == [letter, 0])
}

/// Appends a name in UTF-8. Surrogates that have no partner are encoded like other characters (WTF-8), so that no two names
/// become one.
pub(super) fn push_utf8(utf16: &[u8], utf8: &mut Vec<u8>) {
    let units = utf16.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    for decoded in char::decode_utf16(units) {
        match decoded {
            Ok(letter) => {
                utf8.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Err(lone) => {
                let unit = lone.unpaired_surrogate();
                let low = |shift: u32| 0x80 | (unit >> shift & 0x3f) as u8;
                utf8.extend([0xe0 | (unit >> 12) as u8, low(6), low(0)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(units: &[u16]) -> Vec<u8> {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let mut utf8 = vec![];
        push_utf8(&bytes, &mut utf8);
        utf8
    }

    #[test]
    fn names() {
        assert_eq!(utf8(&[0x61, 0xe4, 0x20ac, 0xd83d, 0xde00]), "aä€😀".as_bytes());
        assert_eq!(utf8(&[0xd83d, 0x61, 0xde00]), b"\xed\xa0\xbda\xed\xb8\x80");
        assert!(is_name(b"$\0I\x003\x000\0", "$I30") && !is_name(b"$\0I\x003\x000\x01", "$I30"));
    }

    fn record(attribute: &[u8]) -> Vec<u8> {
        let mut record = vec![0; 1024];
        (record[20], record[29]) = (56, 4);
        record[24..28].copy_from_slice(&(56 + attribute.len() as u32 + 8).to_le_bytes());
        record[56..][..attribute.len()].copy_from_slice(attribute);
        record[56 + attribute.len()..][..4].fill(0xff);
        record
    }

    #[test]
    fn one_attribute() {
        let mut bytes = vec![0; 32];
        (bytes[0], bytes[4], bytes[16], bytes[20]) = (0x80, 32, 8, 24);
        bytes[24..].copy_from_slice(b"contents");
        let whole = record(&bytes);
        let found: Vec<_> = attributes(&whole).collect::<Result<_, _>>().unwrap();
        assert_eq!(found.len(), 1);
        assert!(matches!(found[0].body, Body::Resident(b"contents")));
        for (at, value) in
            [(4, 24), (4, 33), (7, 1), (0, 1), (8, 1), (8, 2), (9, 200), (17, 1), (21, 1)]
        {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let record = record(&bytes);
            let found: Vec<_> = attributes(&record).collect();
            assert!(found.len() <= 2 && found.last().unwrap().is_err(), "{at} {found:?}");
        }
        let mut long = whole;
        long[25] = 0x10;
        assert_eq!(attributes(&long).map(|it| it.is_err()).collect::<Vec<_>>(), [true]);
        assert_eq!(attributes(&[]).map(|it| it.is_err()).collect::<Vec<_>>(), [true]);
    }
}
