//! A device that holds nothing but the journal of another file system.

use super::groups::metadata;
use super::journal::Journal;
use super::replay;
use super::run::Run;
use super::superblock::{OFFSET, SIZE, Superblock, ro_compat};
use super::{checksum::Check, uuid};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::reader::Reader;
use crate::visitor::{Extent, ObjectId, Owner, Visitor, Wanted};
use crate::volume::Volume;

/// An external journal.
struct JournalDevice {
    superblock: Superblock,
    journal: Journal,
}

/// Reads the superblocks of an external journal.
pub(super) fn open(
    volume: &Volume,
    superblock: Superblock,
    bytes: &[u8],
) -> Result<Box<dyn Reader>> {
    let block_size = superblock.block_size;
    let start = OFFSET / block_size + 1;
    // The journal counts its blocks from the beginning of the device.
    let count = superblock.blocks;
    let run = Run { logical: 0, physical: start, count, is_written: true };
    let mut journal = replay::read(volume, block_size, &[run], None)?;
    if superblock.ro_compat(ro_compat::METADATA_CSUM) {
        journal.check(Check::superblock(bytes), "superblock", OFFSET, SIZE as u64);
    }
    Ok(Box::new(JournalDevice { superblock, journal }))
}

impl Reader for JournalDevice {
    fn kind(&self) -> Kind {
        Kind::Jbd
    }

    fn size(&self) -> u64 {
        self.superblock.blocks.saturating_mul(self.superblock.block_size)
    }

    fn label(&self) -> Option<Vec<u8>> {
        self.superblock.label()
    }

    fn uuid(&self) -> Option<String> {
        uuid(&self.superblock.uuid)
    }

    fn remarks(&self) -> Vec<String> {
        vec!["it is the journal of another file system, and has no files".to_owned()]
    }

    fn root(&self) -> ObjectId {
        0
    }

    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
        if wanted.extents {
            let start = (OFFSET / self.superblock.block_size + 1) * self.superblock.block_size;
            let mut extent = |offset: u64, end: u64, owner| {
                if let Some(length) = end.checked_sub(offset).filter(|length| *length > 0) {
                    visitor.extent(Extent { offset, length, owner });
                }
            };
            extent(0, OFFSET, metadata("boot block"));
            extent(OFFSET, start, metadata("superblock"));
            extent(start, self.size(), Owner::Journal);
        }
        self.journal.report(wanted, visitor);
        match visitor.advance(2 * SIZE as u64).is_break() {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }
}
