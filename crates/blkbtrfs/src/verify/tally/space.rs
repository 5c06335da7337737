//! Compares space in use, space with checksums and free space.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::backref::refs::{DATA, ExtentItem};
use crate::bytes::{u32_at, u64_at};
use crate::filesystem::FileSystem;
use crate::tree::key::kind;
use crate::tree::{TreeBlock, object};
use crate::used::{Unprotected, Used};
use crate::verify::finding::Subject;
use crate::verify::job::Job;

/// Ranges of logical addresses. Adjacent ranges are merged.
pub(in crate::verify) type Ranges = rangemap::RangeSet<u64>;

/// Ranges collected from the trees.
#[derive(Default)]
pub(in crate::verify) struct Space {
    /// Ranges with checksums in the checksum tree, and in logs.
    pub(super) covered: Ranges,
    pub(super) covered_by_logs: Ranges,
    /// Whether the whole checksum tree was read.
    pub(in crate::verify) is_coverage_known: bool,
    /// Ranges of data and of all extents in use, and the sum of the lengths of all extents.
    data: Ranges,
    extents: Ranges,
    extent_bytes: u64,
    /// Ranges of files without checksums, of files of the root tree, and of preallocated extents.
    pub(super) nodatasum: Ranges,
    pub(super) internal: Ranges,
    pub(super) preallocated: Ranges,
    /// Ranges without checksums in files that require them. Ranges of logs are compared at the end.
    pub(super) uncovered: Ranges,
    /// Preallocated addresses with checksums, which another file must have written.
    pub(super) written: Vec<u64>,
    pub(super) logged: Vec<Range<u64>>,
    /// Length and bytes in use of block groups, by address.
    pub(super) groups: BTreeMap<u64, (u64, u64)>,
    free: Ranges,
    free_bytes: u64,
    /// Number of free ranges of a block group in the free space tree, after its address and length.
    free_pieces: Vec<(u64, u64, u32)>,
    /// Addresses in the free space tree that no chunk has.
    free_nowhere: Vec<u64>,
    /// Length and chunk of device extents, by device and address.
    pub(super) dev_extents: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Space {
    pub(super) fn take_extents(&mut self, leaf: &TreeBlock, node_size: u64) {
        for (key, bytes) in leaf.items() {
            let (is_data, length) = match key.kind {
                kind::EXTENT => {
                    let flags = ExtentItem::parse(key, bytes).map_or(0, |item| item.flags);
                    (flags & DATA != 0, key.offset)
                }
                kind::METADATA => (false, node_size),
                kind::BLOCK_GROUP => {
                    self.take_group(key.object, key.offset, bytes);
                    continue;
                }
                _ => continue,
            };
            let Some(range) = range(key.object, length) else { continue };
            self.extent_bytes = self.extent_bytes.saturating_add(length);
            if is_data {
                self.data.insert(range.clone());
            }
            self.extents.insert(range);
        }
    }

    pub(super) fn take_groups(&mut self, leaf: &TreeBlock) {
        for (key, bytes) in leaf.items().filter(|(key, _)| key.kind == kind::BLOCK_GROUP) {
            self.take_group(key.object, key.offset, bytes);
        }
    }

    fn take_group(&mut self, start: u64, length: u64, bytes: &[u8]) {
        self.groups.insert(start, (length, u64_at(bytes, 0).unwrap_or_default()));
    }

    pub(super) fn take_free(&mut self, filesystem: &FileSystem, leaf: &TreeBlock) {
        let sector_size = filesystem.sector_size() as u64;
        for (key, bytes) in leaf.items() {
            if filesystem.chunks().find_range(key.object, key.offset).is_none() {
                let is_of_mkfs = key.object.saturating_add(key.offset) <= END_OF_MKFS;
                if !is_of_mkfs && self.free_nowhere.len() < MAX_NOWHERE {
                    self.free_nowhere.push(key.object);
                }
                continue;
            }
            match key.kind {
                kind::FREE_SPACE_INFO => {
                    let pieces = u32_at(bytes, 0).unwrap_or_default();
                    self.free_pieces.push((key.object, key.offset, pieces));
                }
                kind::FREE_SPACE_EXTENT => self.add_free(key.object, key.offset),
                kind::FREE_SPACE_BITMAP => {
                    for (byte, bits) in (0u64..).zip(bytes) {
                        let first = key.object.saturating_add(byte * 8 * sector_size);
                        if *bits == u8::MAX {
                            self.add_free(first, 8 * sector_size);
                            continue;
                        }
                        for bit in (0..8).filter(|bit| bits >> bit & 1 == 1) {
                            self.add_free(first.saturating_add(bit * sector_size), sector_size);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add_free(&mut self, start: u64, length: u64) {
        self.free_bytes = self.free_bytes.saturating_add(length);
        self.free.extend(range(start, length));
    }

    pub(super) fn take_dev_extents(&mut self, leaf: &TreeBlock) {
        for (key, bytes) in leaf.items().filter(|(key, _)| key.kind == kind::DEV_EXTENT) {
            if let Some(found) = u64_at(bytes, 24).zip(u64_at(bytes, 16)) {
                self.dev_extents.insert((key.object, key.offset), found);
            }
        }
    }

    pub(super) fn take_checksums(
        &mut self,
        filesystem: &FileSystem,
        leaf: &TreeBlock,
        is_log: bool,
    ) {
        let (sector, size) = (filesystem.sector_size() as u64, filesystem.summer().size());
        let ranges = if is_log { &mut self.covered_by_logs } else { &mut self.covered };
        for (key, bytes) in leaf.items().filter(|(key, _)| key.kind == kind::CHECKSUM) {
            ranges.extend(range(key.offset, (bytes.len() / size) as u64 * sector));
        }
    }

    /// Returns the bytes in use, and whether checksums protect them.
    pub(in crate::verify) fn used(&self) -> Used {
        let mut sum = Unprotected::default();
        let all: u64 = self.extents.iter().map(length).sum();
        let data: u64 = self.data.iter().map(length).sum();
        for extent in self.data.iter() {
            for gap in self.covered.gaps(extent) {
                let nodatasum = within(&self.nodatasum, &gap);
                let internal = within(&self.internal, &gap);
                // Space that one file has preallocated may have been written by another.
                let all = self.preallocated.overlapping(&gap).map(|it| {
                    let piece = common(it, &gap);
                    self.nodatasum.gaps(&piece).map(|it| length(&it)).sum::<u64>()
                });
                let preallocated = all.sum::<u64>();
                let known = nodatasum.saturating_add(internal).saturating_add(preallocated);
                sum.nodatasum += nodatasum;
                sum.internal += internal;
                sum.preallocated += preallocated;
                sum.other += length(&gap).saturating_sub(known);
            }
        }
        let summed = data.saturating_sub(sum.total());
        Used { metadata: all.saturating_sub(data), data: summed, unprotected: sum }
    }

    /// Returns ranges without checksums to read, and whether their mirrors must be equal. The
    /// kernel itself validates a free space cache, so its mirrors may differ.
    pub(in crate::verify) fn unchecked(&self) -> Vec<(Range<u64>, bool)> {
        let of = |ranges: &Ranges, is_equal: bool| {
            let gaps = ranges.iter().flat_map(|range| self.covered.gaps(range));
            gaps.map(|range| (range, is_equal)).collect::<Vec<_>>()
        };
        [of(&self.nodatasum, true), of(&self.internal, false)].concat()
    }

    /// Returns data of logs that lacks required checksums.
    pub(in crate::verify) fn uncovered_in_logs(&self) -> Ranges {
        let logged = self.logged.iter().flat_map(|range| self.covered.gaps(range));
        logged.flat_map(|range| self.covered_by_logs.gaps(&range).collect::<Vec<_>>()).collect()
    }

    /// Reports block groups whose space does not add up.
    pub(super) fn compare(&self, job: &Job<'_>) {
        let superblock = job.filesystem.superblock();
        for &logical in self.written.iter().take(MAX_WRITTEN) {
            if !job.resolver.is_written(logical) {
                let reason = "it has checksums, and files have it as not written";
                job.report_contradiction(Subject::Data, Some(logical), 0, reason);
            }
        }
        if self.extents.iter().map(length).sum::<u64>() != self.extent_bytes {
            let reason = "extents overlap";
            job.report_contradiction(Subject::Tree(object::EXTENT_TREE), None, 0, reason);
        }
        let used: u64 = self.groups.values().fold(0, |sum, (_, used)| sum.saturating_add(*used));
        if used != superblock.bytes_used {
            let reason =
                format!("{} bytes are in use, in block groups {used}", superblock.bytes_used);
            job.report_contradiction(Subject::FileSystem, None, 0, reason);
        }
        for (&start, &(length, used)) in &self.groups {
            let Some(group) = range(start, length) else { continue };
            let found = within(&self.extents, &group);
            if found != used {
                let reason = format!("{used} bytes are in use, extents have {found}");
                job.report_contradiction(Subject::Chunk, Some(start), length, reason);
            }
        }
        if superblock.has_valid_free_space_tree() {
            self.compare_free(job);
        }
    }

    fn compare_free(&self, job: &Job<'_>) {
        let mut known = 0;
        for &(start, length, pieces) in &self.free_pieces {
            if self.groups.get(&start).is_none_or(|(of_group, _)| *of_group != length) {
                let reason = "the free space tree has a block group of it that is not there";
                job.report_contradiction(Subject::Chunk, Some(start), length, reason);
                continue;
            }
            let Some(group) = range(start, length) else { continue };
            known += 1;
            let found = self.free.overlapping(&group).count();
            let free = within(&self.free, &group);
            let used = within(&self.extents, &group);
            let overlap = self.free.overlapping(&group);
            let both: u64 = overlap.map(|it| within(&self.extents, &common(it, &group))).sum();
            let reason = if both > 0 {
                format!("{both} bytes are in use and free")
            } else if free.saturating_add(used) != length {
                format!("{free} bytes are free and {used} in use, of {length}")
            } else if found != pieces as usize {
                format!("what is free is in {found} pieces, not {pieces}")
            } else {
                continue;
            };
            job.report_contradiction(Subject::Chunk, Some(start), length, reason);
        }
        for &start in &self.free_nowhere {
            let reason = format!("it has free space at {start}, where there is no block group");
            job.report_contradiction(Subject::Tree(object::FREE_SPACE_TREE), None, 0, reason);
        }
        let all: u64 = self.free.iter().map(length).sum();
        if all != self.free_bytes || known != self.groups.len() {
            let reason = "block groups are missing, or space is listed twice";
            job.report_contradiction(Subject::Tree(object::FREE_SPACE_TREE), None, 0, reason);
        }
    }
}

/// Returns `None` if the range is empty or overflows.
pub(super) fn range(start: u64, length: u64) -> Option<Range<u64>> {
    let end = start.checked_add(length)?;
    (length > 0).then_some(start..end)
}

pub(super) fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Returns the intersection of two ranges that overlap.
fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

fn within(ranges: &Ranges, all: &Range<u64>) -> u64 {
    ranges.overlapping(all).map(|it| length(&common(it, all))).sum()
}

/// End of the block groups that mkfs.btrfs begins with and removes. Up to version 6.15, it leaves
/// their entries in the free space tree: 1 MiB is reserved, and 4, 8 and 8 MiB follow.
const END_OF_MKFS: u64 = 21 << 20;

/// Maximum number of addresses without a block group to report.
/// Limit in addresses.
const MAX_NOWHERE: usize = 16;

/// Maximum number of preallocated extents to check. Those with checksums are rare.
/// Limit in extents.
const MAX_WRITTEN: usize = 4096;
