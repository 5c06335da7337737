//! The region tables: where the BAT and the metadata are, and which ranges no block may overlap.

use std::ops::Range;

use super::checksum;
use super::guid::Guid;
use super::header::Header;
use super::units::{KIB, MIB};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Head, array, check_inside};
use crate::storage::HostFile;

/// A region of the file.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

pub(super) struct Regions {
    pub bat: Region,
    pub metadata: Region,
    pub taken: Taken,
}

impl Regions {
    /// Reads both tables, which must be equal. `file` is read through the log.
    pub fn read(file: &HostFile, header: &Header) -> Result<Self> {
        let [table, other] = OFFSETS.map(|offset| Head::read(file, offset, SIZE));
        let (table, other) = (table?, other?);
        for (table, offset) in [(&table, OFFSETS[0]), (&other, OFFSETS[1])] {
            if !table.starts_with(b"regi") || !checksum::matches(table.bytes()) {
                let reason = "region table is not valid: checksum or signature does not match";
                return Err(file.corrupt(reason).at(offset));
            }
        }
        let count = table.le32(8);
        if count > MAX_ENTRIES {
            let reason = format!("region table has {count} entries, more than {MAX_ENTRIES}");
            return Err(file.corrupt(reason).at(OFFSETS[0] + 8));
        }
        let end = TABLE_HEADER + count as usize * ENTRY;
        let is_equal = count == other.le32(8)
            && table.bytes()[TABLE_HEADER..end] == other.bytes()[TABLE_HEADER..end];
        if !is_equal {
            return Err(file.corrupt("its region tables differ").at(OFFSETS[1]));
        }
        let (mut bat, mut metadata) = (None, None);
        let log = Region { offset: header.log_offset, length: header.log_length };
        let mut taken = vec![(0..MIB, HEADER_AT), (log.range(), HEADER_AT)];
        for at in (TABLE_HEADER..end).step_by(ENTRY) {
            let offset = OFFSETS[0] + at as u64;
            let entry = &table.bytes()[at..at + ENTRY];
            let region = Region {
                offset: u64::from_le_bytes(array(entry, 16)),
                length: u32::from_le_bytes(array(entry, 24)).into(),
            };
            let is_required = u32::from_le_bytes(array(entry, 28)) & 1 != 0;
            if !region.offset.is_multiple_of(MIB) {
                let reason = "region does not begin at a multiple of 1 MiB";
                return Err(file.corrupt(reason).at(offset));
            }
            taken.push((region.range(), offset));
            let known = match Guid(array(entry, 0)) {
                BAT => &mut bat,
                METADATA => &mut metadata,
                guid if is_required => {
                    let reason = format!("needs a region of unknown type {guid}");
                    return Err(file.error(ErrorKind::Unsupported, reason).at(offset));
                }
                _ => continue,
            };
            if known.replace(region).is_some() {
                return Err(file.corrupt("region table has two regions of one type").at(offset));
            }
            check_inside(file, region.offset, region.length, "region")?;
        }
        let taken = Taken::new(file, taken)?;
        match (bat, metadata) {
            (Some(bat), Some(metadata)) => Ok(Self { bat, metadata, taken }),
            _ => {
                let reason = "region table lacks the BAT or the metadata";
                Err(file.corrupt(reason).at(OFFSETS[0]))
            }
        }
    }
}

impl Region {
    fn range(self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

/// The ranges of the headers, the log and all regions, sorted. None of them overlap.
pub(super) struct Taken(Vec<Range<u64>>);

impl Taken {
    /// Sorts ranges, each of which comes with the offset of its description.
    fn new(file: &HostFile, mut ranges: Vec<(Range<u64>, u64)>) -> Result<Self> {
        ranges.retain(|(range, _)| !range.is_empty());
        ranges.sort_unstable_by_key(|(range, at)| (range.start, *at));
        for pair in ranges.windows(2) {
            if pair[0].0.end > pair[1].0.start {
                let at = pair[0].1.max(pair[1].1);
                return Err(file.corrupt("regions overlap").at(at));
            }
        }
        Ok(Self(ranges.into_iter().map(|(range, _)| range).collect()))
    }

    /// Returns whether a part of `range` is taken.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        let next = self.0.partition_point(|taken| taken.end <= range.start);
        self.0.get(next).is_some_and(|taken| taken.start < range.end)
    }
}

const BAT: Guid = Guid::new(0x2dc27766_f623_4200_9d64_115e9bfd4a08);
const METADATA: Guid = Guid::new(0x8b7ca206_4790_4b9a_b8fe_575f050f886e);

pub(super) const OFFSETS: [u64; 2] = [192 * KIB, 256 * KIB];

/// Number of bytes that the checksum of a table covers.
const SIZE: usize = 64 << 10;

const TABLE_HEADER: usize = 16;
const ENTRY: usize = 32;
const MAX_ENTRIES: u32 = 2047;

/// The log is described by the headers.
const HEADER_AT: u64 = super::header::OFFSETS[0];
