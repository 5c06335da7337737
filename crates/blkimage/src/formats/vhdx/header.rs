//! The file identifier and the two headers, of which the newer valid one counts.
//!
//! The fields of a header are in one sector of 512 bytes, so that a write that is interrupted leaves the old header or
//! the new one. A header that is not valid was damaged. If it names another log than the other header, the log that has
//! to be replayed is not known, which is an error.

use std::ops::Range;

use super::checksum;
use super::guid::Guid;
use super::units::{KIB, MIB};
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Head, array};
use crate::storage::HostFile;

/// The current header.
#[derive(Clone, Copy)]
pub(super) struct Header {
    /// Changes with the content of the disk. The children of the image record it.
    pub data_write: Guid,
    /// Identifies the log entries that have to be replayed. Zero if the image was closed.
    pub log: Guid,
    pub log_offset: u64,
    /// Length of the log region in bytes.
    pub log_length: u64,
}

impl Header {
    pub fn read(file: &HostFile) -> Result<Self> {
        if !file.read_head(IDENTIFIER.len())?.starts_with(IDENTIFIER) {
            return Err(file.error(ErrorKind::Format, "is not a vhdx image").at(0));
        }
        let [one, two] = OFFSETS.map(|offset| Head::read(file, offset, SIZE));
        let (one, two) = (one?, two?);
        let is_valid =
            |head: &Head<'_>| head.starts_with(b"head") && checksum::matches(head.bytes());
        if is_valid(&one) != is_valid(&two) && one.bytes()[LOG] != two.bytes()[LOG] {
            let offset = OFFSETS[usize::from(is_valid(&one))];
            let reason = "header is damaged, and the other one names another log: which of them counts is \
                          not known";
            return Err(file.corrupt(reason).at(offset));
        }
        let (offset, head) = match (is_valid(&one), is_valid(&two)) {
            (false, false) => {
                let reason =
                    "neither of its headers is valid: checksum or signature does not match";
                return Err(file.corrupt(reason).at(OFFSETS[0]));
            }
            (true, false) => (OFFSETS[0], one),
            (false, true) => (OFFSETS[1], two),
            (true, true) => match one.le64(SEQUENCE).cmp(&two.le64(SEQUENCE)) {
                std::cmp::Ordering::Greater => (OFFSETS[0], one),
                std::cmp::Ordering::Less => (OFFSETS[1], two),
                // Some programs write two equal headers.
                std::cmp::Ordering::Equal if one.bytes() == two.bytes() => (OFFSETS[0], one),
                std::cmp::Ordering::Equal => {
                    let reason = "its headers differ and have the same sequence number";
                    return Err(file.corrupt(reason).at(OFFSETS[1]));
                }
            },
        };
        Self::parse(file, offset, head.bytes())
    }

    fn parse(file: &HostFile, offset: u64, bytes: &[u8]) -> Result<Self> {
        let number = |at| u16::from_le_bytes(array(bytes, at));
        for (what, at, expected) in [("version", 66, 1), ("log version", 64, 0)] {
            let version = number(at);
            if version != expected {
                let reason = format!("{what} {version} is not known");
                return Err(file.error(ErrorKind::Unsupported, reason).at(offset + at as u64));
            }
        }
        let header = Self {
            data_write: Guid(array(bytes, 32)),
            log: Guid(array(bytes, 48)),
            log_offset: u64::from_le_bytes(array(bytes, 72)),
            log_length: u32::from_le_bytes(array(bytes, 68)).into(),
        };
        if header.log_offset < MIB || !header.log_offset.is_multiple_of(MIB) {
            let reason = "log does not begin at a multiple of 1 MiB";
            return Err(file.corrupt(reason).at(offset + 72));
        }
        Ok(header)
    }
}

const IDENTIFIER: &[u8] = b"vhdxfile";
pub(super) const OFFSETS: [u64; 2] = [64 * KIB, 128 * KIB];

/// Number of bytes that the checksum of a header covers.
const SIZE: usize = 4096;

const SEQUENCE: usize = 8;

/// The fields that describe the log, with the versions.
const LOG: Range<usize> = 48..80;
