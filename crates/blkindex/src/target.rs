//! Passes the blocks of an index to the writer of a map, page by page.

use blkhash::{BlockDigests, Digest, Sink};
use blkmap::{Error, Header, Output, Result, Writer};

/// The digests of an index.
pub(crate) trait Blocks {
    /// Passes all blocks to `target`, in order.
    fn write(&mut self, target: &mut Target<'_>) -> Result<()>;
}

/// A writer of a map, whatever its output.
pub(crate) trait Take {
    /// Appends the digests of pages, of which `first` is the number of the first. Those before it are unknown.
    fn take(&mut self, first: u64, digests: &BlockDigests) -> Result<()>;
}

impl<O: Output> Take for Writer<O> {
    fn take(&mut self, first: u64, digests: &BlockDigests) -> Result<()> {
        self.skip_to(first)?;
        Sink::take(self, digests).map_err(|error| match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::Content(error.to_string()),
        })
    }
}

/// Collects blocks to pages. A page with an unknown block is left out as a whole, because a map knows no parts of pages.
pub(crate) struct Target<'a> {
    writer: &'a mut dyn Take,
    header: Header,
    image_size: u64,
    /// Number of blocks of the image.
    blocks: u64,
    /// Number of the next block.
    next: u64,
    /// The blocks of the current page that are known.
    page: BlockDigests,
    /// Number of the blocks in `page`.
    known: u64,
    /// Whether a block of the current page is unknown.
    has_unknown: bool,
    left_out: u64,
}

impl<'a> Target<'a> {
    pub fn new(writer: &'a mut dyn Take, header: Header, image_size: u64) -> Self {
        Self {
            writer,
            header,
            image_size,
            blocks: image_size.div_ceil(header.block_size.into()),
            next: 0,
            page: BlockDigests::default(),
            known: 0,
            has_unknown: false,
            left_out: 0,
        }
    }

    /// Appends blocks with these digests, which follow each other.
    pub fn digests(&mut self, mut digests: &[u8]) -> Result<()> {
        let size = self.header.algorithm.digest_size();
        debug_assert!(digests.len().is_multiple_of(size));
        self.check_room((digests.len() / size) as u64)?;
        while !digests.is_empty() {
            let count = (digests.len() / size).min(self.room() as usize);
            let (these, rest) = digests.split_at(count * size);
            // The writer does not look at lengths.
            self.page.extend(these, size, 0);
            digests = rest;
            self.known += count as u64;
            self.advance(count as u64)?;
        }
        Ok(())
    }

    /// Appends blocks of zeros. The last block of the image may be a short one.
    pub fn zeros(&mut self, count: u64) -> Result<()> {
        self.check_room(count)?;
        let short = (self.image_size % u64::from(self.header.block_size)) as usize;
        let has_short = count > 0 && short > 0 && self.next + count == self.blocks;
        self.whole_zeros(count - u64::from(has_short))?;
        if has_short {
            let digest: Digest = self.header.leaf().hash(&vec![0; short]);
            self.digests(digest.as_bytes())?;
        }
        Ok(())
    }

    fn whole_zeros(&mut self, mut count: u64) -> Result<()> {
        let (per_page, block_size) = (self.header.blocks_per_page(), self.header.block_size);
        while count > 0 {
            let pages = if self.room() == per_page { count / per_page } else { 0 };
            let added = if pages > 0 { pages * per_page } else { count.min(self.room()) };
            self.page.push_zero_blocks(added, block_size.get());
            self.known += added;
            self.advance(added)?;
            count -= added;
        }
        Ok(())
    }

    /// Appends blocks that the index does not know.
    pub fn unknown(&mut self, mut count: u64) -> Result<()> {
        self.check_room(count)?;
        let per_page = self.header.blocks_per_page();
        while count > 0 {
            let is_whole = self.room() == per_page && count >= per_page;
            let added = if is_whole { count - count % per_page } else { count.min(self.room()) };
            self.has_unknown = true;
            self.advance(added)?;
            count -= added;
        }
        Ok(())
    }

    /// Ends the last page. Returns the number of blocks that were left out although the index knows them.
    pub fn finish(self) -> Result<u64> {
        if self.next != self.blocks {
            return Err(Error::Content("the index has fewer blocks than its image".into()));
        }
        Ok(self.left_out)
    }

    /// Returns the number of blocks that the current page has room for.
    fn room(&self) -> u64 {
        let per_page = self.header.blocks_per_page();
        per_page - self.next % per_page
    }

    fn check_room(&self, count: u64) -> Result<()> {
        if count > self.blocks - self.next {
            return Err(Error::Content("the index has more blocks than its image".into()));
        }
        Ok(())
    }

    /// Counts blocks that were appended. Blocks after the page's are never among them.
    fn advance(&mut self, count: u64) -> Result<()> {
        let per_page = self.header.blocks_per_page();
        let first = self.next - self.next % per_page;
        self.next += count;
        if !self.next.is_multiple_of(per_page) && self.next != self.blocks {
            return Ok(());
        }
        if self.has_unknown {
            self.left_out += self.known;
        } else {
            self.writer.take(first / per_page, &self.page)?;
        }
        self.page.clear();
        self.known = 0;
        self.has_unknown = false;
        Ok(())
    }
}
