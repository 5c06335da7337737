//! Files with holes, as GNU tar stores them: with a map in the header, in PAX records (0.0 and 0.1), or in front of the bytes
//! (1.0).
//!
//! Only maps are read from which GNU tar and Python's tarfile extract the same: parts in order, of whole blocks except for the
//! last one, which ends where the file does. GNU tar writes a part of no bytes there if the file ends with a hole, and a file
//! whose map lacks it is shorter.

use std::ops::Range;

use super::header::{BLOCK, decimal, is_zero, number};

/// What of a file with holes is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sparse {
    /// Size of the file.
    pub size: u64,
    /// The parts that are stored, one after the other, and where each begins among the stored bytes.
    pub parts: Vec<(Range<u64>, u64)>,
}

/// PAX records about a file with holes.
#[derive(Default)]
pub(super) struct Records {
    is_any: bool,
    major: Option<u64>,
    minor: Option<u64>,
    /// Size of the file in 0.0 and 0.1, and in 1.0.
    size: Option<u64>,
    real_size: Option<u64>,
    name: Option<Vec<u8>>,
    count: Option<u64>,
    /// Offsets and lengths in turn.
    map: Vec<u64>,
}

/// The pairs in fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    /// Each field has one.
    All,
    /// They end before the last field.
    End,
    /// One is no pair of numbers, or programs read them differently.
    Invalid,
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
        // GNU tar makes room for the map where it reads the number of parts.
        let has_count = self.count.is_some();
        match &key[b"GNU.sparse.".len()..] {
            b"major" => only(&mut self.major)?,
            b"minor" => only(&mut self.minor)?,
            b"size" => only(&mut self.size)?,
            b"realsize" => only(&mut self.real_size)?,
            b"numblocks" => only(&mut self.count)?,
            b"name" if self.name.is_none() && !value.is_empty() => self.name = Some(value.into()),
            b"offset" if has_count && self.map.len().is_multiple_of(2) => self.map.push(number()?),
            b"numbytes" if !self.map.len().is_multiple_of(2) => self.map.push(number()?),
            b"map" if has_count && self.map.is_empty() => {
                let numbers = value.split(|byte| *byte == b',').map(decimal);
                self.map = numbers.collect::<Option<_>>().ok_or(ODD)?;
            }
            _ => return Err(ODD),
        }
        Ok(())
    }

    /// Returns whether the map is in front of the bytes of the file.
    pub fn announce_map(&self) -> bool {
        (self.major, self.minor) == (Some(1), Some(0))
            && (self.size, self.count) == (None, None)
            && self.map.is_empty()
    }

    /// Returns the size of a file whose map is in front of its bytes.
    pub fn real_size(&self) -> Option<u64> {
        self.real_size
    }

    /// Returns the size of the file and the map in the records, if they have one.
    pub fn map(&self) -> Option<(u64, &[u64])> {
        let is_one = (self.major, self.minor, self.real_size) == (None, None, None)
            && self.count == Some(self.map.len() as u64 / 2)
            && self.map.len().is_multiple_of(2);
        self.size.filter(|_| is_one).map(|size| (size, &*self.map))
    }

    /// Returns the name of the file, which is not that in its header.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }
}

impl Sparse {
    /// Returns the parts of a map, offsets and lengths in turn, of a file of `size` bytes, of which `stored` are stored. `None` if
    /// programs read it differently.
    pub fn of_map(size: u64, map: &[u64], stored: u64) -> Option<Self> {
        let (mut parts, mut last, mut taken) = (Vec::new(), 0, 0_u64);
        for pair in map.chunks_exact(2) {
            let (offset, length) = (pair[0], pair[1]);
            let end = offset.checked_add(length)?;
            // Programs differ in where the next part begins.
            if offset < last || length > 0 && !taken.is_multiple_of(BLOCK) {
                return None;
            }
            if length > 0 {
                parts.push((offset..end, taken));
            }
            last = end;
            taken = taken.checked_add(length)?;
        }
        let is_whole = !map.is_empty() && last == size && taken == stored;
        (is_whole && size <= i64::MAX as u64).then_some(Self { size, parts })
    }
}

/// Appends the pairs in the fields of a header, up to the first one without a length.
pub(super) fn pairs(fields: &[u8], map: &mut Vec<u64>) -> Pairs {
    for (index, pair) in fields.chunks_exact(24).enumerate() {
        if pair[12] == 0 {
            return if is_zero(&fields[24 * index..]) { Pairs::End } else { Pairs::Invalid };
        }
        let (offset, length) = pair.split_at(12);
        let (Some(offset), Some(length)) = (number(offset), number(length)) else {
            return Pairs::Invalid;
        };
        if pair[0] == 0 {
            return Pairs::Invalid;
        }
        map.extend([offset, length]);
    }
    Pairs::All
}

/// Maximum number of parts of files with holes in a tar archive. Each takes 24 bytes of memory.
/// Limit in parts.
pub(super) const MAX_PARTS: usize = 1 << 20;

/// Part of a reason.
const ODD: &str = "odd records of sparse members";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_that_programs_read_differently() {
        let of = |size, map: &[u64], stored| Sparse::of_map(size, map, stored);
        let parts = vec![(512..1024, 0), (2048..2058, 512)];
        assert_eq!(
            of(4096, &[512, 512, 2048, 10, 4096, 0], 522),
            Some(Sparse { size: 4096, parts })
        );
        assert_eq!(of(4096, &[4096, 0], 0), Some(Sparse { size: 4096, parts: Vec::new() }));
        // Without the part of no bytes at its end, GNU tar makes a shorter file.
        assert_eq!(of(4096, &[512, 512], 512), None);
        assert_eq!(of(4096, &[], 0), None);
        assert_eq!(of(0, &[], 0), None);
        // In disorder, beyond the end, of parts of blocks, and of another number of bytes.
        assert_eq!(of(4096, &[512, 512, 0, 512, 4096, 0], 1024), None);
        assert_eq!(of(4096, &[1024, 0, 512, 512, 4096, 0], 512), None);
        assert_eq!(of(4096, &[512, 4096], 4096), None);
        assert_eq!(of(4096, &[0, 10, 512, 512, 4096, 0], 522), None);
        assert_eq!(of(4096, &[0, 512, 4096, 0], 511), None);
        assert_eq!(of(4096, &[u64::MAX, 2], 2), None);
    }

    #[test]
    fn fields_that_programs_read_differently() {
        let mut map = Vec::new();
        let pair = *b"00000001000 00000000010 ";
        let mut fields = [pair, [0; 24]].concat();
        assert_eq!(pairs(&fields, &mut map), Pairs::End);
        assert_eq!(map, [512, 8]);
        assert_eq!(pairs(&pair, &mut map), Pairs::All);
        // An offset without a length, or past the end of the list.
        fields[24] = b'1';
        assert_eq!(pairs(&fields, &mut map), Pairs::Invalid);
        assert_eq!(pairs(&[[0; 24], pair].concat(), &mut map), Pairs::Invalid);
        fields[12] = b'8';
        assert_eq!(pairs(&fields, &mut map), Pairs::Invalid);
    }

    #[test]
    fn records_of_each_version() {
        let of = |records: &[(&str, &str)]| {
            let mut all = Records::default();
            let add = |(key, value): &(&str, &str)| {
                all.add(format!("GNU.sparse.{key}").as_bytes(), value.as_bytes())
            };
            records.iter().try_for_each(add).map(|()| all)
        };
        let map = of(&[("size", "9"), ("numblocks", "1"), ("map", "1,8")]).unwrap();
        assert_eq!((map.map(), map.announce_map()), (Some((9, &[1, 8][..])), false));
        let old = [("size", "9"), ("numblocks", "1"), ("offset", "1"), ("numbytes", "8")];
        assert_eq!(of(&old).unwrap().map(), Some((9, &[1, 8][..])));
        let new = of(&[("major", "1"), ("minor", "0"), ("name", "x"), ("realsize", "9")]).unwrap();
        assert_eq!((new.map(), new.announce_map(), new.real_size()), (None, true, Some(9)));
        // Another number of pairs, a map before its number, twice, keys of two versions.
        assert_eq!(of(&[("size", "9"), ("numblocks", "2"), ("map", "1,8")]).unwrap().map(), None);
        assert_eq!(of(&[("size", "9"), ("numblocks", "1"), ("map", "1,8,9")]).unwrap().map(), None);
        assert!(of(&[("map", "1,8"), ("numblocks", "1")]).is_err());
        assert!(of(&[("size", "9"), ("size", "9")]).is_err());
        assert!(of(&[("numblocks", "1"), ("offset", "1"), ("offset", "8")]).is_err());
        assert!(of(&[("numblocks", "0"), ("map", "")]).is_err());
        assert!(of(&[("more", "1")]).is_err());
        let both = [("major", "1"), ("minor", "0"), ("size", "9"), ("realsize", "9")];
        let both = of(&both).unwrap();
        assert_eq!((both.map(), both.announce_map()), (None, false));
    }
}
