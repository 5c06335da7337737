//! The blocks of a map, in order.

use std::ops::Range;

use crate::page_hashes::PageReader;
use crate::pages::{Pages, SpanKind};
use crate::{Map, Result};

/// Consecutive blocks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRun<'a> {
    /// Blocks with digests, each padded to the entry size of the map, one after the other.
    Digests {
        /// Number of the first block.
        first: u64,
        /// The entries.
        entries: &'a [u8],
    },
    /// Whole blocks of zeros.
    Zeros {
        /// Number of the first block.
        first: u64,
        /// Number of blocks.
        count: u64,
    },
    /// Blocks that the map does not know.
    Unknown {
        /// Number of the first block.
        first: u64,
        /// Number of blocks.
        count: u64,
    },
}

/// Hands out the blocks of a map in order. Everything that it hands out matches the root, or, if the map does
/// not know every block, the hashes of the commit.
pub struct Blocks<'a> {
    map: &'a Map,
    pages: Pages<'a>,
    reader: PageReader<'a>,
    held: Held,
    /// Number of the next block.
    block: u64,
}

/// Data that was read and is not handed out yet.
enum Held {
    /// Entries, from an offset in bytes on.
    Entries(Vec<u8>, usize),
    /// Number of blocks.
    Zeros(u64),
    /// Number of blocks.
    Unknown(u64),
}

impl Held {
    fn is_empty(&self) -> bool {
        match self {
            Self::Entries(entries, from) => *from == entries.len(),
            Self::Zeros(left) | Self::Unknown(left) => *left == 0,
        }
    }
}

impl Map {
    /// Returns all blocks of the image.
    ///
    /// # Errors
    ///
    /// Fails if the page hashes or the root are damaged.
    pub fn blocks(&self) -> Result<Blocks<'_>> {
        self.blocks_of(0..self.pages())
    }

    /// Returns the blocks of a range of pages.
    ///
    /// # Errors
    ///
    /// Fails if the page hashes or the root are damaged.
    pub fn blocks_of(&self, pages: Range<u64>) -> Result<Blocks<'_>> {
        self.check_hashes()?;
        Ok(Blocks {
            map: self,
            block: (pages.start * self.header().blocks_per_page()).min(self.commit().blocks),
            pages: Pages::new(self, pages.start, pages.end),
            reader: PageReader::new(self),
            held: Held::Zeros(0),
        })
    }
}

impl Blocks<'_> {
    /// Returns the next blocks, at most `limit` and at least one, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Fails if the map cannot be read or is damaged.
    pub fn next(&mut self, limit: u64) -> Result<Option<BlockRun<'_>>> {
        if self.held.is_empty() && !self.fill()? {
            return Ok(None);
        }
        let first = self.block;
        let entry_size = self.map.header().entry_size();
        let (count, run) = match &mut self.held {
            Held::Zeros(left) => {
                let count = (*left).min(limit);
                *left -= count;
                (count, BlockRun::Zeros { first, count })
            }
            Held::Unknown(left) => {
                let count = (*left).min(limit);
                *left -= count;
                (count, BlockRun::Unknown { first, count })
            }
            Held::Entries(entries, from) => {
                let start = *from;
                let left = (entries.len() - start) / entry_size;
                let count = usize::try_from(limit).unwrap_or(usize::MAX).min(left);
                *from += count * entry_size;
                (count as u64, BlockRun::Digests { first, entries: &entries[start..*from] })
            }
        };
        self.block += count;
        Ok(Some(run))
    }

    /// Reads on. Returns false at the end.
    fn fill(&mut self) -> Result<bool> {
        let header = self.map.header();
        let Some(span) = self.pages.current()? else { return Ok(false) };
        let (per_page, blocks) = (header.blocks_per_page(), self.map.commit().blocks);
        let until = |page: u64| page.saturating_mul(per_page).min(blocks) - self.block;
        self.held = match span.kind {
            SpanKind::Zeros => Held::Zeros(until(span.first + span.count)),
            SpanKind::Unknown => Held::Unknown(until(span.first + span.count)),
            SpanKind::Stored { offset, hash } => {
                let count = span.count.min(PageReader::MAX);
                let length = until(span.first + count) as usize * header.entry_size();
                let pages = self.reader.read(span.first, count, offset, hash)?;
                self.pages.advance(count);
                self.held = Held::Entries(pages[..length].to_vec(), 0);
                return Ok(true);
            }
        };
        self.pages.advance(span.count);
        Ok(true)
    }
}
