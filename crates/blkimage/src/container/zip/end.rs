//! The end of a zip file, which says where its directory is.

use super::fields::{u16_at, u32_at, u64_at};
use crate::error::{ErrorKind, Result};
use crate::storage::HostFile;

/// Returns whether a file has an end of an archive.
pub(super) fn is_there(file: &HostFile) -> Result<bool> {
    let (_, tail) = tail(file)?;
    Ok(only_record(&tail).is_ok())
}

/// Returns the last bytes of a file, with their offset.
fn tail(file: &HostFile) -> Result<(u64, Vec<u8>)> {
    let length = file.size().min(MAX_TAIL as u64);
    let start = file.size() - length;
    let mut tail = vec![0; length as usize];
    file.read_exact_at(&mut tail, start)?;
    Ok((start, tail))
}

/// Where the central directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub members: u64,
    pub offset: u64,
    pub size: u64,
}

impl End {
    /// Finds the directory. Fails if several places may be the end, or if programs would find the directory elsewhere.
    pub fn find(file: &HostFile) -> Result<Self> {
        let (start, tail) = tail(file)?;
        let at = only_record(&tail).map_err(|reason| file.corrupt(reason).at(start))?;
        let place = start + at as u64;
        let record = &tail[at..];
        let field = |at| u16_at(record, at).unwrap_or_default();
        let wide = |at| u32_at(record, at).unwrap_or_default();
        let (disk, first_disk, here, members) = (field(4), field(6), field(8), field(10));
        let (size, offset) = (wide(12), wide(16));
        let several = || file.error(ErrorKind::Unsupported, SEVERAL).at(place);
        let numbers = [
            (u64::from(members), members == u16::MAX),
            (u64::from(size), size == u32::MAX),
            (u64::from(offset), offset == u32::MAX),
        ];
        let large = match at.checked_sub(LOCATOR).map(|at| &tail[at..at + LOCATOR]) {
            Some(locator) if locator.starts_with(b"PK\x06\x07") => {
                Some(Large::read(file, locator, place)?)
            }
            _ => None,
        };
        let is_first = |disk: u16| disk == 0 || disk == u16::MAX && large.is_some();
        if !is_first(disk) || !is_first(first_disk) || here != members {
            return Err(several());
        }
        let end = match large {
            None => {
                let [(members, _), (size, _), (offset, _)] = numbers;
                Self { members, offset, size }
            }
            Some(Large { end, .. }) => {
                let stated = [end.members, end.size, end.offset];
                // Some programs take the short numbers where they are valid, and some take the long ones.
                let differs =
                    |((short, is_long), long): (&(u64, bool), u64)| !is_long && *short != long;
                if numbers.iter().zip(stated).any(differs) {
                    return Err(file.corrupt("states its directory twice, differently").at(place));
                }
                end
            }
        };
        end.check_place(file, large.map_or(place, |large| large.at))?;
        Ok(end)
    }

    /// Fails unless the directory ends at `limit`. Programs add the difference to all offsets.
    fn check_place(&self, file: &HostFile, limit: u64) -> Result<()> {
        let end = self.offset.checked_add(self.size);
        match end.and_then(|end| limit.checked_sub(end)) {
            Some(0) => Ok(()),
            Some(more) => {
                let reason = format!(
                    "is a zip archive after {more} other bytes, as self-extracting programs are: `zip -J` on a copy removes them"
                );
                Err(file.error(ErrorKind::Unsupported, reason).at(0))
            }
            None => Err(file.corrupt("has a directory past its end, and was probably cut off")),
        }
    }
}

/// What the record of zip64 says, and where it begins.
#[derive(Clone, Copy)]
struct Large {
    end: End,
    at: u64,
}

impl Large {
    /// Reads the record to which `locator` leads, in front of the end at `place`.
    fn read(file: &HostFile, locator: &[u8], place: u64) -> Result<Self> {
        let corrupt = |reason: &str| file.corrupt(reason).at(place);
        let (Some(disk), Some(at), Some(disks)) =
            (u32_at(locator, 4), u64_at(locator, 8), u32_at(locator, 16))
        else {
            return Err(corrupt(CUT));
        };
        if disk != 0 || disks > 1 {
            return Err(file.error(ErrorKind::Unsupported, SEVERAL).at(place));
        }
        let expected = place.checked_sub((LOCATOR + RECORD) as u64).ok_or_else(|| corrupt(CUT))?;
        let mut record = [0; RECORD];
        if at > expected {
            return Err(corrupt(CUT));
        }
        file.read_exact_at(&mut record, expected)?;
        let is_plain =
            record.starts_with(b"PK\x06\x06") && u64_at(&record, 4) == Some(RECORD as u64 - 12);
        if !is_plain {
            let reason = "has a record of zip64 that is longer than usual or elsewhere";
            return Err(file.error(ErrorKind::Unsupported, reason).at(expected));
        }
        let number = |at| u64_at(&record, at).unwrap_or_default();
        let is_alone = u64_at(&record, 16) == Some(0) && number(24) == number(32);
        if !is_alone {
            return Err(file.error(ErrorKind::Unsupported, SEVERAL).at(expected));
        }
        let end = End { members: number(32), size: number(40), offset: number(48) };
        // A difference means an archive after other bytes, as does the place of the directory.
        if at != expected && end.offset.checked_add(end.size) == Some(expected) {
            return Err(corrupt("has a record of zip64 in another place than it says"));
        }
        Ok(Self { end, at: expected })
    }
}

/// Returns the place of the record at the end, the last one. Fails if its comment does not reach to the end of the file, or if
/// the comment of another one does, which programs may take instead.
fn only_record(tail: &[u8]) -> Result<usize, &'static str> {
    let reaches_end = |at: usize| {
        u16_at(tail, at + 20).map(|length| at + SHORTEST + usize::from(length)) == Some(tail.len())
    };
    let places = (0..tail.len().saturating_sub(SHORTEST - 1)).rev();
    let mut places = places.filter(|at| tail[*at..].starts_with(MAGIC));
    match places.next() {
        None => Err("has no end of a zip archive, and was probably cut off"),
        Some(last) if !reaches_end(last) => {
            Err("has other bytes past its end, or was cut off there")
        }
        Some(_) if places.clone().any(reaches_end) => {
            Err("has several ends of a zip archive, between which programs choose differently")
        }
        Some(last) => Ok(last),
    }
}

const MAGIC: &[u8] = b"PK\x05\x06";

/// Length of the record at the end without its comment.
const SHORTEST: usize = 22;

/// Lengths of the locator of zip64, and of its record.
const LOCATOR: usize = 20;
const RECORD: usize = 56;

/// The record at the end with the longest comment, and what is in front of it.
const MAX_TAIL: usize = SHORTEST + u16::MAX as usize + LOCATOR;

const CUT: &str = "has an end of zip64 that leads nowhere";

pub(super) const SEVERAL: &str =
    "is a part of a zip archive of several volumes, which are not read";
