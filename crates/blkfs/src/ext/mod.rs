//! ext2, ext3 and ext4.
//!
//! A journal that was not replayed is read like the kernel would replay it: what it holds stands for what is in place. Thus the
//! owners and names are what a mount would show, and blocks that were not written in place yet are not reported as
//! damaged.

mod backup;
mod bitmaps;
mod block_set;
mod blocks;
mod checksum;
mod copies;
mod device;
mod directory;
mod disk;
mod extents;
mod group;
mod groups;
mod indirect;
mod inode;
mod inodes;
mod journal;
mod journal_superblock;
mod layout;
mod map;
mod replay;
mod run;
mod superblock;
mod walk;
mod xattr;

use std::ops::ControlFlow;

pub(crate) use self::backup::find_backup;
use self::blocks::Blocks;
use self::checksum::Sums;
use self::disk::Ext;
use self::group::Group;
use self::inode::Inode;
use self::journal::Journal;
use self::map::Role;
use self::superblock::{OFFSET, SIZE, Superblock, compat, incompat};
use self::walk::Walk;
use crate::error::Result;
use crate::kind::Kind;
use crate::reader::Reader;
use crate::visitor::{Entry, Extent, Mismatch, ObjectId, Problem, Visitor, Wanted};
use crate::volume::Volume;

/// Recognises a file system.
pub(crate) fn open(volume: &Volume) -> Result<Option<Box<dyn Reader>>> {
    if volume.size() < OFFSET + SIZE as u64 {
        return Ok(None);
    }
    let bytes = volume.read(OFFSET, SIZE)?;
    let Some(superblock) = Superblock::parse(&bytes)? else { return Ok(None) };
    if superblock.incompat(incompat::JOURNAL_DEV) {
        return Ok(Some(device::open(volume, superblock, &bytes)?));
    }
    let mut ext = Ext {
        sums: Sums::new(&superblock),
        blocks: Blocks::new(volume.clone(), superblock.block_size),
        journal: Journal::default(),
        superblock,
    };
    ext.read_journal()?;
    Ok(Some(Box::new(ext)))
}

impl Ext {
    /// Reads the journal, and lets what it holds stand for what is in place.
    fn read_journal(&mut self) -> Result<()> {
        let superblock = &self.superblock;
        if !superblock.compat(compat::HAS_JOURNAL) {
            return Ok(());
        }
        let needs_recovery = superblock.incompat(incompat::RECOVER);
        if superblock.journal_inode == 0 {
            self.journal.is_unsettled = needs_recovery;
            return Ok(());
        }
        let replay = needs_recovery.then_some(superblock.blocks);
        let runs = self.journal_runs()?;
        let volume = &self.blocks.volume;
        self.journal = replay::read(volume, superblock.block_size, &runs, replay)?;
        if self.journal.patches.is_empty() {
            return Ok(());
        }
        self.blocks.replace(std::mem::take(&mut self.journal.patches));
        let mut bytes = vec![0; OFFSET as usize + SIZE];
        let block = OFFSET / superblock.block_size;
        self.blocks.read_into(&mut bytes, block)?;
        let start = (OFFSET - block * superblock.block_size) as usize;
        if let Ok(Some(replayed)) = Superblock::parse(&bytes[start..start + SIZE])
            && replayed.block_size == superblock.block_size
        {
            self.sums = Sums::new(&replayed);
            self.superblock = replayed;
        }
        Ok(())
    }

    /// Returns the blocks of the journal.
    fn journal_runs(&self) -> Result<Vec<run::Run>> {
        let superblock = &self.superblock;
        let index = superblock.journal_inode - 1;
        let (group, index) =
            (index / superblock.inodes_per_group, index % superblock.inodes_per_group);
        if group >= superblock.groups {
            return Ok(Vec::new());
        }
        let per_block = superblock.descriptors_per_block();
        let place = superblock.descriptor_block(group / per_block) * superblock.block_size
            + group % per_block * superblock.descriptor_size as u64;
        let volume = &self.blocks.volume;
        let Ok(bytes) = volume.read(place, superblock.descriptor_size) else {
            return Ok(Vec::new());
        };
        let table = Group::parse(&bytes, superblock).inode_table;
        let place = table.saturating_mul(superblock.block_size);
        let place = place.saturating_add(index * superblock.inode_size as u64);
        let Ok(bytes) = volume.read(place, superblock.inode_size) else { return Ok(Vec::new()) };
        let inode = Inode { number: superblock.journal_inode, bytes: &bytes };
        let mut nothing = Nothing;
        let mut walk = Walk::new(self, Wanted::default(), &mut nothing);
        walk.collected = Some(Vec::new());
        walk.map(&inode, Role::Journal)?;
        Ok(walk.collected.unwrap_or_default())
    }
}

impl Reader for Ext {
    fn kind(&self) -> Kind {
        self.superblock.kind()
    }

    fn size(&self) -> u64 {
        self.superblock.blocks * self.superblock.block_size
    }

    fn label(&self) -> Option<Vec<u8>> {
        self.superblock.label()
    }

    fn uuid(&self) -> Option<String> {
        uuid(&self.superblock.uuid)
    }

    fn is_settled(&self) -> bool {
        !self.journal.is_unsettled && !self.journal.has_fast_commits
    }

    fn remarks(&self) -> Vec<String> {
        let superblock = &self.superblock;
        let mut remarks = Vec::new();
        let has_journal = superblock.compat(compat::HAS_JOURNAL);
        if has_journal && superblock.journal_inode == 0 {
            let uuid = uuid(&superblock.journal_uuid).unwrap_or_else(|| "none".to_owned());
            remarks.push(format!("the journal is on another device (UUID {uuid})"));
        }
        if self.journal.is_unsettled {
            remarks.push(
                "the journal was not replayed and cannot be read: names, owners and checksums are those \
                 in place, which may be old"
                    .to_owned(),
            );
        } else if superblock.incompat(incompat::RECOVER) {
            remarks.push(
                "the journal was not replayed: names, owners and checksums are as after its replay"
                    .to_owned(),
            );
        }
        if self.journal.has_fast_commits {
            remarks.push("the journal ends with fast commits, which are not read".to_owned());
        }
        if superblock.state & HAS_ERRORS != 0 {
            remarks.push("the kernel found errors in it".to_owned());
        }
        if !has_journal && superblock.state & IS_CLEAN == 0 {
            remarks.push("it was not unmounted".to_owned());
        }
        remarks
    }

    fn root(&self) -> ObjectId {
        ROOT
    }

    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
        Walk::new(self, wanted, visitor).run(self)
    }
}

/// Returns a UUID as text, if it is not all zeros.
fn uuid(bytes: &[u8; 16]) -> Option<String> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    bytes.iter().any(|byte| *byte != 0).then(|| parts.join("-"))
}

/// A visitor that wants nothing.
struct Nothing;

impl Visitor for Nothing {
    fn extent(&mut self, _: Extent) {}
    fn matched(&mut self, _: &'static str, _: u64, _: u64) {}
    fn mismatch(&mut self, _: Mismatch) {}
    fn entry(&mut self, _: Entry<'_>) {}
    fn problem(&mut self, _: Problem) {}

    fn advance(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Number of the top directory.
const ROOT: ObjectId = 2;

const IS_CLEAN: u16 = 1;
const HAS_ERRORS: u16 = 2;
