//! Compares parts of an image with its map, in any order and from any thread.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use blkhash::engine::Batch;
use blkhash::{BlockDigests, Digest, Leaf, Run};

use crate::page_hashes::read_page;
use crate::{Error, Map, Result};

/// Compares parts of an image with its map. Parts come in any order and from any thread, and only the pages of their blocks
/// are read. Some of these are kept for the next part.
pub struct BlockCheck {
    map: Map,
    leaf: Leaf,
    slots: Vec<Mutex<Option<Held>>>,
}

/// The relation of blocks of content to a map's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockVerdict {
    /// All blocks equal the map's.
    Equal,
    /// A block differs. Holds the number of the first one.
    Different(u64),
    /// No block differs, and the map does not know one. Holds the number of the first one.
    Unknown(u64),
}

/// Pages around one, as the map has them.
#[derive(Clone)]
struct Held {
    pages: Range<u64>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Zeros,
    Unknown,
    /// The bytes of one page.
    Stored(Arc<Vec<u8>>),
}

/// What the map has of a block.
enum Known {
    Digest(Digest),
    /// Zero blocks up to the block of this number.
    ZerosUntil(u64),
    /// Nothing up to the block of this number.
    NothingUntil(u64),
}

impl BlockCheck {
    /// Creates a check with a map.
    ///
    /// # Errors
    ///
    /// Fails if the page hashes or the root are damaged.
    pub fn new(map: Map) -> Result<Self> {
        map.check_hashes()?;
        let leaf = map.header().leaf();
        let slots = std::iter::repeat_with(|| Mutex::new(None)).take(SLOTS).collect();
        Ok(Self { map, leaf, slots })
    }

    /// Returns the map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns the digest of a block, or `None` if the map does not know it or the image has no such block.
    ///
    /// # Errors
    ///
    /// Fails if the map cannot be read or is damaged.
    pub fn digest(&self, block: u64) -> Result<Option<Digest>> {
        if block >= self.map.commit().blocks() {
            return Ok(None);
        }
        Ok(match self.known(block)? {
            Known::Digest(digest) => Some(digest),
            Known::ZerosUntil(_) => Some(*self.map.zero_block()),
            Known::NothingUntil(_) => None,
        })
    }

    /// Compares whole blocks of content, which begin at `offset`, with the map's.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Mismatch`] unless the content consists of blocks of the image, of which only the last one may be
    /// short. Fails if the map cannot be read or is damaged.
    pub fn check(&self, offset: u64, content: &[u8]) -> Result<BlockVerdict> {
        let mut block = self.first_block(offset, content.len() as u64)?;
        let mut digests = BlockDigests::default();
        let mut batch = Batch::new(&self.leaf, &mut digests);
        batch.update(content);
        batch.finish();
        let mut verdict = BlockVerdict::Equal;
        for run in digests.runs() {
            let (count, part) = match run {
                Run::Zeros { count } => (count, self.zeros(block, block + count)?),
                Run::Digests { count, digests } => (count, self.digests(block, digests)?),
            };
            verdict = verdict.and(part);
            block += count;
        }
        Ok(verdict)
    }

    /// Compares blocks of zeros with the map's, like [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// Fails like [`check`](Self::check).
    pub fn check_zeros(&self, offset: u64, length: u64) -> Result<BlockVerdict> {
        let first = self.first_block(offset, length)?;
        let block_size = u64::from(self.map.header().block_size);
        let verdict = self.zeros(first, first + length / block_size)?;
        match length % block_size {
            0 => Ok(verdict),
            short => {
                let last = self.check(offset + (length - short), &vec![0; short as usize])?;
                Ok(verdict.and(last))
            }
        }
    }

    /// Returns the number of the first block.
    fn first_block(&self, offset: u64, length: u64) -> Result<u64> {
        let (block_size, size) =
            (u64::from(self.map.header().block_size), self.map.commit().image_size());
        let end = offset.checked_add(length).filter(|end| *end <= size);
        let is_whole = |at: u64| at.is_multiple_of(block_size);
        if !end.is_some_and(|end| is_whole(offset) && (is_whole(end) || end == size)) {
            let reason = format!("{length} bytes at {offset} are not whole blocks of the map");
            return Err(Error::Mismatch(reason));
        }
        Ok(offset / block_size)
    }

    fn digests(&self, first: u64, digests: &[u8]) -> Result<BlockVerdict> {
        let mut verdict = BlockVerdict::Equal;
        for (block, digest) in (first..).zip(digests.chunks_exact(self.leaf.digest_size())) {
            verdict = verdict.and(match self.known(block)? {
                Known::Digest(known) if known.as_bytes() == digest => BlockVerdict::Equal,
                // Data can have the digest of zeros if the digest is not cryptographic.
                Known::ZerosUntil(_) if self.map.zero_block().as_bytes() == digest => {
                    BlockVerdict::Equal
                }
                Known::NothingUntil(_) => BlockVerdict::Unknown(block),
                _ => BlockVerdict::Different(block),
            });
        }
        Ok(verdict)
    }

    fn zeros(&self, first: u64, end: u64) -> Result<BlockVerdict> {
        let (mut block, mut verdict) = (first, BlockVerdict::Equal);
        while block < end {
            let (next, part) = match self.known(block)? {
                Known::ZerosUntil(until) => (until, BlockVerdict::Equal),
                Known::Digest(known) if known == *self.map.zero_block() => {
                    (block + 1, BlockVerdict::Equal)
                }
                Known::Digest(_) => return Ok(BlockVerdict::Different(block)),
                Known::NothingUntil(until) => (until, BlockVerdict::Unknown(block)),
            };
            verdict = verdict.and(part);
            block = next;
        }
        Ok(verdict)
    }

    fn known(&self, block: u64) -> Result<Known> {
        let header = self.map.header();
        let per_page = header.blocks_per_page();
        let page = block / per_page;
        let held = self.page(page)?;
        let until = held.pages.end.saturating_mul(per_page);
        let bytes = match &held.kind {
            Kind::Zeros => return Ok(Known::ZerosUntil(until)),
            Kind::Unknown => return Ok(Known::NothingUntil(until)),
            Kind::Stored(bytes) => bytes,
        };
        let at = (block % per_page) as usize * header.entry_size();
        let digest = &bytes[at..][..header.algorithm.digest_size()];
        Ok(Known::Digest(Digest::try_from(digest).expect("the length of a digest")))
    }

    fn page(&self, page: u64) -> Result<Held> {
        let slot = &self.slots[(page % SLOTS as u64) as usize];
        let held = slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(held) = held
            && held.pages.contains(&page)
        {
            return Ok(held);
        }
        let held = match self.map.find_run(page)? {
            Some(run) if run.first <= page && run.is_zero() => {
                Held { pages: run.first..run.end(), kind: Kind::Zeros }
            }
            Some(run) if run.first <= page => {
                let bytes = read_page(&self.map, &run, page)?;
                Held { pages: page..page + 1, kind: Kind::Stored(Arc::new(bytes)) }
            }
            behind => {
                let end = behind.map_or(self.map.pages(), |run| run.first);
                Held { pages: page..end, kind: Kind::Unknown }
            }
        };
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(held.clone());
        Ok(held)
    }
}

impl BlockVerdict {
    /// Returns the verdict about both, of which `self` comes first.
    fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Different(_), _) | (Self::Unknown(_), Self::Equal | Self::Unknown(_)) => self,
            _ => next,
        }
    }
}

impl std::fmt::Debug for BlockCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCheck").field("map", &self.map).finish_non_exhaustive()
    }
}

/// Maximum number of pages of a map that are kept, 8 KiB each at most.
/// Limit in pages.
const SLOTS: usize = 256;
