//! Compares the blocks of an image with a map.

use blkhash::{BlockDigests, Comparison, Digest, Run, Sink, SinkError};

use crate::last_block::{self, Block};
use crate::{BlockRun, Blocks, Map, Report, Result};

/// The side of a comparison that the map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The map is what the image should be or was before.
    Left,
    /// The map is what the image became.
    Right,
}

/// The end of an image that is compared with a map.
#[derive(Clone, Copy, Debug)]
pub struct ImageEnd {
    /// Size of the image in bytes.
    pub size: u64,
    /// Digest of the last block padded with zeros to a whole one, if it is short.
    pub padded_last: Option<Digest>,
}

/// A sink for the digests of the blocks of an image that compares them with a map. Blocks past the end of the
/// map are ignored.
pub struct Against<'a, 'r> {
    map: &'a Map,
    side: Side,
    blocks: Blocks<'a>,
    image: ImageEnd,
    /// Digest of zeros as long as the last block of the image, if it is short.
    short_zeros: Option<Digest>,
    padded: Option<Digest>,
    report: Report<'r>,
}

impl<'a, 'r> Against<'a, 'r> {
    /// Begins with the first of `blocks`, which is the first block that is compared.
    pub fn new(
        map: &'a Map,
        side: Side,
        blocks: Blocks<'a>,
        image: ImageEnd,
        report: Report<'r>,
    ) -> Self {
        let short = (image.size % u64::from(map.header().block_size)) as usize;
        let short_zeros = (short > 0).then(|| map.header().leaf().hash(&vec![0; short]));
        Self { map, side, blocks, image, short_zeros, padded: map.padded_last(), report }
    }

    /// Passes on the last run.
    pub fn end(&mut self) {
        self.report.end();
    }

    fn zeros(&mut self, mut count: u64) -> Result<()> {
        let Self { map, side, image, padded, .. } = *self;
        let other = Other { map, side, image, padded, short_zeros: self.short_zeros };
        let zero = *map.zero_block();
        while count > 0 {
            let Some(run) = self.blocks.next(count)? else { return Ok(()) };
            count -= match run {
                BlockRun::Zeros { first, count } => {
                    self.report.push(first, count, Comparison::Zeros);
                    count
                }
                BlockRun::Unknown { first, count } => {
                    self.report.push(first, count, Comparison::Unknown);
                    count
                }
                BlockRun::Digests { first, entries } => {
                    let entries = entries.chunks_exact(map.header().entry_size());
                    let count = entries.len() as u64;
                    for (block, entry) in (first..).zip(entries) {
                        self.report.push(block, 1, other.compare(block, entry, zero.as_bytes()));
                    }
                    count
                }
            };
        }
        Ok(())
    }

    fn digests(&mut self, mut digests: &[u8]) -> Result<()> {
        let Self { map, side, image, padded, .. } = *self;
        let other = Other { map, side, image, padded, short_zeros: self.short_zeros };
        let (entry_size, size) = (map.header().entry_size(), map.header().algorithm.digest_size());
        let zero = *map.zero_block();
        while !digests.is_empty() {
            let left = (digests.len() / size) as u64;
            let Some(run) = self.blocks.next(left)? else { return Ok(()) };
            let count = match run {
                BlockRun::Zeros { first, count } => {
                    for (block, digest) in (first..first + count).zip(digests.chunks_exact(size)) {
                        self.report.push(block, 1, other.compare(block, zero.as_bytes(), digest));
                    }
                    count
                }
                BlockRun::Unknown { first, count } => {
                    self.report.push(first, count, Comparison::Unknown);
                    count
                }
                BlockRun::Digests { first, entries } => {
                    let entries = entries.chunks_exact(entry_size);
                    let count = entries.len() as u64;
                    let pairs = entries.zip(digests.chunks_exact(size));
                    for (block, (entry, digest)) in (first..).zip(pairs) {
                        self.report.push(block, 1, other.compare(block, &entry[..size], digest));
                    }
                    count
                }
            };
            digests = &digests[count as usize * size..];
        }
        Ok(())
    }
}

/// The other side of a comparison with a block of the map.
#[derive(Clone, Copy)]
struct Other<'a> {
    map: &'a Map,
    side: Side,
    image: ImageEnd,
    padded: Option<Digest>,
    short_zeros: Option<Digest>,
}

impl Other<'_> {
    fn compare(&self, block: u64, entry: &[u8], digest: &[u8]) -> Comparison {
        let block_size = u64::from(self.map.header().block_size);
        let entry = &entry[..digest.len()];
        let length = (self.image.size - block * block_size).min(block_size);
        let zeros = match &self.short_zeros {
            Some(zeros) if length < block_size => zeros,
            _ => self.map.zero_block(),
        };
        let one = Block {
            length: self.map.block_length(block) as u64,
            digest: entry,
            padded: self.padded.as_ref(),
            is_zero: self.map.is_zero_block(block, entry),
        };
        let padded = self.image.padded_last.as_ref();
        let other = Block { length, digest, padded, is_zero: digest == zeros.as_bytes() };
        match self.side {
            Side::Left => last_block::compare(one, other, block_size),
            Side::Right => last_block::compare(other, one, block_size),
        }
    }
}

impl Sink<BlockDigests> for Against<'_, '_> {
    fn take(&mut self, digests: &BlockDigests) -> std::result::Result<(), SinkError> {
        for run in digests.runs() {
            match run {
                Run::Digests { digests, .. } => self.digests(digests)?,
                Run::Zeros { count } => self.zeros(count)?,
            }
        }
        Ok(())
    }
}
