//! The index of a file in a chunk store of casync, as casync and desync write it. All numbers are little-endian and have 8
//! bytes:
//!
//! | offset | content |
//! |--:|---|
//! | 0 | 48, the length of this part |
//! | 8 | type of the part |
//! | 16 | flags, one of which says that digests are SHA512/256 and not SHA-256 |
//! | 24, 32, 40 | minimum, average and maximum size of a chunk |
//! | 48 | 2^64 - 1, the length of a table |
//! | 56 | type of the table |
//! | 64 | 40 bytes for each chunk: the offset of its end in the file, and its digest |
//! | 64 + 40 n | 0, 0, 48, the length of the table, and a mark |
//!
//! A map needs chunks of one length. The last one may be short, and is hashed as it is.

use blkhash::{Algorithm, BlockSize};

use super::shape::Shape;
use super::target::{Blocks, Target};
use crate::bytes::{array, u64_at};
use crate::{Error, ReadAt, Result};

pub(super) struct Caibx<'a> {
    file: &'a dyn ReadAt,
    /// Number of chunks.
    chunks: u64,
    shape: Shape,
}

/// Reads the header, the tail and the first and last chunk.
pub(super) fn open(file: &dyn ReadAt) -> Result<(Shape, Caibx<'_>)> {
    let length = file.length()?;
    let items = length.checked_sub((HEADER + TAIL) as u64);
    let Some(items) = items else { return Err(Error::damaged(length, "the index is cut")) };
    let chunks = items / ITEM as u64;
    if !items.is_multiple_of(ITEM as u64) {
        return Err(Error::damaged(length, "the table is cut, or something follows it"));
    }
    let (mut header, mut tail) = ([0; HEADER], [0; TAIL]);
    file.read_exact_at(&mut header, 0)?;
    let tail_at = HEADER as u64 + items;
    file.read_exact_at(&mut tail, tail_at)?;
    check_fields(&header, &fields([HEADER_SIZE, HEADER_TYPE]), 0)?;
    check_fields(&header[TABLE..], &fields([u64::MAX, TABLE_TYPE]), TABLE as u64)?;
    check_fields(&tail, &tail_of(chunks), tail_at)?;
    let flags = u64_at(&header, FLAGS);
    if flags & !(SHA512_256 | OTHER_FLAGS) != 0 {
        let reason = format!("flags {flags:#018x}, which are not those of the index of a file");
        return Err(Error::damaged(FLAGS as u64, reason));
    }
    let is_sha512 = flags & SHA512_256 != 0;
    let algorithm = if is_sha512 { Algorithm::Sha512_256 } else { Algorithm::Sha256 };
    let [minimum, average, maximum] = [0, 8, 16].map(|at| u64_at(&header, SIZES + at));
    if minimum > average || average > maximum || minimum == 0 {
        return Err(Error::damaged(SIZES as u64, "sizes of chunks that contradict each other"));
    }
    let end_of = |chunk: u64| -> Result<u64> {
        let mut end = [0; 8];
        file.read_exact_at(&mut end, HEADER as u64 + chunk * ITEM as u64)?;
        Ok(u64::from_le_bytes(end))
    };
    let (first, last) = match chunks {
        0 => (0, 0),
        chunks => (end_of(0)?, end_of(chunks - 1)?),
    };
    let size = if minimum == maximum { maximum } else { first };
    let variable = || Error::Unsupported(VARIABLE.into());
    let block_size = match BlockSize::try_from(size) {
        Ok(block_size) => block_size,
        Err(error) if minimum == maximum => {
            return Err(Error::Unsupported(format!("has chunks of {size} bytes: {error}")));
        }
        Err(_) => return Err(variable()),
    };
    let shape = Shape::new(algorithm, block_size, last, tail_at.saturating_sub(ITEM as u64))?;
    if shape.blocks() != chunks {
        return Err(if minimum == maximum {
            let reason = format!("{chunks} chunks of {size} bytes end at {last}");
            Error::damaged(tail_at.saturating_sub(ITEM as u64), reason)
        } else {
            variable()
        });
    }
    Ok((shape, Caibx { file, chunks, shape }))
}

impl Blocks for Caibx<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        let block_size = u64::from(self.shape.block_size);
        let mut part = vec![0; PART_ITEMS * ITEM];
        let mut digests = Vec::with_capacity(PART_ITEMS * DIGEST);
        let mut chunk = 0;
        while chunk < self.chunks {
            let count = (self.chunks - chunk).min(PART_ITEMS as u64);
            let part = &mut part[..count as usize * ITEM];
            self.file.read_exact_at(part, HEADER as u64 + chunk * ITEM as u64)?;
            digests.clear();
            for item in part.chunks_exact(ITEM) {
                let end = (chunk + 1).saturating_mul(block_size).min(self.shape.image_size);
                if u64_at(item, 0) != end {
                    let at = HEADER as u64 + chunk * ITEM as u64;
                    let found = u64_at(item, 0);
                    let reason = format!("chunk {chunk} ends at {found}, not {end}: {VARIABLE}");
                    return Err(Error::damaged(at, reason));
                }
                digests.extend_from_slice(&item[8..]);
                chunk += 1;
            }
            target.digests(&digests)?;
        }
        Ok(())
    }
}

/// Returns the bytes before the chunks.
pub(crate) fn header_of(algorithm: Algorithm, block_size: BlockSize) -> [u8; HEADER] {
    let flags = if algorithm == Algorithm::Sha512_256 { SHA512_256 } else { 0 } | WRITTEN_FLAGS;
    let size = u64::from(block_size);
    array(&fields([HEADER_SIZE, HEADER_TYPE, flags, size, size, size, u64::MAX, TABLE_TYPE]), 0)
}

/// Returns the bytes behind this number of chunks.
pub(crate) fn tail_of(chunks: u64) -> [u8; TAIL] {
    let table = chunks.wrapping_mul(ITEM as u64).wrapping_add(TABLE_HEADER + TAIL as u64);
    array(&fields([0, 0, HEADER_SIZE, table, MARK]), 0)
}

fn fields<const N: usize>(fields: [u64; N]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

fn check_fields(bytes: &[u8], expected: &[u8], at: u64) -> Result<()> {
    match bytes.iter().zip(expected).position(|(one, other)| one != other) {
        Some(position) => {
            let at = at + position as u64 / 8 * 8;
            Err(Error::damaged(at, "a field has another value than in a .caibx index"))
        }
        None => Ok(()),
    }
}

/// The first bytes: the length of the first part, and its type.
pub(super) const MAGIC: [u8; 16] =
    [0x30, 0, 0, 0, 0, 0, 0, 0, 0xf9, 0x9f, 0x12, 0x7b, 0x9c, 0x4d, 0x82, 0x96];

const HEADER_SIZE: u64 = 48;
const HEADER_TYPE: u64 = 0x9682_4d9c_7b12_9ff9;
const TABLE_TYPE: u64 = 0xe75b_9e11_2f17_417d;
const MARK: u64 = 0x4b4f_050e_5549_ecd1;

/// Offsets in the header.
const FLAGS: usize = 16;
const SIZES: usize = 24;
const TABLE: usize = 48;

/// Number of bytes before the chunks and behind them, and of a chunk.
const HEADER: usize = 64;
const TAIL: usize = 40;
pub(crate) const ITEM: usize = 40;
const DIGEST: usize = 32;

/// Length of the head of the table in bytes.
const TABLE_HEADER: u64 = 16;

/// Digests are SHA512/256.
const SHA512_256: u64 = 1 << 61;

/// The flags that casync writes for a file.
const WRITTEN_FLAGS: u64 = 1 << 63 | 1 << 60;

/// Flags that say nothing about a file: what to leave out of a directory.
const OTHER_FLAGS: u64 = 1 << 63 | 1 << 62 | 1 << 60;

/// Chunks that are read at once.
const PART_ITEMS: usize = 3276;

const VARIABLE: &str =
    "a map needs chunks of one length, as 'casync make --chunk-size=SIZE:SIZE:SIZE' makes them";
