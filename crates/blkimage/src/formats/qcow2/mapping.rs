//! Maps guest offsets to runs of host bytes through L1 and L2 tables.
//!
//! One call reads one window of the L1 table and one window of an L2 table, and no more entries than
//! its limit covers. Consecutive empty L1 entries form one run.

use super::Qcow2;
use super::entry::{Geometry, HostOffset, MapKind, OFFSET_MASK};
use crate::error::Result;
use crate::formats::fields::Entry;
use crate::formats::table_cache::Table;
use crate::layer::GuestRange;

impl Qcow2 {
    /// Returns the kind and length of the run that begins at the start of `range`.
    pub(super) fn look_up(&self, range: GuestRange) -> Result<(MapKind, u64)> {
        let GuestRange { offset: guest, limit, far } = range;
        let span_bits = self.geometry.l1_span_bits();
        let l1_index = guest >> span_bits;
        if l1_index >= self.l1.entries {
            return Ok((MapKind::Unallocated, far));
        }
        let l1 = table(self.l1.offset, self.l1.entries * 8);
        let (window, first) = self.caches.table_entry(&self.file, l1, l1_index)?;
        let l2_offset = window[first] & OFFSET_MASK;
        if l2_offset == 0 {
            let wanted = ((guest + far - 1) >> span_bits) - l1_index + 1;
            let entries = window[first..].iter().take(wanted as usize);
            let empty = entries.take_while(|entry| *entry & OFFSET_MASK == 0).count() as u64;
            let end = (l1_index + empty) << span_bits;
            return Ok((MapKind::Unallocated, far.min(end - guest)));
        }
        if !self.geometry.is_aligned(l2_offset) {
            let reason = format!("L2 table offset {l2_offset:#x} is not aligned to a cluster");
            return Err(self.file.corrupt(reason).at(self.l1.offset + l1_index * 8));
        }
        let end = (l1_index + 1) << span_bits;
        self.map_l2(l2_offset, guest, (limit, far.min(end - guest)))
    }

    fn map_l2(
        &self,
        l2_offset: u64,
        guest: u64,
        (limit, far): (u64, u64),
    ) -> Result<(MapKind, u64)> {
        let geometry = &self.geometry;
        let l2 = table(l2_offset, geometry.cluster_size());
        let index = (guest >> geometry.cluster_bits) & ((1 << geometry.l2_bits()) - 1);
        let word = index * geometry.entry_words();
        let (window, first) = self.caches.table_entry(&self.file, l2, word)?;

        let mut entries = Entries { geometry, words: &window[first..], guest };
        let run = match entries.next_piece() {
            Some(Ok(piece)) => piece,
            Some(Err(reason)) => {
                let reason = format!("L2 entry of guest offset {guest}: {reason}");
                return Err(self.file.corrupt(reason).at(l2_offset + word * 8));
            }
            // A window holds whole entries, so the first one is present.
            None => return Err(self.file.corrupt("L2 table is cut off").at(l2_offset)),
        };
        let (kind, mut length) = run;
        let limit = if kind == MapKind::Unallocated { far } else { limit.min(far) };
        while length < limit {
            // An invalid entry ends the run. Looking up its own offset returns the error.
            match entries.next_piece() {
                Some(Ok((next, more))) if continues(kind, length, next) => length += more,
                _ => break,
            }
        }
        Ok((kind, length.min(limit)))
    }
}

fn table(offset: u64, length: u64) -> Table {
    Table { offset, length, entry: Entry::Be64 }
}

/// The pieces that consecutive L2 entries describe, from a guest offset on.
struct Entries<'a> {
    geometry: &'a Geometry,
    words: &'a [u64],
    guest: u64,
}

impl Entries<'_> {
    fn next_piece(&mut self) -> Option<Result<(MapKind, u64), &'static str>> {
        let geometry = self.geometry;
        let (entry, bitmap) = match (geometry.is_extended, self.words) {
            (true, [entry, bitmap, ..]) => (*entry, *bitmap),
            (false, [entry, ..]) => (*entry, 0),
            _ => return None,
        };
        let within = self.guest & (geometry.cluster_size() - 1);
        let cluster = self.guest - within;
        let unit = (within >> geometry.unit_bits()) as u32;
        let (kind, units) = match geometry.classify(entry, bitmap, cluster, unit) {
            Ok(found) => found,
            Err(reason) => return Some(Err(reason)),
        };
        let skip = within - (u64::from(unit) << geometry.unit_bits());
        let length = (u64::from(units) << geometry.unit_bits()) - skip;
        if unit + units == geometry.units() {
            self.words = &self.words[geometry.entry_words() as usize..];
        }
        self.guest += length;
        let kind = match kind {
            MapKind::Data(host) => MapKind::Data(HostOffset(host.0 + skip)),
            other => other,
        };
        Some(Ok((kind, length)))
    }
}

/// Returns whether `next` extends a run of `length` bytes.
fn continues(run: MapKind, length: u64, next: MapKind) -> bool {
    match (run, next) {
        (MapKind::Unallocated, MapKind::Unallocated) | (MapKind::Zero, MapKind::Zero) => true,
        (MapKind::Data(host), MapKind::Data(next)) => host.0 + length == next.0,
        _ => false,
    }
}
