//! Files with holes, as GNU tar stores them: with a map in the header, in PAX records (0.0 and 0.1), or in front of the bytes
//! (1.0).
//!
//! Only maps are read from which GNU tar and Python's tarfile extract the same: parts in order, of whole blocks except for the
//! last one.

use std::ops::Range;

use super::{BLOCK, Entry, Reader, decimal, octal};
use crate::error::{ErrorKind, Result, excerpt};

/// What of a file with holes is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sparse {
    /// Size of the file.
    pub size: u64,
    /// The parts that are stored, one behind the other, and where each begins among the stored bytes.
    pub parts: Vec<(Range<u64>, u64)>,
}

/// PAX records about a file with holes.
#[derive(Default)]
pub(super) struct Records {
    is_any: bool,
    major: Option<u64>,
    minor: Option<u64>,
    size: Option<u64>,
    name: Option<Vec<u8>>,
    count: Option<u64>,
    /// Offsets and lengths in turn.
    map: Vec<u64>,
}

impl Records {
    pub fn is_empty(&self) -> bool {
        !self.is_any
    }

    /// Takes over a record.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        self.is_any = true;
        let number = || decimal(value).ok_or(ODD);
        let only = |place: &mut Option<u64>| match place.replace(decimal(value).ok_or(ODD)?) {
            None => Ok(()),
            Some(_) => Err(ODD),
        };
        match &key[b"GNU.sparse.".len()..] {
            b"major" => only(&mut self.major)?,
            b"minor" => only(&mut self.minor)?,
            b"size" | b"realsize" => only(&mut self.size)?,
            b"numblocks" => only(&mut self.count)?,
            b"name" if self.name.is_none() && !value.is_empty() => self.name = Some(value.into()),
            b"offset" if self.map.len().is_multiple_of(2) => self.map.push(number()?),
            b"numbytes" if !self.map.len().is_multiple_of(2) => self.map.push(number()?),
            b"map" if self.map.is_empty() => {
                let numbers = value.split(|byte| *byte == b',').map(decimal);
                self.map = numbers.collect::<Option<_>>().ok_or(ODD)?;
            }
            _ => return Err(ODD),
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// Reads the map in the header of a file and in the blocks behind it. Returns it with the size of the file.
    pub(super) fn old_map(&mut self, header: &[u8; 512], start: u64) -> Result<(u64, Vec<u64>)> {
        let corrupt = || self.file.corrupt("has no valid map of a sparse member").at(start);
        let size = number(&header[483..495]).ok_or_else(corrupt)?;
        let mut map = Vec::new();
        if !take(&header[386..482], &mut map) {
            return Err(corrupt());
        }
        let mut goes_on = header[482] != 0;
        while goes_on {
            let mut block = [0; BLOCK as usize];
            self.file.read_exact_at(&mut block, self.at)?;
            self.at += BLOCK;
            goes_on = block[504] != 0;
            if !take(&block[..504], &mut map) {
                return Err(self.file.corrupt("has no valid map of a sparse member").at(self.at));
            }
            if map.len() > 2 * MAX_PARTS {
                return Err(self.too_many(start));
            }
        }
        Ok((size, map))
    }

    fn too_many(&self, at: u64) -> crate::Error {
        let reason = format!("has a sparse member of more than {MAX_PARTS} parts");
        self.file.error(ErrorKind::Unsupported, reason).at(at)
    }

    /// Completes a file with holes by its map: the one in its header, that of `records`, or the one in front of its bytes.
    pub(super) fn add_holes(
        &self,
        entry: &mut Entry,
        records: &Records,
        old: Option<(u64, Vec<u64>)>,
    ) -> Result<()> {
        let start = entry.header();
        let odd = || {
            let reason = format!(
                "has the sparse member \"{}\", whose map is damaged, or one that programs read differently",
                excerpt(&entry.name)
            );
            self.file.corrupt(reason).at(start)
        };
        let in_front = (records.major, records.minor) == (Some(1), Some(0));
        let is_one = match (&old, in_front) {
            (Some(_), _) => !records.is_any,
            (None, true) => records.map.is_empty() && records.count.is_none(),
            (None, false) => {
                (records.major, records.minor) == (None, None)
                    && records.count == Some(records.map.len() as u64 / 2)
            }
        };
        if !entry.is_file() || !is_one {
            return Err(odd());
        }
        let (size, map) = match old {
            Some(old) => old,
            None => (records.size.ok_or_else(odd)?, records.map.clone()),
        };
        let (map, taken) = match in_front {
            true => self.map_in_front(entry)?.ok_or_else(odd)?,
            false => (map, 0),
        };
        let stored = entry.size.checked_sub(taken).ok_or_else(odd)?;
        let sparse = of_map(size, &map, stored).ok_or_else(odd)?;
        entry.offset += taken;
        entry.size = stored;
        entry.sparse = Some(sparse.into());
        if let Some(name) = &records.name {
            entry.name.clone_from(name);
        }
        Ok(())
    }

    /// Reads the map in front of the bytes of a member: a count and that many pairs, each number on a line, up to the end of a
    /// block. Returns `None` if it is none.
    fn map_in_front(&self, entry: &Entry) -> Result<Option<(Vec<u64>, u64)>> {
        let (mut taken, mut line, mut map) = (0, Vec::new(), Vec::new());
        let mut wanted = None;
        loop {
            if taken + BLOCK > entry.size.next_multiple_of(BLOCK) {
                return Ok(None);
            }
            let mut block = [0; BLOCK as usize];
            self.file.read_exact_at(&mut block, entry.offset + taken)?;
            taken += BLOCK;
            for byte in block {
                if byte != b'\n' {
                    line.push(byte);
                    if line.len() > 20 {
                        return Ok(None);
                    }
                    continue;
                }
                let Some(number) = decimal(&line).filter(|_| !line.is_empty()) else {
                    return Ok(None);
                };
                line.clear();
                match wanted {
                    None if number > MAX_PARTS as u64 => return Err(self.too_many(entry.header())),
                    None => wanted = Some(2 * number as usize),
                    Some(_) => map.push(number),
                }
                if wanted == Some(map.len()) {
                    return Ok(Some((map, taken)));
                }
            }
        }
    }
}

/// Returns the parts of a map, which take `stored` bytes. `None` if they are in disorder, or take another number.
fn of_map(size: u64, map: &[u64], stored: u64) -> Option<Sparse> {
    let (mut parts, mut last, mut taken) = (Vec::with_capacity(map.len() / 2), 0, 0_u64);
    for pair in map.chunks_exact(2) {
        let (offset, length) = (pair[0], pair[1]);
        let end = offset.checked_add(length).filter(|end| *end <= size)?;
        // Programs differ in where the next part begins.
        if offset < last || !taken.is_multiple_of(BLOCK) && length > 0 {
            return None;
        }
        if length > 0 {
            parts.push((offset..end, taken));
            last = end;
        }
        taken = taken.checked_add(length)?;
    }
    (taken == stored && size <= i64::MAX as u64).then_some(Sparse { size, parts })
}

/// Appends the pairs of a header up to the first one without a length and an offset. Returns `false` if one is no number.
fn take(pairs: &[u8], map: &mut Vec<u64>) -> bool {
    for pair in pairs.chunks_exact(24) {
        if pair[0] == 0 || pair[12] == 0 {
            break;
        }
        let (Some(offset), Some(length)) = (number(&pair[..12]), number(&pair[12..])) else {
            return false;
        };
        map.extend([offset, length]);
    }
    true
}

/// Returns the number in a field, in octal digits or in binary.
fn number(field: &[u8]) -> Option<u64> {
    match field[0] {
        0x80 if field[1..4] == [0; 3] => {
            Some(field[4..].iter().fold(0, |size, byte| size << 8 | u64::from(*byte)))
        }
        0x80.. => None,
        _ => octal(field),
    }
}

/// Maximum number of parts of a file with holes in a tar archive.
/// Limit in parts.
const MAX_PARTS: usize = 1 << 20;

/// Part of a reason.
const ODD: &str = "odd records of sparse members";
