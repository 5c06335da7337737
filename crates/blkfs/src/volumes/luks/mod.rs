//! LUKS: encrypted disks. The two headers of LUKS2 have checksums. The header of LUKS1 and the encrypted data have
//! none.
//!
//! The primary header of LUKS2 is at offset 0, the secondary one directly after it, where one of nine sizes of
//! a header puts it. A writer replaces one after the other and counts up the sequence id, so that one of them is always intact.

mod header;

use std::sync::Arc;

use blkimage::Source;

use self::header::{Copy, Header, Role, SIZES};
use super::Checks;
use crate::bytes::be16_at;
use crate::error::Result;
use crate::visitor::ProblemKind;
use crate::volume::Volume;

/// The headers of an encrypted disk.
#[derive(Clone, Debug)]
pub struct Luks {
    /// Version of the format, 1 or 2.
    pub version: u16,
    /// UUID, if it has one.
    pub uuid: Option<String>,
    /// Label as stored, if it has one.
    pub label: Option<Vec<u8>>,
    /// Number of bytes from the beginning on that have checksums.
    pub headers: u64,
    /// The headers that were verified.
    pub checks: Checks,
}

impl Luks {
    /// Reads the headers of an encrypted disk. Returns `None` if it does not begin with one.
    ///
    /// # Errors
    ///
    /// Fails if the beginning cannot be read.
    pub fn open(source: &Arc<dyn Source>) -> Result<Option<Self>> {
        let volume = Volume::new(source.clone());
        let Some(bytes) = header::head(&volume, 0)? else { return Ok(None) };
        if !bytes.starts_with(Role::Primary.magic()) {
            return Ok(None);
        }
        Ok(Some(match be16_at(&bytes, 6) {
            Some(1) => Self::first(&bytes),
            _ => Self::second(&volume),
        }))
    }

    /// Reads the secondary header of a disk that does not begin like an encrypted one. Returns `None` unless there is
    /// an intact one. Then the primary header is reported as damaged.
    ///
    /// A disk that was formatted anew may have a secondary header of before, so that any other content comes first.
    ///
    /// # Errors
    ///
    /// Fails if the disk cannot be read.
    pub fn open_secondary(source: &Arc<dyn Source>) -> Result<Option<Self>> {
        let volume = Volume::new(source.clone());
        for offset in SIZES {
            if let Copy::Intact(_) = Copy::read(&volume, Role::Secondary, offset)? {
                return Ok(Some(Self::second(&volume)));
            }
        }
        Ok(None)
    }

    /// LUKS1, whose header has no checksum.
    fn first(bytes: &[u8]) -> Self {
        let uuid = header::text(bytes, 168, 40);
        Self { version: 1, uuid, label: None, headers: 0, checks: Checks::default() }
    }

    fn second(volume: &Volume) -> Self {
        let mut checks = Checks::default();
        let primary = add(&mut checks, volume, Role::Primary, 0);
        let place = match &primary {
            Some(header) => header.size,
            None => secondary_place(volume),
        };
        let secondary = add(&mut checks, volume, Role::Secondary, place);
        if let (Some(first), Some(second)) = (&primary, &secondary) {
            compare(&mut checks, first, second);
        }
        let headers = checks.matched.iter().map(|matched| matched.length).sum();
        let used = primary.into_iter().chain(secondary).max_by_key(|header| header.sequence);
        let (uuid, label) = used.map(|it| (it.uuid, it.label)).unwrap_or_default();
        Self { version: 2, uuid, label, headers, checks }
    }
}

/// Verifies a header. Returns it if it is intact.
fn add(checks: &mut Checks, volume: &Volume, role: Role, offset: u64) -> Option<Header> {
    let name = role.name();
    match Copy::read(volume, role, offset) {
        Ok(Copy::Intact(header)) => {
            checks.matched(name, header.size);
            return Some(header);
        }
        Ok(Copy::Mismatch { length, reason }) => checks.mismatch(name, offset, length, reason),
        Ok(Copy::Damaged(reason)) => checks.damaged(name, offset, reason),
        Ok(Copy::Unknown(reason)) => checks.problem(ProblemKind::Skipped, name, offset, reason),
        Ok(Copy::Absent) => checks.damaged(name, offset, "its magic bytes are missing"),
        Err(error) => checks.failed(name, offset, &error),
    }
    None
}

/// Returns where the secondary header is if the primary one does not say: the first place with an intact one, or with the
/// magic bytes of one.
fn secondary_place(volume: &Volume) -> u64 {
    let mut place = None;
    for offset in SIZES {
        match Copy::read(volume, Role::Secondary, offset) {
            Ok(Copy::Intact(_)) => return offset,
            Ok(Copy::Absent) | Err(_) => {}
            Ok(_) => place = place.or(Some(offset)),
        }
    }
    place.unwrap_or(SIZES[0])
}

/// Compares two intact headers.
fn compare(checks: &mut Checks, first: &Header, second: &Header) {
    if first.sequence != second.sequence {
        let (one, two) = (first.sequence, second.sequence);
        checks.remarks.push(format!(
            "the primary header has the sequence id {one} and the secondary one {two}: an update was interrupted"
        ));
    } else if !first.is_same(second) {
        let id = first.sequence;
        let reason = format!("both headers have the sequence id {id} and different content");
        checks.damaged(Role::Secondary.name(), first.size, reason);
    }
}

#[cfg(test)]
mod tests;
