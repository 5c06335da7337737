//! Compares two maps without their images.

use blkhash::{Comparison, Digest};

use crate::last_block::{self, Block};
use crate::page_hashes::{PageHashes, PageReader};
use crate::pages::{Pages, Span, SpanKind};
use crate::{Error, Header, Map, Report, Result};

/// Compares the blocks that both images have, up to the end of the smaller one. If blocks have different
/// lengths, the shorter one is padded with zeros. Pages with equal hashes are not read, so zero blocks in them are reported
/// as [`Comparison::Equal`].
///
/// # Errors
///
/// Fails if the parameters of the maps differ, or a map cannot be read or is damaged.
pub fn diff(left: &Map, right: &Map, report: Report<'_>) -> Result<()> {
    check_parameters(left.header(), right.header())?;
    let (one, other) = (left.commit(), right.commit());
    // With the same root, the hashes of all pages are equal, or one of the maps is damaged.
    if one.root.is_none() || one.root != other.root {
        left.check_hashes()?;
        right.check_hashes()?;
    }
    let end = left.pages().min(right.pages());
    let mut pages = (Pages::new(left, 0, end), Pages::new(right, 0, end));
    let mut comparer = Comparer::new(left, right, report);
    while let (Some(one), Some(other)) = (pages.0.current()?, pages.1.current()?) {
        let count = one.count.min(other.count);
        comparer.pages(one, other, count)?;
        pages.0.advance(count);
        pages.1.advance(count);
    }
    comparer.report.end();
    Ok(())
}

/// Fails unless digests of both maps are of the same blocks.
pub(crate) fn check_parameters(left: &Header, right: &Header) -> Result<()> {
    let describe = |header: &Header| {
        let salt = if header.salt.is_empty() { "" } else { ", salted" };
        format!("{} of blocks of {}{salt}", header.algorithm, header.block_size)
    };
    let is_equal = left.algorithm == right.algorithm
        && left.block_size == right.block_size
        && left.salt == right.salt;
    if is_equal {
        return Ok(());
    }
    let (one, other) = (describe(left), describe(right));
    let and = if one == other { "another salt".to_owned() } else { other };
    Err(Error::Mismatch(format!("the digests cannot be compared: {one}, and {and}")))
}

struct Comparer<'a, 'r> {
    maps: (&'a Map, &'a Map),
    hashes: (PageHashes<'a>, PageHashes<'a>),
    readers: (PageReader<'a>, PageReader<'a>),
    report: Report<'r>,
    /// Number of blocks that both images have.
    blocks: u64,
}

impl<'a, 'r> Comparer<'a, 'r> {
    fn new(left: &'a Map, right: &'a Map, report: Report<'r>) -> Self {
        Self {
            maps: (left, right),
            hashes: (PageHashes::new(left), PageHashes::new(right)),
            readers: (PageReader::new(left), PageReader::new(right)),
            report,
            blocks: left.commit().blocks.min(right.commit().blocks),
        }
    }

    /// Compares `count` pages.
    fn pages(&mut self, left: Span, right: Span, count: u64) -> Result<()> {
        let first = left.first;
        match (left.kind, right.kind) {
            (SpanKind::Unknown, _) | (_, SpanKind::Unknown) => {
                self.whole_pages(first, count, Comparison::Unknown);
            }
            (SpanKind::Zeros, SpanKind::Zeros) => {
                self.whole_pages(first, count, Comparison::Zeros);
            }
            (SpanKind::Stored { hash: one, .. }, SpanKind::Stored { hash: other, .. }) => {
                let mut done = 0;
                while done < count {
                    let left_hashes = self.hashes.0.get(one + done, count - done)?;
                    let right_hashes = self.hashes.1.get(other + done, count - done)?;
                    let length = left_hashes.len().min(right_hashes.len());
                    let pairs = (&left_hashes[..length], &right_hashes[..length]);
                    // Most pages are equal.
                    let differing: Vec<u64> = if pairs.0 == pairs.1 {
                        Vec::new()
                    } else {
                        let pairs = pairs.0.chunks_exact(32).zip(pairs.1.chunks_exact(32));
                        let differing = (0..).zip(pairs).filter(|(_, (one, other))| one != other);
                        differing.map(|(index, _)| index).collect()
                    };
                    let part = length as u64 / 32;
                    let mut next = 0;
                    for index in differing {
                        let equal = index - next;
                        self.whole_pages(first + done + next, equal, Comparison::Equal);
                        self.page(left.at(done + index), right.at(done + index))?;
                        next = index + 1;
                    }
                    self.whole_pages(first + done + next, part - next, Comparison::Equal);
                    done += part;
                }
            }
            (SpanKind::Zeros, SpanKind::Stored { .. })
            | (SpanKind::Stored { .. }, SpanKind::Zeros) => {
                for index in 0..count {
                    self.page(left.at(index), right.at(index))?;
                }
            }
        }
        Ok(())
    }

    fn whole_pages(&mut self, first: u64, count: u64, kind: Comparison) {
        let per_page = self.maps.0.header().blocks_per_page();
        let from = first * per_page;
        let end = (first + count).saturating_mul(per_page).min(self.blocks);
        self.report.push(from, end.saturating_sub(from), kind);
    }

    /// Compares the blocks of a page that at least one map stores.
    fn page(&mut self, left: Span, right: Span) -> Result<()> {
        self.maps.0.check_hashes()?;
        self.maps.1.check_hashes()?;
        let first = left.first * self.maps.0.header().blocks_per_page();
        let count = (self.blocks - first).min(self.maps.0.header().blocks_per_page()) as usize;
        let one = self.readers.0.read_span(left)?;
        let other = self.readers.1.read_span(right)?;
        let (left, right) = self.maps;
        let block_size = u64::from(left.header().block_size);
        let padded = (left.padded_last(), right.padded_last());
        for index in 0..count {
            let number = first + index as u64;
            let one = block_of(left, one, number, index, padded.0.as_ref());
            let other = block_of(right, other, number, index, padded.1.as_ref());
            self.report.push(number, 1, last_block::compare(one, other, block_size));
        }
        Ok(())
    }
}

/// Returns a block, which is at `index` of its page. A page of zero blocks has no bytes.
fn block_of<'a>(
    map: &'a Map,
    page: Option<&'a [u8]>,
    number: u64,
    index: usize,
    padded: Option<&'a Digest>,
) -> Block<'a> {
    let (entry_size, size) = (map.header().entry_size(), map.header().algorithm.digest_size());
    let digest = page.map(|page| &page[index * entry_size..][..size]);
    let digest = digest.unwrap_or(map.zero_block().as_bytes());
    let length = map.block_length(number) as u64;
    Block { length, digest, padded, is_zero: map.is_zero_block(number, digest) }
}
