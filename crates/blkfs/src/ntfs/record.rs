//! Records that are protected by an update sequence: FILE, INDX and RSTR.
//!
//! The last two bytes of each 512 bytes are replaced by a number that changes with each write, and kept in an array in the
//! record. A record that was written in part has sectors with different numbers.

use std::fmt;

use crate::bytes::{le16_at, le32_at, le64_at};

/// Reason why the update sequence of a record does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// It has another signature.
    Signature([u8; 4]),
    /// The array is not where it can be.
    Array { offset: u16, count: u16 },
    /// The number at the end of a sector is another one. The others were put right.
    Torn { sector: usize, expected: u16, stored: u16 },
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature(bytes) => write!(f, "signature {}", bytes.escape_ascii()),
            Self::Array { offset, count } => {
                write!(f, "an update sequence array of {count} numbers at byte {offset}")
            }
            Self::Torn { sector, expected, stored } => write!(
                f,
                "update sequence number {expected:#06x}, in 512 bytes number {sector} {stored:#06x}"
            ),
        }
    }
}

/// Verifies the update sequence of a record, and puts the bytes back that it replaced.
pub(super) fn restore(record: &mut [u8], signature: &[u8; 4]) -> Result<(), Defect> {
    match record.first_chunk() {
        Some(found) if found == signature => {}
        found => return Err(Defect::Signature(found.copied().unwrap_or_default())),
    }
    let field = |at| le16_at(record, at).unwrap_or_default();
    let (offset, count) = (field(4), field(6));
    let start = usize::from(offset);
    let sectors = record.len() / STRIDE;
    let is_valid = usize::from(count) == sectors + 1
        && offset.is_multiple_of(2)
        && offset >= 8
        // The array must not be replaced itself.
        && start + 2 * usize::from(count) <= STRIDE.min(record.len()) - 2;
    if !is_valid {
        return Err(Defect::Array { offset, count });
    }
    let expected = field(start);
    let mut outcome = Ok(());
    for sector in 0..sectors {
        let (from, to) = (start + 2 + 2 * sector, (sector + 1) * STRIDE - 2);
        let stored = le16_at(record, to).unwrap_or_default();
        if stored == expected {
            record.copy_within(from..from + 2, to);
        } else if outcome.is_ok() {
            outcome = Err(Defect::Torn { sector, expected, stored });
        }
    }
    outcome
}

/// Number of bytes of which the last two are replaced, whatever the size of a sector.
const STRIDE: usize = 512;

/// A reference to a record of the MFT, and how often that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    pub number: u64,
    pub sequence: u16,
}

impl Reference {
    pub fn from_raw(raw: u64) -> Self {
        Self { number: raw & ((1 << 48) - 1), sequence: (raw >> 48) as u16 }
    }
}

/// The fields of a record of the MFT before its attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub sequence: u16,
    pub is_used: bool,
    /// Offset of the first attribute.
    pub attributes: usize,
    /// Offset after the last attribute.
    pub end: usize,
    /// Size of the record.
    pub size: usize,
    /// The record whose attributes are continued here. `None` in the first record of a file.
    pub base: Option<Reference>,
}

impl Header {
    pub fn parse(record: &[u8]) -> Option<Self> {
        let base = le64_at(record, 32)?;
        Some(Self {
            sequence: le16_at(record, 16)?,
            attributes: le16_at(record, 20)?.into(),
            is_used: le16_at(record, 22)? & 1 != 0,
            end: le32_at(record, 24)? as usize,
            size: le32_at(record, 28)? as usize,
            base: (base != 0).then(|| Reference::from_raw(base)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Vec<u8> {
        let mut record = vec![7; 1024];
        record[..8].copy_from_slice(b"FILE\x30\0\x03\0");
        record[48..54].copy_from_slice(&[1, 2, 3, 4, 5, 6]);
        record[510..512].copy_from_slice(&[1, 2]);
        record[1022..].copy_from_slice(&[1, 2]);
        record
    }

    #[test]
    fn whole_and_torn() {
        let mut whole = record();
        assert_eq!(restore(&mut whole, b"FILE"), Ok(()));
        assert_eq!((&whole[510..512], &whole[1022..]), (&[3, 4][..], &[5, 6][..]));
        let mut torn = record();
        torn[1022] = 9;
        let defect = Defect::Torn { sector: 1, expected: 0x0201, stored: 0x0209 };
        assert_eq!(restore(&mut torn, b"FILE"), Err(defect));
        assert_eq!(torn[510..512], [3, 4]);
        assert_eq!(restore(&mut record(), b"INDX"), Err(Defect::Signature(*b"FILE")));
        assert_eq!(restore(&mut [], b"INDX"), Err(Defect::Signature([0; 4])));
    }

    #[test]
    fn arrays_in_odd_places() {
        for (at, value) in [(4, 0x31), (5, 2), (6, 2), (6, 4), (7, 0xff), (4, 0)] {
            let mut bytes = record();
            bytes[at] = value;
            assert!(matches!(restore(&mut bytes, b"FILE"), Err(Defect::Array { .. })), "{at}");
        }
    }
}
