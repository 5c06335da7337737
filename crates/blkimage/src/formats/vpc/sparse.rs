//! Dynamic and differencing disks: blocks, each with a bitmap of its sectors.

use std::sync::Arc;

use super::header::Header;
use crate::caches::{LayerCaches, TablePart};
use crate::error::Result;
use crate::formats::block_table::{BlockTable, Run};
use crate::formats::fields::Entry;
use crate::formats::table_cache::Table;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::storage::HostFile;

/// A dynamic or differencing disk, without its parent.
pub(super) struct Sparse {
    file: Arc<HostFile>,
    size: u64,
    blocks: BlockTable,
    header: Header,
    is_difference: bool,
    caches: LayerCaches,
}

impl Sparse {
    pub fn new(
        file: Arc<HostFile>,
        size: u64,
        header: Header,
        is_difference: bool,
        caches: LayerCaches,
    ) -> Self {
        let blocks = BlockTable { table: header.table, block: header.block };
        Self { file, size, blocks, header, is_difference, caches }
    }

    /// Returns whether the sector of byte `within` of the block at `start` is stored, and for how many of
    /// `length` bytes that is so.
    fn stored(
        &self,
        start: u64,
        within: u64,
        length: u64,
        miss: impl FnOnce(),
    ) -> Result<(bool, u64)> {
        let table = Table { offset: start, length: self.header.bitmap, entry: Entry::Be64 };
        let sector = within / SECTOR;
        let (words, first) = self.caches.table_entry_or(&self.file, table, sector / 64, miss)?;
        let mut bit = (sector % 64) as u32;
        let is_stored = words[first] << bit >> 63 == 1;
        let wanted = (within % SECTOR + length).div_ceil(SECTOR);
        let mut sectors = 0;
        for word in &words[first..] {
            let differing = if is_stored { !word } else { *word };
            let same = (differing << bit).leading_zeros().min(64 - bit);
            sectors += u64::from(same);
            if same < 64 - bit || sectors >= wanted {
                break;
            }
            bit = 0;
        }
        Ok((is_stored, length.min(sectors * SECTOR - within % SECTOR)))
    }

    /// Announces the bitmaps of the blocks after the one with the guest byte at `guest`.
    fn announce_bitmaps(&self, guest: u64, limit: u64) {
        let BlockTable { table, block } = self.blocks;
        let length = self.header.bitmap.min(self.caches.window());
        // The bitmap is reached by way of this entry, so that its window is in memory.
        let number = guest / block;
        let Ok((window, first)) = self.caches.table_entry(&self.file, table, number) else {
            return;
        };
        let blocks = (number..).zip(&window[first..]).skip(1);
        let parts = blocks.filter_map(|(number, entry)| {
            let offset = Header::locate(*entry)?;
            Some(TablePart { guest: number.saturating_mul(block), span: block, offset, length })
        });
        self.caches.announce_tables(&self.file, guest, limit, parts);
    }
}

impl Layer for Sparse {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let (guest, wanted) = (range.offset, range.limit);
        let within = guest % self.blocks.block;
        let limit = range.limit.min(self.blocks.block - within);
        let range = GuestRange { limit, ..range };
        let Run { host, length } =
            self.blocks.run(&self.caches, &self.file, range, Header::locate)?;
        let Some(host) = host else {
            return Ok(Mapping { kind: MappingKind::Below, length });
        };
        let start = host - within;
        self.header.check_block(&self.file, start)?;
        let miss = || {
            if self.file.read_ahead() > 0 {
                self.announce_bitmaps(guest, wanted);
            }
        };
        let (is_stored, length) = self.stored(start, within, length, miss)?;
        let offset = host + self.header.bitmap;
        let kind = if is_stored {
            MappingKind::Host { file: &self.file, offset }
        } else if self.is_difference {
            MappingKind::Below
        } else {
            MappingKind::Opaque(Stored { offset, length })
        };
        Ok(Mapping { kind, length })
    }

    /// Reads sectors that the bitmap of a dynamic disk omits. They are zero, but QEMU reads what the block
    /// holds. Fails if that makes a difference.
    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buf, stored.offset)?;
        match buf.iter().position(|byte| *byte != 0) {
            None => Ok(()),
            Some(position) => {
                let guest = offset + position as u64;
                let reason = format!("sector of guest offset {guest} is unused and not zero");
                Err(self.file.corrupt(reason).at(stored.offset + position as u64))
            }
        }
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}

const SECTOR: u64 = 512;
