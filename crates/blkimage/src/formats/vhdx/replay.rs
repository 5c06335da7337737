//! The file as it is after its log was replayed, without writing to it.
//!
//! A change is kept as the place of its content in the log, so that replaying takes little memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::entry::SECTOR;
use super::header::Header;
use super::log::{Content, Descriptor, Log, LoggedSector};
use super::region;
use crate::error::{Error, ErrorKind, Result};
use crate::formats::fields::check_inside;
use crate::storage::{HostFile, Storage};

/// The changes that a log describes.
#[derive(Default)]
pub(super) struct Changes {
    /// Ranges by their start. They do not overlap.
    ranges: BTreeMap<u64, Change>,
}

#[derive(Clone, Copy)]
struct Change {
    end: u64,
    /// The content, or `None` for zeros.
    sector: Option<LoggedSector>,
}

impl Changes {
    /// Reads the log of an image that was not closed.
    pub fn read(file: &HostFile, header: &Header) -> Result<Self> {
        let log = Log::new(file, header)?;
        let entries = log.active_sequence()?;
        let needed = entries.iter().map(|entry| entry.flushed_size).max();
        let needed = needed.max(entries.last().map(|entry| entry.last_size)).unwrap_or(0);
        if file.size() < needed {
            let reason = format!(
                "is shorter than the {needed} bytes that its log states: it was probably cut off"
            );
            return Err(file.corrupt(reason).at(file.size()));
        }
        let mut changes = Self::default();
        let mut left = MAX_DESCRIPTORS;
        let log_end = header.log_offset.saturating_add(header.log_length);
        for entry in entries {
            log.for_each_descriptor(entry, |Descriptor { offset, content }| {
                let Some(next) = left.checked_sub(1) else {
                    let reason = format!(
                        "log was not replayed and has more than {MAX_DESCRIPTORS} changes, which is \
                         not supported"
                    );
                    return Err(file.error(ErrorKind::Unsupported, reason).at(header.log_offset));
                };
                left = next;
                let (length, sector) = match content {
                    Content::Zeros { length } => (length, None),
                    Content::Sector(sector) => (SECTOR, Some(sector)),
                };
                if length == 0 {
                    return Ok(());
                }
                check_inside(file, offset, length, "change in the log")?;
                let end = offset + length;
                let hits_log = offset < log_end && header.log_offset < end;
                if offset < region::OFFSETS[0] || hits_log {
                    let reason = "log was not replayed, and changes itself or the headers";
                    return Err(file.corrupt(reason).at(offset));
                }
                changes.insert(offset, Change { end, sector });
                Ok(())
            })?;
        }
        Ok(changes)
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a change over those before it.
    fn insert(&mut self, start: u64, change: Change) {
        // Only zeros are longer than a sector, and leave parts on both sides.
        if let Some((&before, &old)) = self.ranges.range(..start).next_back()
            && old.end > start
        {
            self.ranges.insert(before, Change { end: start, ..old });
            if old.end > change.end {
                self.ranges.insert(change.end, old);
            }
        }
        while let Some((&at, &old)) = self.ranges.range(start..change.end).next() {
            self.ranges.remove(&at);
            if old.end > change.end {
                self.ranges.insert(change.end, old);
            }
        }
        self.ranges.insert(start, change);
    }

    /// Returns the change of the byte at `offset`, if any, and how far this is true, at most `limit`.
    fn at(&self, offset: u64, limit: u64) -> (Option<(u64, Change)>, u64) {
        let before = self.ranges.range(..=offset).next_back();
        if let Some((&start, &change)) = before
            && change.end > offset
        {
            return (Some((start, change)), limit.min(change.end - offset));
        }
        let next = self.ranges.range(offset..).next();
        (None, next.map_or(limit, |(&start, _)| limit.min(start - offset)))
    }

    /// Returns whether the log changes the byte at `offset`, and how far this is true, at most `limit`.
    pub fn run(&self, offset: u64, limit: u64) -> (bool, u64) {
        let (change, length) = self.at(offset, limit);
        (change.is_some(), length)
    }
}

/// A file with the changes of its log.
pub(super) struct Replayed {
    file: Arc<HostFile>,
    changes: Arc<Changes>,
}

impl Replayed {
    pub fn new(file: Arc<HostFile>, changes: Arc<Changes>) -> Self {
        Self { file, changes }
    }

    fn read_change(&self, buf: &mut [u8], within: u64, change: Change) -> Result<()> {
        let Some(LoggedSector { log_offset, leading, trailing }) = change.sector else {
            buf.fill(0);
            return Ok(());
        };
        let mut sector = [0; SECTOR as usize];
        self.file.read_exact_at(&mut sector, log_offset)?;
        let end = sector.len() - trailing.len();
        sector[..leading.len()].copy_from_slice(&leading);
        sector[end..].copy_from_slice(&trailing);
        let within = within as usize;
        buf.copy_from_slice(&sector[within..within + buf.len()]);
        Ok(())
    }
}

impl Storage for Replayed {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let limit = self.size().saturating_sub(offset).min(buf.len() as u64);
        if limit == 0 {
            return Ok(0);
        }
        let (change, length) = self.changes.at(offset, limit);
        let buf = &mut buf[..length as usize];
        match change {
            Some((start, change)) => self.read_change(buf, offset - start, change),
            None => self.file.read_exact_at(buf, offset),
        }
        .map_err(to_io)?;
        Ok(buf.len())
    }

    fn granularity(&self) -> u64 {
        self.file.granularity()
    }

    fn queue_depth(&self) -> usize {
        self.file.queue_depth()
    }

    /// Announces what is read from the same place, and not the sectors of the log.
    fn will_need(&self, mut offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size());
        while offset < end {
            let (is_changed, length) = self.changes.run(offset, end - offset);
            if !is_changed {
                self.file.will_need(offset, length);
            }
            offset += length;
        }
    }

    fn read_ahead(&self) -> u64 {
        self.file.read_ahead()
    }
}

fn to_io(error: Error) -> io::Error {
    match error.kind() {
        ErrorKind::Truncated => io::ErrorKind::UnexpectedEof.into(),
        _ => io::Error::other(error),
    }
}

/// Maximum number of changes in a log, which limits the memory for them to about 2 MiB.
/// Limit in changes.
pub(super) const MAX_DESCRIPTORS: u32 = 16384;
