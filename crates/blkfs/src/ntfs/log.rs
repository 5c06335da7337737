//! The log file: whether its restart pages are intact, and whether it was closed.

use super::attribute::kind;
use super::content::Content;
use super::mft::{Disk, number};
use super::record::{Defect, restore};
use crate::bytes::{le16_at, le32_at, le64_at};

/// The restart pages of a log file.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub pages: Vec<Page>,
    /// Whether the log holds changes that were not made yet. `None` if there are no restart pages: the log was never used, or
    /// cleared by a program that writes without it.
    is_open: Option<bool>,
}

/// A restart page.
#[derive(Debug)]
pub(super) struct Page {
    /// Offset on the volume.
    pub offset: u64,
    pub length: u64,
    pub defect: Option<Defect>,
}

impl Log {
    /// Reads the restart pages. A log that was never used has none.
    pub fn read(disk: &Disk) -> Self {
        let mut log = Self::default();
        let Some(Content::NonResident(stream)) =
            disk.content(number::LOG_FILE, kind::DATA, <[u8]>::is_empty)
        else {
            return log;
        };
        let mut newest = 0;
        let (mut at, mut length) = (0, PAGE);
        for _ in 0..2 {
            let mut page = vec![0; length];
            if stream.size() < at + length as u64
                || stream.read_into(&disk.volume, &mut page[..512], at).is_err()
                || page[..4] == [0xff; 4]
            {
                break;
            }
            let stated = le32_at(&page, 16).unwrap_or_default() as usize;
            if is_restart(&page) && stated.is_power_of_two() && (512..=MAX_PAGE).contains(&stated) {
                length = stated;
            }
            page.resize(length, 0);
            let place = stream.places(at, length as u64).next().and_then(|place| place.offset);
            let Some(offset) = place else { break };
            if stream.read_into(&disk.volume, &mut page, at).is_err() {
                break;
            }
            let defect = defect(&mut page);
            if defect.is_none()
                && let Some((sequence, is_open)) = state(&page)
                && sequence >= newest
            {
                (newest, log.is_open) = (sequence, Some(is_open));
            }
            log.pages.push(Page { offset, length: length as u64, defect });
            at += length as u64;
        }
        log
    }

    /// Returns whether the log holds changes that were not made yet.
    pub fn is_open(&self) -> bool {
        self.is_open == Some(true)
    }

    /// Returns whether the log was in use, and all changes were made.
    pub fn is_closed(&self) -> bool {
        self.is_open == Some(false)
    }
}

/// Returns whether a page is a restart page, or one that chkdsk left.
fn is_restart(page: &[u8]) -> bool {
    page.starts_with(b"RSTR") || page.starts_with(b"CHKD")
}

fn defect(page: &mut [u8]) -> Option<Defect> {
    let is_unprotected = page.starts_with(b"CHKD") && le16_at(page, 6) == Some(0);
    if is_unprotected {
        return None;
    }
    let signature = if page.starts_with(b"CHKD") { b"CHKD" } else { b"RSTR" };
    restore(page, signature).err()
}

/// Returns the number of the last record of the log, and whether the log is open.
fn state(page: &[u8]) -> Option<(u64, bool)> {
    let area = page.get(usize::from(le16_at(page, 24)?)..)?;
    let (first_client, flags) = (le16_at(area, 12)?, le16_at(area, 14)?);
    Some((le64_at(area, 0)?, first_client != NO_CLIENT && flags & IS_CLEAN == 0))
}

const NO_CLIENT: u16 = 0xffff;
const IS_CLEAN: u16 = 2;

/// Size of a page, unless the first one states another one.
const PAGE: usize = 4096;

/// Maximum size of a page.
/// Limit in bytes.
const MAX_PAGE: usize = 64 << 10;
