//! Reads the ranges of bmaps.
//!
//! A range has one checksum of all its blocks. Blocks in no range are unknown: bmaptool neither writes nor checks them. The
//! last block may be short, and is hashed as it is. A map needs the digest of each block, so that it can be made of ranges of
//! one block only.

use std::fmt;

use blkhash::{Algorithm, BlockSize, Digest, Digester};
use blkmap::{DigestedRange, Error, ReadAt, Result};

use super::head::{Head, NO_CHECKSUMS, read_head};
use super::xml::{Tag, Tags};
use crate::bytes::each_part;
use crate::shape::Shape;
use crate::target::{Blocks, Target};
use crate::text::{self, read_at};

/// The block map of bmaptool: checksums of ranges of the blocks of an image.
///
/// ```no_run
/// # fn main() -> blkmap::Result<()> {
/// let file = std::fs::File::open("disk.bmap")?;
/// let bmap = blkindex::Bmap::open(&file)?;
/// for range in bmap.ranges()? {
///     let range = range?;
///     println!("{} blocks from {} on: {}", range.count, range.first, range.digest);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Bmap<'a> {
    file: &'a dyn ReadAt,
    head: Head,
}

impl<'a> Bmap<'a> {
    /// Opens a bmap of version 2.0, 1.4 or 1.3, and reads all of it once. Compares it with its own checksum.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, is no bmap, is damaged, has no checksums of ranges, or its ranges are not in order, overlap
    /// or end past the image.
    pub fn open(file: &'a dyn ReadAt) -> Result<Self> {
        let bmap = Self::with_head(file)?;
        bmap.check_file()?;
        for range in bmap.ranges()? {
            range?;
        }
        Ok(bmap)
    }

    fn with_head(file: &'a dyn ReadAt) -> Result<Self> {
        Ok(Self { file, head: read_head(file)? })
    }

    /// Returns the digest of the checksums.
    pub fn algorithm(&self) -> Algorithm {
        self.head.shape.algorithm
    }

    /// Returns the size of a block.
    pub fn block_size(&self) -> BlockSize {
        self.head.shape.block_size
    }

    /// Returns the size of the image in bytes.
    pub fn image_size(&self) -> u64 {
        self.head.shape.image_size
    }

    /// Returns the number of blocks in ranges.
    pub fn mapped_blocks(&self) -> u64 {
        self.head.mapped
    }

    /// Returns the ranges, in order. The file is read again.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read. An item fails like [`open`](Self::open), and is the last one then.
    pub fn ranges(&self) -> Result<BmapRanges<'a>> {
        let tags = Tags::new(self.file, self.head.end)?;
        Ok(BmapRanges { tags, head: self.head.clone(), next: 0, mapped: 0, is_over: false })
    }

    /// Compares the file with its own checksum.
    fn check_file(&self) -> Result<()> {
        let Head { shape, checksum, digits, .. } = &self.head;
        let mut state = Digester::new(shape.algorithm).start();
        each_part(self.file, 0..self.file.length()?, 1, |at, part| {
            for (offset, byte) in (at..).zip(&mut *part) {
                if digits.contains(&offset) {
                    *byte = b'0';
                }
            }
            state.update(part);
            Ok(())
        })?;
        match state.finalize() == *checksum {
            true => Ok(()),
            false => Err(Error::damaged(digits.start, "the file has another checksum")),
        }
    }
}

impl fmt::Debug for Bmap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmap")
            .field("shape", &self.head.shape)
            .field("mapped_blocks", &self.head.mapped)
            .finish_non_exhaustive()
    }
}

/// The ranges of a [`Bmap`].
pub struct BmapRanges<'a> {
    tags: Tags<'a>,
    head: Head,
    /// Index of the first block that may come.
    next: u64,
    /// Number of blocks in the ranges so far.
    mapped: u64,
    is_over: bool,
}

impl Iterator for BmapRanges<'_> {
    type Item = Result<DigestedRange>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let range = self.read().transpose();
        self.is_over = !matches!(range, Some(Ok(_)));
        range
    }
}

impl fmt::Debug for BmapRanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BmapRanges").field("next", &self.next).finish_non_exhaustive()
    }
}

impl BmapRanges<'_> {
    /// Reads the next range, or the end of the file.
    fn read(&mut self) -> Result<Option<DigestedRange>> {
        let tag = self.tags.bare()?;
        if tag.name == "/BlockMap" {
            return self.end().map(|()| None);
        }
        let fail = |reason: &str| Err(Error::damaged(tag.at, reason));
        if tag.name != "Range" {
            return fail("not a range of blocks");
        }
        let digest = self.digest(&tag)?;
        let end = self.tags.expect()?;
        if end.name != "/Range" {
            return fail("a range without an end");
        }
        let (first, last) = end.text.split_once('-').unwrap_or((&end.text, &end.text));
        let [first, last] = [first, last].map(|it| text::number(it.trim().as_bytes()));
        let (first, last) = (read_at(tag.at, first)?, read_at(tag.at, last)?);
        if first < self.next || last < first || last >= self.head.shape.blocks() {
            let blocks = blocks_text(first, last);
            let reason = format!("{blocks} out of order or past the end");
            return Err(Error::damaged(tag.at, reason));
        }
        let count = last - first + 1;
        (self.next, self.mapped) = (last + 1, self.mapped + count);
        Ok(Some(DigestedRange { first, count, digest }))
    }

    fn digest(&self, tag: &Tag) -> Result<Digest> {
        let Some(digest) = tag.only_attribute(self.head.attribute) else {
            return Err(Error::Unsupported(NO_CHECKSUMS.into()));
        };
        let digest = read_at(tag.at, text::digest(digest.as_bytes()))?;
        match digest.as_bytes().len() == self.head.shape.algorithm.digest_size() {
            true => Ok(digest),
            false => Err(Error::damaged(tag.at, "a checksum of another length than its type")),
        }
    }

    /// Checks what comes after the ranges.
    fn end(&mut self) -> Result<()> {
        if self.mapped != self.head.mapped {
            let reason = format!("{} blocks in ranges, and not {}", self.mapped, self.head.mapped);
            return Err(Error::damaged(self.tags.at, reason));
        }
        let end = self.tags.bare()?;
        match (&*end.name, self.tags.next()?) {
            ("/bmap", None) => Ok(()),
            _ => Err(Error::damaged(end.at, "the file does not end after its ranges")),
        }
    }
}

/// Opens a bmap for a map. Reads what comes before the ranges.
pub(super) fn open(file: &dyn ReadAt) -> Result<(Shape, Bmap<'_>)> {
    let bmap = Bmap::with_head(file)?;
    Ok((bmap.head.shape, bmap))
}

impl Blocks for Bmap<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        self.check_file()?;
        let mut next = 0;
        for range in self.ranges()? {
            let DigestedRange { first, count, digest } = range?;
            if count > 1 {
                let (blocks, more) = (blocks_text(first, first + count - 1), LONG);
                return Err(Error::Unsupported(format!("has one checksum of {blocks}: {more}")));
            }
            target.unknown(first - next)?;
            target.digests(digest.as_bytes())?;
            next = first + 1;
        }
        target.unknown(self.head.shape.blocks() - next)
    }
}

fn blocks_text(first: u64, last: u64) -> String {
    match first == last {
        true => format!("block {first}"),
        false => format!("the blocks {first}-{last}"),
    }
}

const LONG: &str = "a map needs one for each block. 'blkhash map verify' compares an image with it, and 'blkhash map \
                    create' makes a map of the image";
