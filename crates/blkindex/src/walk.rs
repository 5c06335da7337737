//! Passes over the blocks of a map, for formats that have runs of zeros.

use std::fmt;
use std::io;

use blkmap::{BlockRun, Map, Result};

/// A block with data, or a run of blocks without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// Number of the first block.
    pub block: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Offset in the image.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    pub kind: Kind<&'a [u8]>,
}

/// The kind of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<D> {
    /// One block, with its digest.
    Digest(D),
    Zeros,
    Unknown,
}

/// The numbers of blocks of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub data: u64,
    pub zeros: u64,
    pub unknown: u64,
}

/// Passes the content of a map to `take`, in order, and returns the numbers of blocks. Runs of one kind that
/// follow each other are one piece.
pub(crate) fn walk(map: &Map, take: impl FnMut(Piece<'_>) -> io::Result<()>) -> Result<Counts> {
    let header = map.header();
    let (entry_size, size) = (header.entry_size(), header.algorithm.digest_size());
    let mut walk = Walk {
        take,
        block_size: header.block_size.into(),
        image_size: map.commit().image_size(),
        counts: Counts::default(),
        held: None,
    };
    let mut blocks = map.blocks()?;
    while let Some(run) = blocks.next(u64::MAX)? {
        match run {
            BlockRun::Zeros { first, count } => walk.hold(Kind::Zeros, first, count)?,
            BlockRun::Unknown { first, count } => walk.hold(Kind::Unknown, first, count)?,
            BlockRun::Digests { first, entries } => {
                for (block, entry) in (first..).zip(entries.chunks_exact(entry_size)) {
                    if map.is_zero_block(block, entry) {
                        walk.hold(Kind::Zeros, block, 1)?;
                    } else {
                        walk.release()?;
                        walk.give(Kind::Digest(&entry[..size]), block, 1)?;
                    }
                }
            }
        }
    }
    walk.release()?;
    Ok(walk.counts)
}

struct Walk<F> {
    take: F,
    block_size: u64,
    image_size: u64,
    counts: Counts,
    /// A run without data that may continue, its first block and the number of blocks so far.
    held: Option<(Kind<&'static [u8]>, u64, u64)>,
}

impl<F: FnMut(Piece<'_>) -> io::Result<()>> Walk<F> {
    /// Appends a run without data to the one that is held, if that is of the same kind.
    fn hold(&mut self, kind: Kind<&'static [u8]>, first: u64, count: u64) -> io::Result<()> {
        match &mut self.held {
            Some((held, _, sum)) if *held == kind => *sum += count,
            _ => {
                self.release()?;
                self.held = Some((kind, first, count));
            }
        }
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        let held = self.held.take();
        held.map_or(Ok(()), |(kind, first, count)| self.give(kind, first, count))
    }

    fn give(&mut self, kind: Kind<&[u8]>, block: u64, blocks: u64) -> io::Result<()> {
        let count = match kind {
            Kind::Digest(_) => &mut self.counts.data,
            Kind::Zeros => &mut self.counts.zeros,
            Kind::Unknown => &mut self.counts.unknown,
        };
        *count += blocks;
        let offset = block * self.block_size;
        let length = (blocks * self.block_size).min(self.image_size - offset);
        (self.take)(Piece { block, blocks, offset, length, kind })
    }
}

/// Bytes in lower-case hexadecimal.
pub(crate) struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // One call for each part: digests are most of the output.
        for part in self.0.chunks(64) {
            let mut text = [0; 128];
            for (pair, byte) in text.chunks_exact_mut(2).zip(part) {
                pair[0] = DIGITS[usize::from(byte >> 4)];
                pair[1] = DIGITS[usize::from(byte & 15)];
            }
            f.write_str(std::str::from_utf8(&text[..part.len() * 2]).expect("ASCII"))?;
        }
        Ok(())
    }
}
