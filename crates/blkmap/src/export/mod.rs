//! Writes maps in formats of other programs.
//!
//! The output does not depend on the layout of the map: zero blocks in stored pages are part of the runs of zeros
//! beside them. Memory does not grow with the map.

mod bmap;
mod caibx;
mod csv;
mod digests;
mod fidx;
mod format;
mod json;
mod lines;
mod raw;

pub use self::format::Format;

use std::fmt;
use std::io::{self, BufWriter, Write};

use crate::{BlockRun, Map, Result};

/// Writes `map` in another format.
///
/// # Errors
///
/// Fails if `output` fails, if the map cannot be read or is damaged, or if the format does not have what the map
/// holds. An error of the last kind comes before anything is written.
pub fn export(map: &Map, format: Format, output: impl Write) -> Result<()> {
    let mut output = BufWriter::with_capacity(BUFFER, output);
    match format {
        Format::Lines => lines::write(map, &mut output)?,
        Format::Csv => csv::write(map, &mut output)?,
        Format::Json => json::write(map, &mut output)?,
        Format::Bmap => bmap::write(map, &mut output)?,
        Format::Fidx => fidx::write(map, &mut output)?,
        Format::Caibx => caibx::write(map, &mut output)?,
        Format::Raw => raw::write(map, &mut output)?,
    }
    Ok(output.flush()?)
}

/// A block with data, or a run of blocks without.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    /// Number of the first block.
    block: u64,
    /// Number of blocks.
    blocks: u64,
    /// Offset in the image.
    offset: u64,
    /// Number of bytes.
    length: u64,
    kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    /// One block, with its digest.
    Data(&'a [u8]),
    Zeros,
    Unknown,
}

/// The numbers of blocks of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    data: u64,
    zeros: u64,
    unknown: u64,
}

/// Passes the content of a map to `take`, in order, and returns the numbers of blocks. Runs of one kind that
/// follow each other are one piece.
fn walk(map: &Map, mut take: impl FnMut(Piece<'_>) -> io::Result<()>) -> Result<Counts> {
    let (header, image_size) = (map.header(), map.commit().image_size);
    let (entry_size, size) = (header.entry_size(), header.algorithm.digest_size());
    let block_size = u64::from(header.block_size);
    let mut counts = Counts::default();
    let mut give = |kind: Kind<'_>, block: u64, blocks: u64| {
        let count = match kind {
            Kind::Data(_) => &mut counts.data,
            Kind::Zeros => &mut counts.zeros,
            Kind::Unknown => &mut counts.unknown,
        };
        *count += blocks;
        let offset = block * block_size;
        let length = (blocks * block_size).min(image_size - offset);
        take(Piece { block, blocks, offset, length, kind })
    };
    let mut pending = Pending { kind: Kind::Zeros, first: 0, count: 0 };
    let mut blocks = map.blocks()?;
    while let Some(run) = blocks.next(u64::MAX)? {
        match run {
            BlockRun::Zeros { first, count } => {
                pending.push(Kind::Zeros, first, count, &mut give)?;
            }
            BlockRun::Unknown { first, count } => {
                pending.push(Kind::Unknown, first, count, &mut give)?;
            }
            BlockRun::Digests { first, entries } => {
                for (block, entry) in (first..).zip(entries.chunks_exact(entry_size)) {
                    if map.is_zero_block(block, entry) {
                        pending.push(Kind::Zeros, block, 1, &mut give)?;
                    } else {
                        pending.flush(&mut give)?;
                        give(Kind::Data(&entry[..size]), block, 1)?;
                    }
                }
            }
        }
    }
    pending.flush(&mut give)?;
    Ok(counts)
}

/// A run without data that may go on.
struct Pending {
    kind: Kind<'static>,
    first: u64,
    count: u64,
}

impl Pending {
    fn push(
        &mut self,
        kind: Kind<'static>,
        first: u64,
        count: u64,
        give: &mut impl FnMut(Kind<'_>, u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if kind != self.kind {
            self.flush(give)?;
        }
        if self.count == 0 {
            (self.kind, self.first) = (kind, first);
        }
        self.count += count;
        Ok(())
    }

    fn flush(
        &mut self,
        give: &mut impl FnMut(Kind<'_>, u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        match std::mem::take(&mut self.count) {
            0 => Ok(()),
            count => give(self.kind, self.first, count),
        }
    }
}

/// Bytes in lower-case hexadecimal.
struct Hex<'a>(&'a [u8]);

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

/// Bytes that are collected before they are written.
const BUFFER: usize = 64 << 10;
