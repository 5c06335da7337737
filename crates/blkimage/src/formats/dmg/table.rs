//! Tables of runs (`mish`), each of a part of the content. Numbers are in big-endian order.
//!
//! QEMU takes as many runs as there is room for, and other programs as many as the table says, up to its end marker. Tables in
//! which these differ are refused, as are tables that are not of all of their sectors, in order.

use std::ops::Range;

use super::codec::Codec;
use super::sum::Sum;
use crate::formats::fields::array;

/// A table.
pub(super) struct Table {
    /// The first sector of its part of the content.
    pub start: u64,
    /// Number of sectors of its part.
    pub sectors: u64,
    /// The checksum of the content of its runs, without those that are ignored.
    pub sum: Sum,
    /// In order and without gaps.
    pub runs: Vec<Run>,
}

/// Sectors that are stored in one way.
pub(super) struct Run {
    /// Of the content, not empty.
    pub sectors: Range<u64>,
    pub place: Place,
}

/// Where the content of a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Zero,
    /// Zeros that no checksum is of.
    Ignored,
    /// In the file, from this offset on.
    Stored(u64),
    /// Compressed, in these bytes of the file.
    Compressed(Codec, u64, u64),
}

impl Table {
    /// Decodes a table. Offsets of runs are from `data` on, and must end at or before `end`. Fails with the reason.
    pub fn parse(bytes: &[u8], data: u64, end: u64) -> Result<Self, String> {
        if !Self::is_one(bytes) || bytes.len() < HEADER {
            return Err("has a table of runs that is none".into());
        }
        let number32 = |at| u32::from_be_bytes(array(bytes, at));
        let number64 = |at| u64::from_be_bytes(array(bytes, at));
        if number32(4) != 1 {
            return Err(format!(
                "has a table of runs of version {}, which is not known",
                number32(4)
            ));
        }
        let (entries, rest) = bytes[HEADER..].as_chunks::<ENTRY>();
        if entries.len() as u64 != u64::from(number32(200)) || !rest.is_empty() {
            return Err("has a table with another number of runs than it states".into());
        }
        let (start, sectors) = (number64(8), number64(16));
        let data = data.checked_add(number64(24)).ok_or(PAST_END)?;
        let mut table = Self { start, sectors, sum: Sum::read(&bytes[64..]), runs: Vec::new() };
        let (mut next, mut is_ended) = (0, false);
        for entry in entries {
            if is_ended {
                return Err("has a table with runs behind its end".into());
            }
            let entry = Entry::read(entry);
            match entry.kind {
                END => is_ended = true,
                COMMENT => {}
                _ => {
                    let place = entry.place(data, end)?;
                    if entry.start != next {
                        return Err("has runs that overlap, have gaps or are not in order".into());
                    }
                    next = entry.start.checked_add(entry.sectors).ok_or(TOO_LARGE)?;
                    if entry.sectors > 0 {
                        let of = |sector| start.checked_add(sector).filter(|it| *it <= MAX_SECTORS);
                        let sectors = of(entry.start).zip(of(next)).ok_or(TOO_LARGE)?;
                        table.runs.push(Run { sectors: sectors.0..sectors.1, place });
                    }
                }
            }
        }
        match next == sectors {
            true => Ok(table),
            false => Err(format!("has a table of {sectors} sectors with runs of {next}")),
        }
    }

    /// Returns whether bytes begin like a table.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(b"mish")
    }
}

/// A run as it is stored.
struct Entry {
    kind: u32,
    start: u64,
    sectors: u64,
    offset: u64,
    length: u64,
}

impl Entry {
    fn read(bytes: &[u8; ENTRY]) -> Self {
        let number = |at| u64::from_be_bytes(array(bytes, at));
        Self {
            kind: u32::from_be_bytes(array(bytes, 0)),
            start: number(8),
            sectors: number(16),
            offset: number(24),
            length: number(32),
        }
    }

    /// Returns where the content is. Fails with the reason.
    fn place(&self, data: u64, end: u64) -> Result<Place, String> {
        let stored = || {
            let offset = data.checked_add(self.offset).ok_or(PAST_END)?;
            let is_inside = offset.checked_add(self.length).is_some_and(|it| it <= end);
            if is_inside { Ok(offset) } else { Err(PAST_END) }
        };
        let size = self.sectors.checked_mul(SECTOR).ok_or(TOO_LARGE)?;
        Ok(match self.kind {
            ZERO if self.length <= MAX_CHUNK => Place::Zero,
            IGNORED if self.length <= MAX_CHUNK => Place::Ignored,
            RAW if self.length == size => Place::Stored(stored()?),
            ZERO | IGNORED | RAW => {
                let length = self.length;
                return Err(format!("has a run of {size} bytes that is stored in {length}"));
            }
            kind => {
                let codec = Codec::of(kind).ok_or_else(|| {
                    format!("has a run of the type {kind:#010x}, which is not known")
                })?;
                if size > MAX_CHUNK || self.length > MAX_CHUNK {
                    let limit = MAX_CHUNK >> 20;
                    return Err(format!("has a compressed run of more than {limit} MiB"));
                }
                Place::Compressed(codec, stored()?, self.length)
            }
        })
    }
}

pub(super) const SECTOR: u64 = 512;

/// Types of runs. Others are compressed.
const ZERO: u32 = 0;
const RAW: u32 = 1;
const IGNORED: u32 = 2;
const COMMENT: u32 = 0x7fff_fffe;
const END: u32 = 0xffff_ffff;

/// Sizes of a table without its runs, and of a run, in bytes.
pub(super) const HEADER: usize = 64 + Sum::SIZE + 4;
pub(super) const ENTRY: usize = 40;

/// Maximum size of a compressed run of a dmg image, both as it is stored and decompressed, as in QEMU. `hdiutil` makes them of
/// 1 MiB at most.
/// Limit in bytes.
pub(super) const MAX_CHUNK: u64 = 64 << 20;

/// Number of sectors of the largest content.
const MAX_SECTORS: u64 = (i64::MAX as u64) / SECTOR;

const PAST_END: &str = "has a run that lies past the end of the file, which was probably cut off";
const TOO_LARGE: &str = "has more sectors than any disk";
