//! The L1 tables of the current state and of snapshots.

use std::ops::Range;

use super::state::{Check, Source};
use super::sweep::{Part, sweep};
use super::tables::{L2Table, L2Tables};
use crate::check::Reason;
use crate::error::Result;
use crate::formats::qcow2::entry::Geometry;
use crate::formats::qcow2::entry::{COPIED, L1_RESERVED};
use crate::formats::two_level::{L1Table, Rules};

/// L1 tables that are read.
pub(super) struct L1Tables {
    /// Parts of the file with their entries, in bytes.
    entries: Vec<Part>,
    /// Offsets of the tables.
    offsets: Vec<u64>,
    is_active: bool,
}

impl L1Tables {
    /// Takes the tables of the current state, or of snapshots. All are aligned, and none is too large.
    pub fn new(tables: &[L1Table], is_active: bool) -> Self {
        let place = |table: &L1Table| table.offset..table.offset.saturating_add(table.entries * 8);
        let places: Vec<Range<u64>> = tables.iter().map(place).collect();
        let offsets = tables.iter().map(|table| table.offset).collect();
        Self { entries: sweep(&places), offsets, is_active }
    }

    /// Reads all entries, reports those that are wrong, and adds the L2 tables that they name.
    pub fn read(&self, check: &mut Check<'_>, found: &mut L2Tables) -> Result<()> {
        let structure = if self.is_active { "L1 table" } else { "L1 table of a snapshot" };
        for part in &self.entries {
            let Part { range: Range { start, end }, times, index } = part.clone();
            let first = (start - self.offsets[index]) / 8;
            let input = check.input;
            let failed = input.for_each_entry(start, (end - start) / 8, |index, entry| {
                let span_bits = check.geometry.l1_span_bits();
                let guest =
                    (first + index).checked_shl(span_bits).filter(|it| *it < check.header.size);
                let source = Source { structure, offset: start + index * 8, length: 8, guest };
                self.entry(check, source, entry, times)?;
                let offset = Geometry::l2_offset(entry);
                let times = u32::try_from(times).unwrap_or(u32::MAX);
                let (active, inactive) = if self.is_active { (times, 0) } else { (0, times) };
                let index = (first + index) as u32;
                if offset < check.length {
                    found.add(L2Table { offset, index, active, inactive });
                }
                Ok(())
            })?;
            if let Some(error) = failed {
                check.unreadable(structure, start, &error);
            }
            if !check.goes_on() {
                break;
            }
        }
        Ok(())
    }

    /// Reports what is wrong with an entry that is not 0.
    fn entry(&self, check: &mut Check<'_>, source: Source, entry: u64, times: u64) -> Result<()> {
        let target = Geometry::l2_offset(entry);
        if entry & L1_RESERVED != 0 {
            check.error(source, Reason::ReservedBits { entry }, times);
        }
        let length = check.geometry.cluster_size();
        if check.is_past(target + (length - 1)) {
            check.error(source, Reason::PastEnd { target, length }, times);
        }
        if !check.geometry.is_aligned(target) {
            check.error(source, Reason::Unaligned { target }, times);
        }
        if self.is_active && target != 0 {
            check.copied(source, target, entry & COPIED != 0, times)?;
        }
        Ok(())
    }
}

impl Check<'_> {
    /// Reports a flag that contradicts the stored reference count of a cluster. Returns whether the count can be read.
    pub fn copied(
        &mut self,
        source: Source,
        target: u64,
        is_set: bool,
        times: u64,
    ) -> Result<bool> {
        let stored = self.stored.get(target >> self.geometry.cluster_bits())?;
        let Some(stored) = stored else { return Ok(false) };
        if (stored == 1) != is_set {
            self.report(self.severity(), source, Reason::CopiedFlag { stored, is_set }, times);
        }
        Ok(true)
    }
}
