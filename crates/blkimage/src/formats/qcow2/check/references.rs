//! Everything that refers to clusters.

use std::ops::Range;

use super::l1::L1Tables;
use super::state::{Check, Source};
use super::stored::BLOCK_OFFSET;
use super::sweep::{Part, sweep};
use super::tables::{L2Table, L2Tables};
use crate::check::Reason;
use crate::error::Result;
use crate::formats::qcow2::bitmaps::{self, BitmapTable, Directory};
use crate::formats::qcow2::header::MAX_L1_ENTRIES;
use crate::formats::qcow2::snapshot::{self, Listed};
use crate::formats::two_level::{L1Table, Rules};

/// All structures that refer to clusters, except blocks of reference counts. They are found once, and counted in every
/// pass.
pub(super) struct Everything {
    /// Clusters of L1 tables.
    l1_clusters: Vec<Part>,
    l2_tables: Vec<L2Table>,
    bitmap_tables: Vec<BitmapTable>,
    /// Places of single structures in bytes.
    places: Vec<(Source, Range<u64>)>,
}

impl Everything {
    /// Finds all structures, and reports those that are wrong.
    pub fn find(check: &mut Check<'_>) -> Result<Self> {
        let mut new = Self {
            l1_clusters: Vec::new(),
            l2_tables: Vec::new(),
            bitmap_tables: Vec::new(),
            places: Vec::new(),
        };
        let header = check.header;
        let snapshots = new.find_snapshots(check)?;
        new.find_l2_tables(check, &snapshots)?;
        let size = u64::from(header.refcounts.clusters) << check.geometry.cluster_bits();
        new.add_place("refcount table", 48, header.refcounts.offset, size);
        if let Some(found) = header.encryption {
            new.add_place("encryption header", found.stated_at, found.offset, found.length);
        }
        if let Some(directory) = &header.bitmaps {
            new.find_bitmaps(check, directory)?;
        }
        Ok(new)
    }

    /// Counts all references in the window, of blocks of reference counts last.
    pub fn count(&self, check: &mut Check<'_>) -> Result<()> {
        let bits = check.geometry.cluster_bits();
        check.count(0, 1, 1);
        for Part { range, times, .. } in &self.l1_clusters {
            check.count(range.start << bits, (range.end - range.start) << bits, *times);
        }
        check.count_l2_tables(&self.l2_tables)?;
        for (source, place) in &self.places {
            check.refer(*source, place.start, place.end - place.start, 1);
        }
        for table in &self.bitmap_tables {
            check.count_bitmap(table)?;
            if check.is_stopped {
                return Ok(());
            }
        }
        check.count_blocks();
        Ok(())
    }

    fn add_place(&mut self, structure: &'static str, stated_at: u64, offset: u64, length: u64) {
        let source = Source { structure, offset: stated_at, length: 8, guest: None };
        self.places.push((source, offset..offset.saturating_add(length)));
    }

    /// Returns the snapshots, if their table is valid.
    fn find_snapshots(&mut self, check: &mut Check<'_>) -> Result<Vec<Listed>> {
        let start = check.header.snapshots.offset;
        let (snapshots, end) = match snapshot::tables(check.input.file, check.header) {
            Ok(found) => found,
            Err(error) => {
                check.invalid("snapshot table", start, &error)?;
                return Ok(Vec::new());
            }
        };
        self.add_place("snapshot table", 64, start, end - start);
        let source =
            |offset| Source { structure: "snapshot table", offset, length: 40, guest: None };
        if check.geometry.has_data_file && !snapshots.is_empty() {
            check.error(source(start), Reason::SnapshotsWithDataFile, 1);
        }
        for snapshot in &snapshots {
            if check.geometry.version >= 3 && snapshot.extra_length < SIZES {
                check.error(source(snapshot.offset), Reason::IncompleteSnapshot, 1);
            }
        }
        Ok(snapshots)
    }

    /// Finds the clusters of all L1 tables, and reads their entries.
    fn find_l2_tables(&mut self, check: &mut Check<'_>, snapshots: &[Listed]) -> Result<()> {
        let source = |structure, offset| Source { structure, offset, length: 8, guest: None };
        let mut clusters = Vec::new();
        let mut add = |check: &mut Check<'_>, source, l1: L1Table| {
            let (length, bits) = (l1.entries * 8, check.geometry.cluster_bits());
            let Some(last) = length.checked_sub(1) else { return };
            match l1.offset.checked_add(last).filter(|last| !check.is_past(*last)) {
                Some(last) => {
                    check.is_grown |= last >> bits >= check.clusters;
                    clusters.push(l1.offset >> bits..(last >> bits) + 1);
                }
                None => check.error(source, Reason::PastEnd { target: l1.offset, length }, 1),
            }
        };
        add(check, source("L1 table", 40), check.header.l1);
        let mut inactive = Vec::with_capacity(snapshots.len());
        for snapshot in snapshots {
            let source = source("snapshot table", snapshot.offset);
            if !check.geometry.is_aligned(snapshot.l1.offset) {
                check.error(source, Reason::Unaligned { target: snapshot.l1.offset }, 1);
            } else if snapshot.l1.entries > MAX_L1_ENTRIES {
                check.error(source, Reason::TooLarge, 1);
            } else {
                add(check, source, snapshot.l1);
                inactive.push(snapshot.l1);
            }
        }
        self.l1_clusters = sweep(&clusters);
        let mut found = L2Tables::default();
        L1Tables::new(&[check.header.l1], true).read(check, &mut found)?;
        L1Tables::new(&inactive, false).read(check, &mut found)?;
        match found.into_tables() {
            Some(tables) => self.l2_tables = limit_unaligned(check, tables),
            None => check.unchecked("L2 table", check.header.l1.offset, Reason::Limit),
        }
        Ok(())
    }

    fn find_bitmaps(&mut self, check: &mut Check<'_>, directory: &Directory) -> Result<()> {
        let (offset, length) = directory.place();
        self.add_place("bitmap directory", directory.stated_at, offset, length);
        let (file, cluster) = (check.input.file, check.geometry.cluster_size());
        let tables = match bitmaps::tables(file, directory, check.header.size, cluster) {
            Ok(tables) => tables,
            Err(error) => return check.invalid("bitmap directory", offset, &error),
        };
        let mut left = MAX_BITMAP_TABLES;
        for table in tables {
            let Some(rest) = left.checked_sub(table.entries * 8) else {
                check.unchecked("bitmap table", table.offset, Reason::Limit);
                break;
            };
            left = rest;
            self.add_place("bitmap table", table.stated_at, table.offset, table.entries * 8);
            self.bitmap_tables.push(table);
        }
        Ok(())
    }
}

/// Removes unaligned tables past a limit, because they may overlap, and an image may have one at every sector.
fn limit_unaligned(check: &mut Check<'_>, mut tables: Vec<L2Table>) -> Vec<L2Table> {
    let mut left = MAX_UNALIGNED_TABLES >> check.geometry.cluster_bits();
    let mut skipped = None;
    tables.retain(|table| {
        let is_kept = check.geometry.is_aligned(table.offset) || left > 0;
        left -= u64::from(is_kept && !check.geometry.is_aligned(table.offset));
        if !is_kept {
            skipped.get_or_insert(table.offset);
        }
        is_kept
    });
    if let Some(offset) = skipped {
        check.unchecked("L2 table", offset, Reason::Limit);
    }
    tables
}

impl Check<'_> {
    /// Counts the clusters that the entries of a bitmap table name.
    fn count_bitmap(&mut self, table: &BitmapTable) -> Result<()> {
        let (structure, input) = ("bitmap table", self.input);
        let cluster = self.geometry.cluster_size();
        let failed = input.for_each_entry(table.offset, table.entries, |index, entry| {
            let offset = table.offset + index * 8;
            let source = Source { structure, offset, length: 8, guest: None };
            match bitmaps::entry_cluster(entry, cluster) {
                Ok(0) => {}
                Ok(target) => self.refer(source, target, cluster, 1),
                Err(reason) => self.error(source, Reason::Invalid(reason.to_owned()), 1),
            }
            Ok(())
        })?;
        if let Some(error) = failed {
            self.unreadable(structure, table.offset, &error);
        }
        self.goes_on();
        Ok(())
    }

    /// Counts the blocks of reference counts, none of which may be anything else. All other references were counted.
    fn count_blocks(&mut self) {
        let bits = self.geometry.cluster_bits();
        let end = self.clusters + u64::from(self.is_grown);
        let place = |entry: u64| {
            let offset = entry & BLOCK_OFFSET;
            let is_valid = entry == offset && self.geometry.is_aligned(offset);
            (is_valid && offset != 0 && offset >> bits < end).then_some(offset >> bits)
        };
        let clusters: Vec<_> = self.stored.table().iter().copied().filter_map(place).collect();
        clusters.iter().for_each(|cluster| self.counts.touch(*cluster));
        self.report_blocks(end);
        let max = self.stored.max();
        let window = self.counts.window();
        for cluster in clusters.into_iter().filter(|cluster| window.contains(cluster)) {
            self.counts.add(cluster, 1);
            let references = self.counts.get(cluster);
            if references.min(max) != 1 {
                let (offset, length) = (cluster << bits, 1 << bits);
                let source = Source { structure: "refcount block", offset, length, guest: None };
                let reason = Reason::SharedBlock { references };
                self.report(crate::check::Severity::Error, source, reason, 1);
            }
        }
    }

    /// Reports entries of the table of reference counts that are wrong, in the first pass.
    fn report_blocks(&mut self, end: u64) {
        if !self.is_first {
            return;
        }
        let (geometry, start) = (self.geometry, self.header.refcounts.offset);
        let invalid = |(index, entry): (u64, &u64)| {
            let (entry, target) = (*entry, *entry & BLOCK_OFFSET);
            let reason = if entry != target {
                Reason::ReservedBits { entry }
            } else if !geometry.is_aligned(target) {
                Reason::Unaligned { target }
            } else if target >> geometry.cluster_bits() >= end {
                Reason::PastEnd { target, length: geometry.cluster_size() }
            } else {
                return None;
            };
            Some((index, reason))
        };
        let found: Vec<_> = (0..).zip(self.stored.table()).filter_map(invalid).collect();
        for (index, reason) in found {
            let offset = start.saturating_add(index * 8);
            let source = Source { structure: "refcount table", offset, length: 8, guest: None };
            self.error(source, reason, 1);
        }
    }
}

/// Length of the extra data of a snapshot that holds both of its sizes.
const SIZES: u32 = 16;

/// Maximum size of the tables of all bitmaps that a check reads, the same as when the image is opened.
/// Limit in bytes.
const MAX_BITMAP_TABLES: u64 = 32 << 20;

/// Maximum size of all L2 tables at offsets that are not aligned.
/// Limit in bytes.
const MAX_UNALIGNED_TABLES: u64 = 256 << 20;
