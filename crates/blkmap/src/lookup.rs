//! Compares single blocks with a map, without reading those between them.

use std::ops::ControlFlow;

use blkhash::{Digest, Run};

use crate::page_hashes::PageReader;
use crate::pages::{Pages, SpanKind};
use crate::{Error, Map, Result};

/// Compares digests of blocks with a map's. Reads only the pages of these blocks.
pub struct Lookup<'a> {
    map: &'a Map,
    pages: Pages<'a>,
    reader: PageReader<'a>,
    /// Number and bytes of the last page. `None` has only zero blocks.
    held: Option<(u64, Option<Vec<u8>>)>,
}

impl<'a> Lookup<'a> {
    /// Begins before the first block.
    ///
    /// # Errors
    ///
    /// Fails if the page hashes or the root are damaged.
    pub fn new(map: &'a Map) -> Result<Self> {
        map.check_hashes()?;
        let pages = Pages::new(map, 0, map.pages());
        Ok(Self { map, pages, reader: PageReader::new(map), held: None })
    }

    /// Returns the number of the first block that has another digest than in the map. The blocks from `first` on are
    /// after the blocks of the last call.
    ///
    /// # Errors
    ///
    /// Fails if the map cannot be read or is damaged, or does not know one of the blocks.
    pub fn find_difference(&mut self, first: u64, run: Run<'_>) -> Result<Option<u64>> {
        let mut found = None;
        self.differences(first, run, &mut |block, _| {
            found = Some(block);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Passes the number of each block that has another digest than in the map to `take`, and the digest in the map, until
    /// that breaks. The blocks from `first` on are after the blocks of the last call.
    ///
    /// # Errors
    ///
    /// Fails like [`find_difference`](Self::find_difference).
    pub fn differences(
        &mut self,
        first: u64,
        run: Run<'_>,
        take: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let header = self.map.header();
        let (size, entry, per_page) =
            (header.algorithm.digest_size(), header.entry_size(), header.blocks_per_page());
        let zero = *self.map.zero_block();
        let (count, digests) = match run {
            Run::Digests { count, digests } => (count, Some(digests)),
            Run::Zeros { count } => (count, None),
        };
        let (mut block, end) = (first, first + count);
        while block < end {
            let page = self.page(block / per_page)?;
            let next = end.min((block / per_page + 1) * per_page);
            if page.is_none() && digests.is_none() {
                block = next;
                continue;
            }
            for block in block..next {
                let known = page.map(|page| &page[(block % per_page) as usize * entry..][..size]);
                let known = known.unwrap_or(zero.as_bytes());
                let found =
                    digests.map(|digests| &digests[(block - first) as usize * size..][..size]);
                if found.unwrap_or(zero.as_bytes()) != known && take(block, known).is_break() {
                    return Ok(());
                }
            }
            block = next;
        }
        Ok(())
    }

    /// Returns the digest of a block that the map has. It is not before the block of the last call.
    ///
    /// # Errors
    ///
    /// Fails if the map cannot be read or is damaged, or does not know the block.
    pub fn digest(&mut self, block: u64) -> Result<Digest> {
        let header = self.map.header();
        let (size, entry, per_page) =
            (header.algorithm.digest_size(), header.entry_size(), header.blocks_per_page());
        let zero = *self.map.zero_block();
        let page = self.page(block / per_page)?;
        let known = page.map(|page| &page[(block % per_page) as usize * entry..][..size]);
        Ok(known.map_or(zero, |known| Digest::try_from(known).expect("the length of a digest")))
    }

    /// Returns the bytes of a page, or `None` if it has only zero blocks.
    fn page(&mut self, page: u64) -> Result<Option<&[u8]>> {
        if self.held.as_ref().is_none_or(|(held, _)| *held != page) {
            self.pages.seek(page);
            let commit = self.map.commit();
            let incomplete = Error::Incomplete { known: commit.known, blocks: commit.blocks };
            let span = self.pages.current()?.filter(|span| span.kind != SpanKind::Unknown);
            let span = span.ok_or(incomplete)?.at(0);
            self.held = Some((page, self.reader.read_span(span)?.map(<[u8]>::to_vec)));
        }
        Ok(self.held.as_ref().and_then(|(_, bytes)| bytes.as_deref()))
    }
}
