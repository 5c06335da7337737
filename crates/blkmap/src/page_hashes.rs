//! Reads the hashes of pages, and pages that have to match them.

use crate::bytes::is_zero;
use crate::page::{PageHasher, sha256};
use crate::page_run::PageRun;
use crate::pages::{Span, SpanKind};
use crate::{Error, Header, Map, PAGE, Result};

/// The hashes of a map, read part by part.
pub(crate) struct PageHashes<'a> {
    map: &'a Map,
    /// Index of the first hash in `part`.
    first: u64,
    part: Vec<u8>,
}

impl<'a> PageHashes<'a> {
    pub(crate) fn new(map: &'a Map) -> Self {
        Self { map, first: 0, part: Vec::new() }
    }

    /// Returns hashes from `index` on, one after the other: `count`, or fewer that are available.
    pub(crate) fn get(&mut self, index: u64, count: u64) -> Result<&[u8]> {
        let held = self.part.len() as u64 / 32;
        if index < self.first || index >= self.first + held {
            let area = self.map.commit().page_hashes;
            let length = (area.count - index).min(PART) * 32;
            self.part.resize(length as usize, 0);
            self.map.read_hashes(&mut self.part, index)?;
            self.first = index;
        }
        let from = (index - self.first) as usize * 32;
        let length = (count as usize).saturating_mul(32).min(self.part.len() - from);
        Ok(&self.part[from..][..length])
    }
}

/// Reads pages and compares them with their hashes.
pub(crate) struct PageReader<'a> {
    map: &'a Map,
    hashes: PageHashes<'a>,
    hasher: PageHasher,
    buffer: Vec<u8>,
    /// The hashes of the pages in the buffer.
    found: Vec<u8>,
}

impl<'a> PageReader<'a> {
    /// Maximum number of pages that are read at once.
    pub(crate) const MAX: u64 = 64;

    pub(crate) fn new(map: &'a Map) -> Self {
        let hashes = PageHashes::new(map);
        Self { map, hashes, hasher: PageHasher::new(), buffer: Vec::new(), found: Vec::new() }
    }

    /// Returns hashes from `index` on: `count`, or fewer that are available.
    pub(crate) fn hashes(&mut self, index: u64, count: u64) -> Result<&[u8]> {
        self.hashes.get(index, count)
    }

    /// Returns the bytes of a page, or `None` if it has only zero blocks, or is not known.
    pub(crate) fn read_span(&mut self, span: Span) -> Result<Option<&[u8]>> {
        match span.kind {
            SpanKind::Stored { offset, hash } => self.read(span.first, 1, offset, hash).map(Some),
            SpanKind::Zeros | SpanKind::Unknown => Ok(None),
        }
    }

    /// Returns `count` pages from the page `first` on, at most [`MAX`](Self::MAX), which are at `offset` and
    /// whose hashes begin at `hash`.
    pub(crate) fn read(&mut self, first: u64, count: u64, offset: u64, hash: u64) -> Result<&[u8]> {
        self.read_with_hashes(first, count, offset, hash).map(|(pages, _)| pages)
    }

    /// Like [`read`](Self::read), and returns the hashes of the pages, too.
    pub(crate) fn read_with_hashes(
        &mut self,
        first: u64,
        count: u64,
        offset: u64,
        hash: u64,
    ) -> Result<(&[u8], &[u8])> {
        self.buffer.resize(count as usize * PAGE, 0);
        self.map.bytes().read_exact_at(&mut self.buffer, offset)?;
        self.found = self.hasher.hash_all(&self.buffer);
        let mut index = 0;
        while index < count {
            let part = self.hashes.get(hash + index, count - index)?;
            let found = &self.found[index as usize * 32..][..part.len()];
            let mut pairs = part.chunks_exact(32).zip(found.chunks_exact(32));
            if let Some(bad) = pairs.position(|(one, other)| one != other) {
                let at = offset + (index + bad as u64) * PAGE as u64;
                return Err(Error::damaged(at, "a page has another hash"));
            }
            index += part.len() as u64 / 32;
        }
        check_padding(&self.buffer, first, offset, self.map)?;
        Ok((&self.buffer, &self.found))
    }
}

/// Returns a page of a stored run, which has to match its hash.
pub(crate) fn read_page(map: &Map, run: &PageRun, page: u64) -> Result<Vec<u8>> {
    let index = page - run.first;
    let (offset, hash) = (run.offset + index * PAGE as u64, run.first_hash + index);
    let (mut bytes, mut wanted) = (vec![0; PAGE], [0; 32]);
    map.bytes().read_exact_at(&mut bytes, offset)?;
    map.read_hashes(&mut wanted, hash)?;
    if sha256(&bytes) != wanted {
        return Err(Error::damaged(offset, "a page has another hash"));
    }
    check_padding(&bytes, page, offset, map)?;
    Ok(bytes)
}

/// Fails if bytes of pages that hold no digest are not zeros.
fn check_padding(pages: &[u8], first: u64, offset: u64, map: &Map) -> Result<()> {
    let header: &Header = map.header();
    let (entry_size, digest_size) = (header.entry_size(), header.algorithm.digest_size());
    let end =
        (map.commit().blocks - first * header.blocks_per_page()).saturating_mul(entry_size as u64);
    let used = pages.len().min(usize::try_from(end).unwrap_or(usize::MAX));
    let padded = |entry: &[u8]| !is_zero(&entry[digest_size..]);
    if !is_zero(&pages[used..])
        || (entry_size > digest_size && pages.chunks_exact(entry_size).any(padded))
    {
        return Err(Error::damaged(offset, "a page has bytes that belong to no digest"));
    }
    Ok(())
}

/// Hashes that are read at once.
const PART: u64 = 1 << 12;
