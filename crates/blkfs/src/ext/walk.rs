//! One walk over all metadata: what it knows, and how it reads and reports.

use super::block_set::{IN_USE, Seen};
use super::blocks::Blocks;
use super::checksum::{Check, Sums};
use super::disk::Ext;
use super::group::Group;
use super::run::Run;
use super::superblock::{OFFSET, Superblock};
use crate::error::{Error, Result};
use crate::visitor::{Extent, Mismatch, ObjectId, Owner, Problem, ProblemKind, Visitor, Wanted};

/// A walk. Its methods fail only if the visitor stops it.
pub(super) struct Walk<'a> {
    pub superblock: &'a Superblock,
    pub sums: Sums,
    pub blocks: &'a Blocks,
    pub wanted: Wanted,
    visitor: &'a mut dyn Visitor,
    pub groups: Vec<Group>,
    pub seen: Seen,
    /// Runs of the journal, when it is looked for.
    pub collected: Option<Vec<Run>>,
    /// Whether a journal that cannot be read may have newer blocks, so that nothing is certainly damaged.
    is_unsettled: bool,
    matched: Vec<(&'static str, u64, u64)>,
    /// Number of inodes whose checksums match, before they are added to `matched`.
    pub matched_inodes: u64,
    /// A copy of an inode.
    pub scratch: Vec<u8>,
    pending: Option<Extent>,
    /// Number of mismatches and problems.
    findings: u64,
    unreported: u64,
    buffers: Vec<Vec<u8>>,
}

impl<'a> Walk<'a> {
    pub fn new(ext: &'a Ext, wanted: Wanted, visitor: &'a mut dyn Visitor) -> Self {
        Self {
            superblock: &ext.superblock,
            sums: ext.sums,
            blocks: &ext.blocks,
            wanted,
            visitor,
            groups: Vec::new(),
            seen: Seen::default(),
            collected: None,
            is_unsettled: ext.journal.is_unsettled,
            matched: Vec::new(),
            matched_inodes: 0,
            scratch: Vec::new(),
            pending: None,
            findings: 0,
            unreported: 0,
            buffers: Vec::new(),
        }
    }

    /// Reports what is wanted.
    pub fn run(&mut self, ext: &Ext) -> Result<()> {
        ext.journal.report(self.wanted, self.visitor);
        self.compare_size();
        if self.wanted.checks {
            self.check_superblock()?;
        }
        self.read_groups()?;
        self.drop_overlaps();
        if self.wanted.extents {
            self.report_groups();
        }
        if self.wanted.checks {
            self.check_backups()?;
            self.check_mmp()?;
        }
        if self.wanted.extents || self.wanted.checks {
            self.read_block_bitmaps()?;
        }
        self.read_inodes()?;
        self.finish()
    }

    fn compare_size(&mut self) {
        let superblock = self.superblock;
        let (size, volume) = (superblock.blocks * superblock.block_size, self.blocks.volume.size());
        if size > volume {
            let reason = format!("the file system has {size} bytes, but there are {volume}");
            self.problem(ProblemKind::Damaged, "superblock", OFFSET, None, reason);
        }
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(count) = self.findings.checked_sub(MAX_FINDINGS).filter(|count| *count > 0) {
            let reason = format!("{count} more mismatches and problems are left out");
            let (kind, structure, offset, object) =
                (ProblemKind::Skipped, "superblock", OFFSET, None);
            self.visitor.problem(Problem { kind, structure, offset, object, reason });
        }
        if let Some(extent) = self.pending.take() {
            self.visitor.extent(extent);
        }
        for (structure, count, bytes) in std::mem::take(&mut self.matched) {
            self.visitor.matched(structure, count, bytes);
        }
        self.advance(0, true)
    }

    fn advance(&mut self, bytes: u64, is_last: bool) -> Result<()> {
        self.unreported += bytes;
        if self.unreported < REPORT && !is_last {
            return Ok(());
        }
        match self.visitor.advance(std::mem::take(&mut self.unreported)).is_break() {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    /// Fills `bytes` from a block on. Returns whether that was possible. If not, the problem was reported.
    pub fn read(
        &mut self,
        bytes: &mut [u8],
        block: u64,
        structure: &'static str,
        object: Option<ObjectId>,
    ) -> Result<bool> {
        self.advance(bytes.len() as u64, false)?;
        let Err(error) = self.blocks.read_into(bytes, block) else { return Ok(true) };
        let kind = match error {
            Error::Image(_) => ProblemKind::Unreadable,
            _ => ProblemKind::Damaged,
        };
        let offset = block.saturating_mul(self.superblock.block_size);
        self.visitor.problem(Problem {
            kind,
            structure,
            offset,
            object,
            reason: error.to_string(),
        });
        Ok(false)
    }

    /// Returns an empty buffer.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Takes back a buffer.
    pub fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.buffers.push(buffer);
    }

    /// Returns the number of blocks in a large read.
    pub const fn blocks_per_read(&self) -> u64 {
        READ_SIZE / self.superblock.block_size
    }

    /// Reports bytes with an owner, together with those before if they continue.
    pub fn emit(&mut self, offset: u64, length: u64, owner: Owner) {
        // Bytes past all offsets belong to references past the end, which were reported.
        let is_possible = length > 0 && offset.checked_add(length).is_some();
        if !is_possible || !self.wanted.extents {
            return;
        }
        if let Some(pending) = &mut self.pending
            && pending.offset + pending.length == offset
            && is_next(pending, &owner)
        {
            pending.length += length;
        } else if let Some(extent) = self.pending.replace(Extent { offset, length, owner }) {
            self.visitor.extent(extent);
        }
    }

    /// Reports blocks with an owner.
    pub fn emit_blocks(&mut self, block: u64, count: u64, owner: Owner) {
        let (block_size, blocks) = (self.superblock.block_size, self.superblock.blocks);
        // A damaged superblock can reserve more than there is.
        let end = block.saturating_add(count).min(blocks);
        if block < end {
            self.emit(block * block_size, (end - block) * block_size, owner);
        }
    }

    pub fn entry(&mut self, entry: crate::visitor::Entry<'_>) {
        self.visitor.entry(entry);
    }

    /// Counts structures whose checksums match.
    pub fn matched(&mut self, structure: &'static str, count: u64, bytes: u64) {
        match self.matched.iter_mut().find(|it| it.0 == structure) {
            Some(sum) => *sum = (structure, sum.1 + count, sum.2 + bytes),
            None => self.matched.push((structure, count, bytes)),
        }
    }

    /// Reports whether a checksum matches, if there is one.
    pub fn check(
        &mut self,
        check: Option<Check>,
        structure: &'static str,
        offset: u64,
        length: u64,
        object: Option<ObjectId>,
    ) {
        let Some(check) = check else { return };
        if check.is_match() {
            return self.matched(structure, 1, length);
        }
        let mut reason = check.reason();
        if self.is_unsettled {
            reason += UNSETTLED;
            return self.problem(ProblemKind::Skipped, structure, offset, object, reason);
        }
        if let Some(place) = self.blocks.journal_offset(offset / self.superblock.block_size) {
            reason += &format!(" (of the copy in the journal at offset {place})");
        }
        self.findings += 1;
        if self.findings <= MAX_FINDINGS {
            self.visitor.mismatch(Mismatch { structure, offset, length, object, reason });
        }
    }

    /// Reports a block with metadata of an inode that has another use as well.
    pub fn check_use(&mut self, block: u64, structure: &'static str, object: Option<ObjectId>) {
        if self.seen.is_shared(block) {
            let offset = block.saturating_mul(self.superblock.block_size);
            let reason = format!("block {block} {IN_USE}");
            self.damaged(structure, offset, object, reason);
        }
    }

    /// Reports something that violates the rules.
    pub fn damaged(
        &mut self,
        structure: &'static str,
        offset: u64,
        object: Option<ObjectId>,
        mut reason: String,
    ) {
        let mut kind = ProblemKind::Damaged;
        if self.is_unsettled {
            kind = ProblemKind::Skipped;
            reason += UNSETTLED;
        }
        self.problem(kind, structure, offset, object, reason);
    }

    fn problem(
        &mut self,
        kind: ProblemKind,
        structure: &'static str,
        offset: u64,
        object: Option<ObjectId>,
        reason: String,
    ) {
        self.findings += 1;
        if self.findings <= MAX_FINDINGS {
            self.visitor.problem(Problem { kind, structure, offset, object, reason });
        }
    }
}

/// Returns whether `owner` owns the bytes after an extent.
fn is_next(extent: &Extent, owner: &Owner) -> bool {
    match (extent.owner, *owner) {
        (Owner::File { object, offset }, Owner::File { object: other, offset: at }) => {
            object == other && offset.checked_add(extent.length) == Some(at)
        }
        (one, other) => one == other,
    }
}

const UNSETTLED: &str = ", but the journal, which is not available, may have a newer copy";

/// Maximum number of mismatches and problems that are reported.
/// Limit in findings.
const MAX_FINDINGS: u64 = 1 << 16;

/// Number of bytes in a large read.
const READ_SIZE: u64 = 1 << 20;

/// Number of bytes after which the visitor is asked whether to continue.
const REPORT: u64 = 1 << 20;
