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

use std::io::Write;

use blkhash::{Algorithm, BlockSize};
use blkmap::{Error, Map, ReadAt, Result};

use crate::bytes::{each_part, u64_at};
use crate::codec::{Codec, Sink, boxed};
use crate::digests;
use crate::shape::Shape;
use crate::target::{Blocks, Target};

pub(crate) const CODEC: Codec = Codec {
    name: "caibx",
    noun: "a .caibx index",
    suffix: Some(".caibx"),
    is_start: |head| head.starts_with(&MAGIC),
    open: |file, _| open(file).map(boxed),
    write: Some(write),
};

pub(crate) struct Caibx<'a> {
    file: &'a dyn ReadAt,
    /// Offset after the chunks.
    end: u64,
    shape: Shape,
}

/// Reads the header, the tail and the first and last chunk.
fn open(file: &dyn ReadAt) -> Result<(Shape, Caibx<'_>)> {
    let length = file.length()?;
    let items = length.checked_sub((HEADER + TAIL) as u64);
    let Some(items) = items else { return Err(Error::damaged(length, "the index is cut")) };
    let chunks = items / ITEM as u64;
    if !items.is_multiple_of(ITEM as u64) {
        return Err(Error::damaged(length, "the table is cut, or something follows it"));
    }
    let (mut header, mut tail) = ([0; HEADER], [0; TAIL]);
    file.read_exact_at(&mut header, 0)?;
    let end = HEADER as u64 + items;
    file.read_exact_at(&mut tail, end)?;
    check_fields(&header, &MAGIC, 0)?;
    check_fields(&header[TABLE..], &fields([u64::MAX, TABLE_TYPE]), TABLE as u64)?;
    check_fields(&tail, &tail_of(chunks), end)?;
    let flags = u64_at(&header, FLAGS);
    if flags & !(SHA512_256 | OTHER_FLAGS) != 0 {
        let reason = format!("flags {flags:#018x}, which do not belong to the index of a file");
        return Err(Error::damaged(FLAGS as u64, reason));
    }
    let is_sha512 = flags & SHA512_256 != 0;
    let algorithm = if is_sha512 { Algorithm::Sha512_256 } else { Algorithm::Sha256 };
    let [minimum, average, maximum] = [0, 8, 16].map(|at| u64_at(&header, SIZES + at));
    if minimum > average || average > maximum || minimum == 0 {
        return Err(Error::damaged(SIZES as u64, "sizes of chunks that contradict each other"));
    }
    let last_at = end.saturating_sub(ITEM as u64);
    let end_in = |at: u64| -> Result<u64> {
        let mut end = [0; 8];
        file.read_exact_at(&mut end, at)?;
        Ok(u64::from_le_bytes(end))
    };
    let (first, last) = match chunks {
        0 => (0, 0),
        _ => (end_in(HEADER as u64)?, end_in(last_at)?),
    };
    let is_fixed = minimum == maximum;
    let size = if is_fixed { maximum } else { first };
    let block_size = BlockSize::try_from(size).map_err(|error| match is_fixed {
        true => Error::Unsupported(format!("has chunks of {size} bytes: {error}")),
        false => Error::Unsupported(VARIABLE.into()),
    })?;
    let shape = Shape::new(algorithm, block_size, last, last_at)?;
    if shape.blocks() != chunks {
        return Err(match is_fixed {
            true => {
                Error::damaged(last_at, format!("{chunks} chunks of {size} bytes end at {last}"))
            }
            false => Error::Unsupported(VARIABLE.into()),
        });
    }
    Ok((shape, Caibx { file, end, shape }))
}

impl Blocks for Caibx<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        let block_size = u64::from(self.shape.block_size);
        let mut digests = Vec::new();
        let mut chunk = 0_u64;
        each_part(self.file, HEADER as u64..self.end, ITEM, |_, part| {
            digests.clear();
            for item in part.chunks_exact(ITEM) {
                let end = (chunk + 1).saturating_mul(block_size).min(self.shape.image_size);
                let found = u64_at(item, 0);
                if found != end {
                    let at = HEADER as u64 + chunk * ITEM as u64;
                    let reason = format!("chunk {chunk} ends at {found}, not {end}: {VARIABLE}");
                    return Err(Error::damaged(at, reason));
                }
                digests.extend_from_slice(&item[8..]);
                chunk += 1;
            }
            target.digests(&digests)
        })
    }
}

/// Writes the index, as `casync make --chunk-size=SIZE:SIZE:SIZE` does.
fn write(map: &Map, output: &mut Sink<'_>) -> Result<()> {
    let (parameters, commit) = (map.header(), map.commit());
    digests::check(map, "casync")?;
    let flags = match parameters.algorithm {
        Algorithm::Sha512_256 => SHA512_256 | WRITTEN_FLAGS,
        Algorithm::Sha256 => WRITTEN_FLAGS,
        other => {
            let reason =
                format!("has digests of {other}, and casync knows only sha512-256 and sha256");
            return Err(Error::Unsupported(reason));
        }
    };
    let size = u64::from(parameters.block_size);
    output.write_all(&MAGIC)?;
    output.write_all(&fields([flags, size, size, size, u64::MAX, TABLE_TYPE]))?;
    let mut end = 0_u64;
    digests::each(map, |digest| {
        end = end.saturating_add(size).min(commit.image_size());
        output.write_all(&end.to_le_bytes())?;
        Ok(output.write_all(digest)?)
    })?;
    Ok(output.write_all(&tail_of(commit.blocks()))?)
}

/// Returns the bytes after this number of chunks.
fn tail_of(chunks: u64) -> Vec<u8> {
    let table = chunks.wrapping_mul(ITEM as u64).wrapping_add(TABLE_HEADER + TAIL as u64);
    fields([0, 0, HEADER_SIZE, table, MARK])
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
const MAGIC: [u8; 16] = [0x30, 0, 0, 0, 0, 0, 0, 0, 0xf9, 0x9f, 0x12, 0x7b, 0x9c, 0x4d, 0x82, 0x96];

const HEADER_SIZE: u64 = 48;
const TABLE_TYPE: u64 = 0xe75b_9e11_2f17_417d;
const MARK: u64 = 0x4b4f_050e_5549_ecd1;

/// Offsets in the header.
const FLAGS: usize = 16;
const SIZES: usize = 24;
const TABLE: usize = 48;

/// Number of bytes before the chunks and after them, and of a chunk.
const HEADER: usize = 64;
const TAIL: usize = 40;
const ITEM: usize = 40;

/// Length of the head of the table in bytes.
const TABLE_HEADER: u64 = 16;

/// Digests are SHA512/256.
const SHA512_256: u64 = 1 << 61;

/// The flags that casync writes for a file.
const WRITTEN_FLAGS: u64 = 1 << 63 | 1 << 60;

/// Flags that say nothing about a file: what to leave out of a directory.
const OTHER_FLAGS: u64 = 1 << 63 | 1 << 62 | 1 << 60;

const VARIABLE: &str =
    "a map needs chunks of one length, as 'casync make --chunk-size=SIZE:SIZE:SIZE' makes them";
