//! Places on volumes of the bytes that layers map into files.

use std::ptr;

use crate::origin::{Dirty, Origin, OriginKind};
use crate::storage::HostFile;

/// Collects the origins of runs that follow each other in the guest.
pub(super) struct OnVolume<'a> {
    dirty: Dirty,
    origins: Vec<Origin>,
    /// Offset of the guest byte after them.
    end: u64,
    /// The result of the last query, at offsets of this file. However many runs a layer maps into it, the file system is
    /// asked once.
    known: Option<(&'a HostFile, Vec<Origin>)>,
    queries_left: u32,
    is_full: bool,
}

impl<'a> OnVolume<'a> {
    pub fn new(offset: u64, dirty: Dirty) -> Self {
        Self {
            dirty,
            origins: Vec::new(),
            end: offset,
            known: None,
            queries_left: MAX_QUERIES,
            is_full: false,
        }
    }

    /// Returns the offset of the guest byte after the runs so far.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns whether there are enough origins for one call, or another query would take longer than reading.
    pub fn is_full(&self) -> bool {
        self.is_full || self.origins.len() >= ENOUGH
    }

    pub fn into_origins(self) -> Vec<Origin> {
        self.origins
    }

    /// Appends a run of which this is known.
    pub fn push(&mut self, length: u64, kind: OriginKind) {
        Origin { offset: self.end, length, kind }.append_to(&mut self.origins);
        self.end += length;
    }

    /// Appends a run that is in a file from `offset` on, or the start of it.
    pub fn push_file(&mut self, file: &'a HostFile, offset: u64, length: u64) {
        if file.volume().is_none() {
            return self.push(length, OriginKind::Other);
        }
        let mut done = 0;
        while done < length && !self.is_full() {
            let found = self.find(file, offset.saturating_add(done), length - done);
            let Some(found) = found else {
                self.is_full = true;
                return;
            };
            self.push(found.length, found.kind);
            done += found.length;
        }
    }

    /// Returns where the bytes of a file from `offset` on are, for at most `limit` bytes. Bytes past the end of the file have
    /// no place. Returns `None` if that takes another query and there were enough.
    fn find(&mut self, file: &'a HostFile, offset: u64, limit: u64) -> Option<Origin> {
        let left = file.size().saturating_sub(offset);
        if left == 0 {
            return Some(Origin { offset, length: limit, kind: OriginKind::Other });
        }
        if let Some(found) = self.known_at(file, offset, limit) {
            return Some(found);
        }
        self.queries_left = self.queries_left.checked_sub(1)?;
        let wanted = limit.max(MIN_QUERY).min(left);
        let origins = file.volume_origins(offset, wanted, self.dirty);
        if origins.last().is_none_or(|last| last.end() - offset < wanted) {
            // There are more extents than fit into a reply.
            self.queries_left = 0;
        }
        self.known = Some((file, origins));
        let nothing = Origin { offset, length: limit.min(left), kind: OriginKind::Other };
        Some(self.known_at(file, offset, limit).unwrap_or(nothing))
    }

    fn known_at(&self, file: &HostFile, offset: u64, limit: u64) -> Option<Origin> {
        let (_, known) = self.known.as_ref().filter(|(known, _)| ptr::eq(*known, file))?;
        let index = known.partition_point(|origin| origin.offset <= offset).checked_sub(1)?;
        let found = known.get(index).filter(|found| offset < found.end())?;
        let distance = offset - found.offset;
        let length = (found.length - distance).min(limit);
        Some(Origin { offset, length, kind: found.kind.advanced(distance) })
    }
}

/// Number of origins after which a call ends. They take some 100 KiB.
const ENOUGH: usize = 1024;

/// Number of queries in a call.
const MAX_QUERIES: u32 = 64;

/// Minimum length of a query in bytes. Clusters that are in disorder are often near each other.
const MIN_QUERY: u64 = 1 << 20;
