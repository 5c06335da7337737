//! The footer of a vpc image, and its copy at the start.

use super::size::Sizes;
use crate::error::{ErrorKind, Result};
use crate::formats::fields::Head;
use crate::hint::Hint;
use crate::storage::HostFile;

/// A footer with a valid checksum.
pub(super) struct Footer {
    pub kind: Kind,
    pub sizes: Sizes,
    /// Offset of the second header.
    pub next: u64,
    pub id: Id,
    /// Offset of the footer itself.
    pub offset: u64,
}

/// The kind of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Fixed,
    Dynamic,
    Differencing,
}

/// The UUID of a disk.
pub(super) type Id = [u8; 16];

impl Footer {
    /// Reads the footer. Fails if a disk that has two does not end with one that says the same.
    ///
    /// As in QEMU, the copy at the start is used if there is one. The guest of a fixed disk can write one
    /// there, and cannot reach the end.
    pub fn read(file: &HostFile) -> Result<Self> {
        let not_vpc = || file.error(ErrorKind::Format, "is not a vpc image");
        let Some(end) = file.size().checked_sub(FOOTER as u64) else {
            return Err(not_vpc());
        };
        let copy = Head::read(file, 0, FOOTER)?;
        let last = Head::read(file, end, FOOTER)?;
        let has_copy = copy.starts_with(COOKIE);
        if !has_copy && last.bytes()[1..].starts_with(COOKIE) {
            let reason = "is a vpc image of before 2004, which is not read";
            return Err(file.error(ErrorKind::Unsupported, reason).with_hint(Hint::Raw));
        }
        match (has_copy, last.starts_with(COOKIE)) {
            (false, false) => return Err(not_vpc()),
            (true, false) => {
                let reason =
                    "does not end with its footer: it was cut off, or something follows it";
                return Err(file.corrupt(reason).at(end));
            }
            (_, true) => {}
        }
        let footer = Self::parse(file, &last, end)?;
        if !has_copy {
            if footer.kind != Kind::Fixed {
                let reason = "begins without the copy of its footer";
                return Err(file.corrupt(reason).at(0));
            }
            return Ok(footer);
        }
        let copy = Self::parse(file, &copy, 0)?;
        if footer.kind == Kind::Fixed {
            let reason = "begins like a dynamic disk and ends like a fixed one";
            return Err(file.corrupt(reason).at(end));
        }
        let content = |it: &Self| (it.kind, it.sizes, it.next, it.id);
        if content(&copy) != content(&footer) {
            let reason = "ends with another footer than it begins with";
            return Err(file.corrupt(reason).at(end));
        }
        Ok(copy)
    }

    fn parse(file: &HostFile, footer: &Head<'_>, offset: u64) -> Result<Self> {
        check_sum(file, footer, CHECKSUM_AT, offset)?;
        let version = footer.be32(12);
        if version != VERSION {
            let reason = format!("vpc version {version:#x} is not known");
            return Err(file.error(ErrorKind::Unsupported, reason).at(offset + 12));
        }
        let kind = match footer.be32(60) {
            2 => Kind::Fixed,
            3 => Kind::Dynamic,
            4 => Kind::Differencing,
            other => {
                let reason = format!("has the unknown disk type {other}");
                return Err(file.corrupt(reason).at(offset + 60));
            }
        };
        let mut id = Id::default();
        id.copy_from_slice(&footer.bytes()[ID_AT as usize..][..16]);
        Ok(Self { kind, sizes: Sizes::of(footer), next: footer.be64(16), id, offset })
    }
}

/// Fails unless the checksum at `at` is the checksum of the other bytes.
pub(super) fn check_sum(file: &HostFile, head: &Head<'_>, at: usize, offset: u64) -> Result<()> {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    let (before, after) = (&head.bytes()[..at], &head.bytes()[at + 4..]);
    if head.be32(at) == !(sum(before) + sum(after)) {
        return Ok(());
    }
    Err(file.corrupt("header does not match its checksum").at(offset))
}

/// Size of the footer in bytes.
pub(super) const FOOTER: usize = 512;
/// Offset of the UUID in the footer.
pub(super) const ID_AT: u64 = 68;

const COOKIE: &[u8] = b"conectix";
const CHECKSUM_AT: usize = 64;
/// Version 1.0, also of the second header.
pub(super) const VERSION: u32 = 0x0001_0000;
