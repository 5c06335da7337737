//! The content of an attribute, which may be divided among several records.

use super::attribute::{Attribute, Body, NonResident, attributes, kind};
use super::boot::Boot;
use super::runs::Stream;
use crate::bytes::{le16_at, le32_at, le64_at};
use crate::error::Result;
use crate::volume::Volume;

use super::record::Reference;

/// The content of an attribute.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Bytes in a record.
    Resident(Vec<u8>),
    /// Clusters.
    NonResident(Stream),
}

impl Content {
    /// Returns the content of the attribute of a type whose name `is_name`, from the records of a file.
    pub fn find(
        records: &[&[u8]],
        wanted: u32,
        is_name: impl Fn(&[u8]) -> bool,
        boot: &Boot,
    ) -> std::result::Result<Option<Self>, &'static str> {
        let mut parts: Vec<NonResident<'_>> = vec![];
        for attribute in records.iter().flat_map(|record| attributes(record)) {
            // An error is reported where all attributes are looked at.
            let Ok(Attribute { kind, name, body }) = attribute else { continue };
            if kind != wanted || !is_name(name) {
                continue;
            }
            match body {
                Body::Resident(bytes) => return Ok(Some(Self::Resident(bytes.to_vec()))),
                Body::NonResident(part) => parts.push(part),
            }
        }
        parts.sort_by_key(|part| part.lowest);
        let Some(first) = parts.first() else { return Ok(None) };
        let mut stream = Stream::new(boot.cluster);
        for part in &parts {
            stream.append(part.runs(boot.clusters))?;
        }
        stream.set_size(first.initialized.min(first.size));
        Ok(Some(Self::NonResident(stream)))
    }

    /// Returns the number of bytes that are stored.
    pub fn size(&self) -> u64 {
        match self {
            Self::Resident(bytes) => bytes.len() as u64,
            Self::NonResident(stream) => stream.size(),
        }
    }

    /// Returns the number of bytes that are read from clusters, from holes too.
    pub fn stored_size(&self) -> u64 {
        match self {
            Self::Resident(_) => 0,
            Self::NonResident(stream) => stream.size(),
        }
    }

    /// Fills `bytes` from `offset` on, with zeros past the end.
    pub fn read_into(&self, volume: &Volume, bytes: &mut [u8], offset: u64) -> Result<()> {
        match self {
            Self::NonResident(stream) => stream.read_into(volume, bytes, offset),
            Self::Resident(whole) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(whole.len());
                let count = bytes.len().min(whole.len() - start);
                bytes[..count].copy_from_slice(&whole[start..start + count]);
                bytes[count..].fill(0);
                Ok(())
            }
        }
    }

    /// Returns the first `limit` bytes, or all of them if there are fewer.
    pub fn read(&self, volume: &Volume, limit: u64) -> Result<Vec<u8>> {
        // No more than exists on the disk, also if there are holes.
        let mut bytes = vec![0; self.size().min(limit).min(volume.size()) as usize];
        self.read_into(volume, &mut bytes, 0)?;
        Ok(bytes)
    }
}

/// Takes a number of bytes from a budget, which is what the volume has room for. Returns whether it sufficed.
pub(super) fn charge(budget: &mut u64, bytes: u64) -> bool {
    let rest = budget.checked_sub(bytes);
    *budget = rest.unwrap_or(*budget);
    rest.is_some()
}

/// Reason for the end of a budget: structures overlap or are named several times.
pub(super) const NO_BUDGET: &str = "more metadata than the volume has room for";

/// An entry of an attribute list: where an attribute, or a part of it, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub kind: u32,
    pub has_name: bool,
    /// The first cluster of the part, within the content.
    pub lowest: u64,
    pub record: Reference,
}

/// Returns the attribute list of a file from its first record. `None` if it has none.
pub(super) fn attribute_list(
    record: &[u8],
    volume: &Volume,
    boot: &Boot,
    budget: &mut u64,
) -> Option<std::result::Result<Vec<Listed>, &'static str>> {
    let content = match Content::find(&[record], kind::ATTRIBUTE_LIST, |_| true, boot) {
        Ok(content) => content?,
        Err(reason) => return Some(Err(reason)),
    };
    if !charge(budget, content.stored_size().min(MAX_LIST)) {
        return Some(Err(NO_BUDGET));
    }
    Some(match content.read(volume, MAX_LIST) {
        Ok(bytes) => parse(&bytes).ok_or("an entry with impossible sizes in an attribute list"),
        Err(_) => Err("an attribute list that cannot be read"),
    })
}

fn parse(bytes: &[u8]) -> Option<Vec<Listed>> {
    let (mut listed, mut at) = (vec![], 0);
    // What remains may be padding.
    while at + MIN_ENTRY <= bytes.len() {
        let length = usize::from(le16_at(bytes, at + 4)?);
        if length < MIN_ENTRY || !length.is_multiple_of(8) {
            return None;
        }
        listed.push(Listed {
            kind: le32_at(bytes, at)?,
            has_name: bytes.get(at + 6)? != &0,
            lowest: le64_at(bytes, at + 8)?,
            record: Reference::from_raw(le64_at(bytes, at + 16)?),
        });
        at += length;
    }
    Some(listed)
}

/// Size of an entry of an attribute list without its name.
const MIN_ENTRY: usize = 26;

/// Maximum size of an attribute list, as in Windows. Limit in bytes.
const MAX_LIST: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_an_attribute_list() {
        let mut bytes = vec![0; 64];
        (bytes[0], bytes[4], bytes[16], bytes[22]) = (0x30, 32, 5, 9);
        (bytes[32], bytes[36], bytes[38], bytes[40], bytes[48]) = (0x80, 32, 3, 7, 6);
        let entry = |kind, has_name, lowest, number, sequence| Listed {
            kind,
            has_name,
            lowest,
            record: Reference { number, sequence },
        };
        let expected = vec![entry(0x30, false, 0, 5, 9), entry(0x80, true, 7, 6, 0)];
        assert_eq!(parse(&bytes), Some(expected));
        for (at, value) in [(4, 0), (4, 31), (4, 24)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert_eq!(parse(&bytes), None);
        }
    }
}
