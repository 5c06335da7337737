//! Verifies a structure: its magic number, and with version 5 also the identity of the block and its CRC.

use super::structure::{Field, Structure};
use super::walk::{Place, Walk};
use crate::crc::crc32c;
use crate::visitor::{ObjectId, ProblemKind};

/// A structure that was read.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub structure: Structure,
    /// Offset in the file system in bytes.
    pub offset: u64,
    /// The owner that its header must state: a group or an inode.
    pub owner: u64,
    /// The object for reports.
    pub object: Option<ObjectId>,
}

impl Subject {
    pub fn place(&self) -> Place {
        Place { structure: self.structure.name(), offset: self.offset, object: self.object }
    }
}

impl Walk<'_> {
    /// Verifies a structure of which `bytes` is everything that its CRC covers, and reports the result. Returns whether
    /// its content may be used, with care. The CRC in `bytes` becomes 0.
    pub fn verify(&mut self, subject: Subject, bytes: &mut [u8]) -> bool {
        let fault = self.identity_fault(subject, bytes);
        if !self.superblock().is_v5 {
            if let Some(reason) = &fault {
                self.damaged(subject.place(), reason);
            }
            return fault.is_none();
        }
        if !self.wanted.checks {
            return self.verify_identity(subject, bytes, fault);
        }
        let stored = take_crc(subject.structure.header().crc, bytes);
        let computed = !crc32c(!0, bytes);
        let Some(reason) = fault else {
            if stored == Some(computed) {
                self.matched(subject.structure, bytes.len() as u64);
            } else {
                self.report(subject, bytes, crc_reason(computed, stored));
            }
            return true;
        };
        let is_it = self.is_with_identity(subject, bytes, stored);
        if is_it || !self.log().may_be_newer() {
            self.mismatch(subject.place(), bytes.len() as u64, reason);
        } else {
            // The block may not have been written yet.
            self.damaged(subject.place(), reason);
        }
        is_it
    }

    /// Decides about a structure whose CRC is not wanted, from its identity alone.
    fn verify_identity(
        &mut self,
        subject: Subject,
        bytes: &mut [u8],
        fault: Option<String>,
    ) -> bool {
        let Some(reason) = fault else { return true };
        let stored = take_crc(subject.structure.header().crc, bytes);
        let is_it = self.is_with_identity(subject, bytes, stored);
        if !is_it {
            self.damaged(subject.place(), reason);
        }
        is_it
    }

    /// Reports a block of the right identity whose CRC does not match.
    fn report(&mut self, subject: Subject, bytes: &[u8], reason: String) {
        let lsn = Field::U64(subject.structure.header().lsn).get(bytes).unwrap_or(0);
        let length = bytes.len() as u64;
        if self.log().is_in_motion(subject.offset, length, lsn) {
            let reason = format!("{reason}, while it was being written");
            self.problem(ProblemKind::Skipped, subject.place(), reason);
        } else {
            self.mismatch(subject.place(), length, reason);
        }
    }

    /// Returns what in the header says that this is another block, if something does.
    fn identity_fault(&self, subject: Subject, bytes: &[u8]) -> Option<String> {
        let sb = self.superblock();
        let magics = subject.structure.magic(sb.is_v5);
        let magic = subject.structure.magic_field().get(bytes)?;
        if !magics.is_empty() && !magics.contains(&magic) {
            return Some(format!("magic number {magic:#x} instead of {:#x}", magics[0]));
        }
        if !sb.is_v5 {
            return None;
        }
        let header = subject.structure.header();
        if let Some(at) = header.uuid
            && bytes.get(at..at + 16)? != sb.block_uuid
        {
            return Some("the UUID of another file system".to_owned());
        }
        if let Some(at) = header.address
            && Field::U64(at).get(bytes)? != subject.offset / SECTOR
        {
            let stored = Field::U64(at).get(bytes)?;
            let sector = subject.offset / SECTOR;
            return Some(format!("the address of sector {stored} instead of {sector}"));
        }
        if let Some(field) = header.owner
            && field.get(bytes)? != subject.owner
        {
            return Some(format!("owner {} instead of {}", field.get(bytes)?, subject.owner));
        }
        None
    }

    /// Returns whether the CRC matches once the header has the right identity, so that only the identity was damaged.
    fn is_with_identity(&self, subject: Subject, bytes: &[u8], stored: Option<u32>) -> bool {
        let mut right = bytes.to_vec();
        let header = subject.structure.header();
        if let Some(at) = header.uuid
            && let Some(place) = right.get_mut(at..at + 16)
        {
            place.copy_from_slice(&self.superblock().block_uuid);
        }
        if let Some(at) = header.address {
            Field::U64(at).set(&mut right, subject.offset / SECTOR);
        }
        if let Some(field) = header.owner {
            field.set(&mut right, subject.owner);
        }
        subject.structure.magic(true).iter().any(|magic| {
            subject.structure.magic_field().set(&mut right, *magic);
            stored == Some(!crc32c(!0, &right))
        })
    }
}

/// Returns the stored CRC, and puts 0 in its place.
fn take_crc(at: usize, bytes: &mut [u8]) -> Option<u32> {
    let field = bytes.get_mut(at..)?.first_chunk_mut::<4>()?;
    Some(u32::from_le_bytes(std::mem::take(field)))
}

fn crc_reason(computed: u32, stored: Option<u32>) -> String {
    format!("crc32c {computed:#010x}, stored {:#010x}", stored.unwrap_or(0))
}

/// The unit of addresses in bytes.
const SECTOR: u64 = 512;
