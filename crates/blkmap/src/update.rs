//! Writes the next state of a map from the blocks that changed.

use blkhash::{Digest, Run};

use crate::page_hashes::PageReader;
use crate::pages::{Pages, Span, SpanKind};
use crate::{Commit, Error, Header, Key, Map, Output, PAGE, Result, Writer};

/// Writes a map that has new digests for some blocks of another map, and that map's digests for all others.
pub struct Update<'a, O> {
    base: &'a Map,
    writer: Writer<O>,
    pages: Pages<'a>,
    reader: PageReader<'a>,
    /// Whether the pages of the base are in the file that is written.
    appends: bool,
}

impl<'a, O: Output> Update<'a, O> {
    /// Begins the next state of `base`, of an image that has `image_size` bytes now. `output` appends to the file of the
    /// base, which must end with it. Pages without changes are not written again. An update of a sealed map is sealed with
    /// the same `key`.
    ///
    /// # Errors
    ///
    /// Fails like [`Map::check_base`], and if the base is followed by something.
    pub fn append(base: &'a Map, output: O, image_size: u64, key: Option<Key>) -> Result<Self> {
        base.check_end()?;
        base.check_base(key.as_ref())?;
        Ok(Self::new(base, Writer::after(base, output, image_size), key, true))
    }

    /// Begins a map of its own, which has a copy of the pages without changes. Each of them is compared with its hash.
    ///
    /// # Errors
    ///
    /// Fails like [`Map::check_base`], and if the header cannot be written.
    pub fn copy(base: &'a Map, output: O, image_size: u64, key: Option<Key>) -> Result<Self> {
        base.check_base(key.as_ref())?;
        let Header { algorithm, block_size, salt, .. } = *base.header();
        let header = Header::new(algorithm, block_size, salt)?;
        Ok(Self::new(base, Writer::new(output, header, image_size)?, key, false))
    }

    fn new(base: &'a Map, writer: Writer<O>, key: Option<Key>, appends: bool) -> Self {
        let mut writer = writer.sealed_with(key);
        // It is set again if the last block changes.
        writer.set_padded_last(base.padded_last());
        let pages = Pages::new(base, 0, base.pages());
        Self { base, writer, pages, reader: PageReader::new(base), appends }
    }

    /// Sets the digest of the last block padded with zeros to a whole one, if that block is short. Necessary if it is
    /// among those that changed.
    pub fn set_padded_last(&mut self, digest: Option<Digest>) {
        self.writer.set_padded_last(digest);
    }

    /// Writes new digests for blocks from `first` on. Blocks are written in order, and all that the image has and the base
    /// has not, or has with another length, have to be.
    ///
    /// # Errors
    ///
    /// Fails if the base cannot be read, or the map cannot be written.
    pub fn write(&mut self, first: u64, run: Run<'_>) -> Result<()> {
        self.keep_until(first)?;
        match run {
            Run::Digests { digests, .. } => self.writer.digests(digests),
            Run::Zeros { count } => self.writer.zeros(count),
        }
    }

    /// Keeps the blocks up to the end of the image, and ends the map. `info` is a JSON object.
    ///
    /// # Errors
    ///
    /// Fails like [`write`](Self::write).
    pub fn finish(mut self, info: &str) -> Result<(O, Commit)> {
        self.keep_until(self.writer.blocks())?;
        self.writer.finish(info)
    }

    /// Keeps the blocks of the base from the current one to `end`.
    fn keep_until(&mut self, end: u64) -> Result<()> {
        let per_page = self.base.header().blocks_per_page();
        let (old, new) = (self.base.commit(), self.writer.blocks());
        // The last page is a whole one only if both images end there.
        let is_whole = end == new && old.image_size == self.writer.image_size();
        let whole_pages = if is_whole { self.base.pages() } else { end / per_page };
        while self.writer.next_block() < end {
            let block = self.writer.next_block();
            if block >= old.blocks {
                return Err(Error::Content("blocks that the base has not were left out".into()));
            }
            let page = block / per_page;
            self.pages.seek(page);
            let span = self.pages.current()?.ok_or(Error::Unfinished)?;
            if block.is_multiple_of(per_page) && page < whole_pages {
                self.keep_pages(Span { count: span.count.min(whole_pages - page), ..span })?;
            } else {
                self.keep_blocks(span, block, end)?;
            }
        }
        Ok(())
    }

    fn keep_pages(&mut self, span: Span) -> Result<()> {
        match span.kind {
            SpanKind::Zeros => self.writer.push_zero_pages(span.count),
            SpanKind::Unknown => {}
            SpanKind::Stored { offset, hash } if self.appends => {
                let hashes = self.reader.hashes(hash, span.count)?;
                self.writer.push_stored(offset, hashes);
            }
            SpanKind::Stored { offset, hash } => {
                let count = span.count.min(PageReader::MAX);
                let (pages, hashes) =
                    self.reader.read_with_hashes(span.first, count, offset, hash)?;
                self.writer.push_pages(pages, hashes)?;
            }
        }
        Ok(())
    }

    /// Keeps blocks from `block` on, which is in the first page of `span`, at most to the end of the page or to `end`.
    fn keep_blocks(&mut self, span: Span, block: u64, end: u64) -> Result<()> {
        let header = self.base.header();
        let first = span.first * header.blocks_per_page();
        let end = end.min(first + header.blocks_per_page()).min(self.base.commit().blocks);
        match span.kind {
            SpanKind::Zeros => self.writer.zeros(end - block),
            SpanKind::Unknown => Ok(()),
            SpanKind::Stored { offset, hash } => {
                let (entry, digest) = (header.entry_size(), header.algorithm.digest_size());
                let page = self.reader.read(span.first, 1, offset, hash)?;
                debug_assert_eq!(page.len(), PAGE);
                let entries =
                    &page[(block - first) as usize * entry..(end - first) as usize * entry];
                if entry == digest {
                    return self.writer.digests(entries);
                }
                let digests = entries.chunks_exact(entry).flat_map(|entry| &entry[..digest]);
                self.writer.digests(&digests.copied().collect::<Vec<u8>>())
            }
        }
    }
}
