//! The walk: one pass over the MFT, and over the bitmap of clusters.

use super::Ntfs;
use super::attribute::kind;
use super::mft::{Disk, number};
use super::names::Balance;
use super::record::{Defect, Header, restore};
use super::state::State;
use crate::bytes::le64_at;
use crate::error::{Error, Result};
use crate::visitor::{Extent, ObjectId, Owner, Problem, ProblemKind, Visitor, Wanted};

/// Reports to a visitor what is wanted.
pub(super) fn walk(volume: &Ntfs, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
    let Ntfs { disk, state, .. } = volume;
    let mut walk = Walk {
        disk,
        state,
        wanted,
        visitor,
        budget: disk.volume.size(),
        balance: (wanted.checks && state.is_unmounted()).then(|| Balance::new(disk.record_count())),
        pending: None,
        text: vec![],
        block: vec![],
    };
    if wanted.checks {
        walk.check_boot(volume.bad_boot)?;
        walk.check_log();
        walk.check_mirror();
    }
    if wanted.extents {
        walk.end_of_volume();
    }
    walk.mft()?;
    walk.check_names();
    if wanted.extents {
        walk.free()?;
    }
    Ok(())
}

/// A walk in progress.
pub(super) struct Walk<'a> {
    pub disk: &'a Disk,
    pub state: &'a State,
    pub wanted: Wanted,
    pub visitor: &'a mut dyn Visitor,
    /// Number of bytes that may still be read besides the MFT and the bitmap. Sound structures do not overlap.
    pub budget: u64,
    /// The names that were seen, as long as nothing else is wrong.
    pub balance: Option<Balance>,
    /// The last extent, which the next one may continue.
    pending: Option<Extent>,
    /// Buffer for names.
    pub text: Vec<u8>,
    /// Buffer for blocks.
    pub block: Vec<u8>,
}

impl Walk<'_> {
    /// Reads all records of the MFT.
    fn mft(&mut self) -> Result<()> {
        let disk = self.disk;
        let size = disk.boot.record;
        let count = disk.record_count();
        let mut buffer = vec![0; ((CHUNK / size) as u64).min(count) as usize * size];
        let (mut first, mut matched) = (0, 0);
        while first < count {
            let length = (buffer.len() as u64).min((count - first) * size as u64) as usize;
            let bytes = &mut buffer[..length];
            let offset = first * size as u64;
            let outcome = disk.mft.read_into(&disk.volume, bytes, offset);
            for (number, record) in (first..).zip(bytes.chunks_exact_mut(size)) {
                let at = number * size as u64;
                // Of a chunk that cannot be read, records may be readable.
                if outcome.is_ok() || disk.mft.read_into(&disk.volume, record, at).is_ok() {
                    matched += u64::from(self.record(number, record));
                }
            }
            if let Err(error) = outcome {
                self.unreadable("MFT", offset, None, &error);
            }
            first += (length / size) as u64;
            self.advance(length as u64)?;
        }
        if self.wanted.checks && matched > 0 {
            self.visitor.matched("MFT record", matched, matched * size as u64);
        }
        if self.wanted.extents {
            let end = disk.mft.clusters().saturating_mul(disk.boot.cluster);
            let start = count * size as u64;
            self.mft_extent(start, end.saturating_sub(start), None);
            self.flush();
        }
        Ok(())
    }

    /// Reads a record. Returns whether it counts as one whose update sequence was verified.
    fn record(&mut self, number: u64, bytes: &mut [u8]) -> bool {
        let outcome = restore(bytes, b"FILE");
        let is_record = !matches!(outcome, Err(Defect::Signature(_)));
        let header = Header::parse(bytes).filter(|header| is_record && header.is_used);
        if self.wanted.extents {
            let size = self.disk.boot.record as u64;
            let object = header.map(|header| header.base.map_or(number, |base| base.number));
            self.mft_extent(number * size, size, object);
        }
        let is_listed = self.disk.is_listed(number);
        // A record that is torn may have been in use before.
        let is_expected = is_listed.unwrap_or(header.is_some());
        if let Err(defect) = outcome {
            if is_expected {
                self.bad_record(number, bytes, defect);
            }
            if !is_expected || !matches!(defect, Defect::Torn { .. }) {
                return false;
            }
        }
        if let Some(header) = header
            && header.base.is_none()
        {
            self.file(number, bytes, outcome.is_err());
        }
        outcome.is_ok() && (is_expected || header.is_some())
    }

    /// Reports a record that should be in use, and is damaged.
    fn bad_record(&mut self, number: u64, bytes: &[u8], defect: Defect) {
        if let Defect::Signature(signature) = defect {
            let is_lost = &signature == b"BAAD" || self.state.is_clean();
            // Records for later use may never have been written.
            if !is_lost || number::RESERVED.contains(&number) {
                return;
            }
        }
        if self.wanted.checks {
            let place = (self.mft_offset(number), bytes.len() as u64);
            self.verdict("MFT record", place, Some(number), Some(defect.to_string()));
        } else {
            self.damaged("MFT record", self.mft_offset(number), Some(number), &defect.to_string());
        }
    }

    /// Returns the offset of a record on the volume.
    pub fn mft_offset(&self, number: u64) -> u64 {
        let offset = number.saturating_mul(self.disk.boot.record as u64);
        self.disk.mft.places(offset, 1).next().and_then(|place| place.offset).unwrap_or_default()
    }

    fn mft_extent(&mut self, offset: u64, length: u64, object: Option<ObjectId>) {
        let disk = self.disk;
        for place in disk.mft.places(offset, length) {
            if let Some(offset) = place.offset {
                let owner = Owner::Metadata { structure: "MFT", object };
                self.extent(offset, place.length, owner);
            }
        }
    }

    /// Reports the bytes after the last cluster.
    fn end_of_volume(&mut self) {
        let boot = &self.disk.boot;
        let structure = |structure| Owner::Metadata { structure, object: None };
        let (clusters, end) = (boot.clusters * boot.cluster, boot.size);
        let backup = self.disk.size() - end;
        self.extent(clusters, end - clusters, structure("volume slack"));
        self.extent(end, backup, structure("backup boot sector"));
    }

    /// Reports the clusters whose bits in the bitmap are zero.
    fn free(&mut self) -> Result<()> {
        let disk = self.disk;
        let Some(content) = disk.content(number::BITMAP, kind::DATA, <[u8]>::is_empty) else {
            self.damaged("bitmap", 0, Some(number::BITMAP), "no content");
            return Ok(());
        };
        let clusters = disk.boot.clusters.min(content.size().saturating_mul(8));
        // Holes do not make the bitmap larger than the disk.
        let clusters = clusters.min(disk.volume.size() / disk.boot.cluster);
        if clusters < disk.boot.clusters {
            self.damaged("bitmap", 0, Some(number::BITMAP), "fewer bits than there are clusters");
        }
        let mut buffer =
            vec![0; clusters.div_ceil(64).saturating_mul(8).min(CHUNK as u64) as usize];
        let mut first = 0;
        while first < clusters {
            if let Err(error) = content.read_into(&disk.volume, &mut buffer, first / 8) {
                self.unreadable("bitmap", 0, Some(number::BITMAP), &error);
            } else {
                self.free_clusters(&buffer, first, clusters);
            }
            first += buffer.len() as u64 * 8;
            self.advance(buffer.len() as u64)?;
        }
        self.flush();
        Ok(())
    }

    /// Reports the clusters of a part of the bitmap, whose first bit belongs to cluster `first`.
    fn free_clusters(&mut self, bitmap: &[u8], first: u64, end: u64) {
        let size = self.disk.boot.cluster;
        for (word, at) in bitmap.chunks_exact(8).zip((first..end).step_by(64)) {
            let mut free = !le64_at(word, 0).unwrap_or(!0);
            if end - at < 64 {
                free &= (1 << (end - at)) - 1;
            }
            while free != 0 {
                let start = free.trailing_zeros();
                let count = (free >> start).trailing_ones();
                self.extent((at + u64::from(start)) * size, u64::from(count) * size, Owner::Free);
                // A shift by 64 is not one.
                free &= u64::MAX.checked_shl(start + count).unwrap_or(0);
            }
        }
    }

    /// Reports an extent, joined with the last one if it continues that.
    pub fn extent(&mut self, offset: u64, length: u64, owner: Owner) {
        if length == 0 {
            return;
        }
        if let Some(last) = &mut self.pending
            && last.offset + last.length == offset
            && goes_on(last, owner)
        {
            last.length += length;
            return;
        }
        self.flush();
        self.pending = Some(Extent { offset, length, owner });
    }

    fn flush(&mut self) {
        if let Some(extent) = self.pending.take() {
            self.visitor.extent(extent);
        }
    }

    pub fn advance(&mut self, bytes: u64) -> Result<()> {
        if self.visitor.advance(bytes).is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    pub fn damaged(
        &mut self,
        structure: &'static str,
        offset: u64,
        object: Option<ObjectId>,
        reason: &str,
    ) {
        let (kind, reason) = (ProblemKind::Damaged, reason.to_owned());
        self.problem(Problem { kind, structure, offset, object, reason });
    }

    pub fn unreadable(
        &mut self,
        structure: &'static str,
        offset: u64,
        object: Option<ObjectId>,
        error: &Error,
    ) {
        let kind = match error {
            Error::Image(_) => ProblemKind::Unreadable,
            _ => ProblemKind::Damaged,
        };
        self.problem(Problem { kind, structure, offset, object, reason: error.to_string() });
    }

    pub fn problem(&mut self, problem: Problem) {
        self.balance = None;
        self.visitor.problem(problem);
    }
}

/// Returns whether the owner of the bytes after an extent continues that one.
fn goes_on(last: &Extent, next: Owner) -> bool {
    match (last.owner, next) {
        (Owner::File { object, offset }, Owner::File { object: other, offset: at }) => {
            object == other && offset.checked_add(last.length) == Some(at)
        }
        (owner, other) => owner == other,
    }
}

/// Number of bytes of the MFT and of bitmaps that are read at once.
pub(super) const CHUNK: usize = 1 << 20;
