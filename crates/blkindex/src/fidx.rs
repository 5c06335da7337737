//! The fixed index of a Proxmox backup: the SHA-256 of each chunk of a disk.
//!
//! | offset | bytes | content |
//! |--:|--:|---|
//! | 0 | 8 | magic |
//! | 8 | 16 | UUID |
//! | 24 | 8 | time, in seconds since 1970 |
//! | 32 | 32 | `index_csum`, the SHA-256 of all digests |
//! | 64 | 8 | size of the disk in bytes |
//! | 72 | 8 | size of a chunk in bytes, a power of two |
//! | 80 | 4016 | zeros |
//! | 4096 | 32 each | digests. The last chunk may be short, and is hashed as it is |
//!
//! The chunks of an encrypted backup are hashed with a key after them. The index does not say so.

use std::io::Write;

use blkhash::{Algorithm, Digester};
use blkmap::{Error, Map, ReadAt, Result};

use crate::bytes::{each_part, u64_at};
use crate::codec::{Codec, Sink, boxed};
use crate::digests;
use crate::shape::{Shape, block_size};
use crate::target::{Blocks, Target};

pub(crate) const CODEC: Codec = Codec {
    name: "fidx",
    noun: "a .fidx index",
    suffix: Some(".fidx"),
    is_start: |head| head.starts_with(&MAGIC),
    open: |file, _| open(file).map(boxed),
    write: Some(write),
};

pub(crate) struct Fidx<'a> {
    file: &'a dyn ReadAt,
    end: u64,
    checksum: [u8; DIGEST],
}

/// Reads the header, and checks it and the length of the file.
fn open(file: &dyn ReadAt) -> Result<(Shape, Fidx<'_>)> {
    let length = file.length()?;
    if length < HEADER as u64 {
        return Err(Error::damaged(length, "the header is cut"));
    }
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0)?;
    if !header.starts_with(&MAGIC) {
        return Err(Error::damaged(0, "does not begin with the magic of a .fidx index"));
    }
    if header[RESERVED..].iter().any(|byte| *byte != 0) {
        return Err(Error::damaged(RESERVED as u64, "the rest of the header is not zeros"));
    }
    let block_size = block_size(u64_at(&header, CHUNK_SIZE), CHUNK_SIZE as u64)?;
    let shape = Shape::new(Algorithm::Sha256, block_size, u64_at(&header, SIZE), SIZE as u64)?;
    let (blocks, digests) = (shape.blocks(), length - HEADER as u64);
    if !digests.is_multiple_of(DIGEST as u64) || digests / DIGEST as u64 != blocks {
        let reason = format!("{blocks} digests should end the file, which has {length} bytes");
        return Err(Error::damaged(length, reason));
    }
    let mut checksum = [0; DIGEST];
    checksum.copy_from_slice(&header[CHECKSUM..SIZE]);
    Ok((shape, Fidx { file, end: length, checksum }))
}

impl Blocks for Fidx<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        let mut whole = Digester::new(Algorithm::Sha256).start();
        each_part(self.file, HEADER as u64..self.end, DIGEST, |_, digests| {
            whole.update(digests);
            target.digests(digests)
        })?;
        if whole.finalize().as_bytes() != self.checksum {
            return Err(Error::damaged(CHECKSUM as u64, "index_csum does not match the digests"));
        }
        Ok(())
    }
}

/// Writes the index. The header has a digest of all digests, so the map is walked twice.
fn write(map: &Map, output: &mut Sink<'_>) -> Result<()> {
    let (parameters, commit) = (map.header(), map.commit());
    digests::check(map, "Proxmox")?;
    if parameters.algorithm != Algorithm::Sha256 {
        let reason = format!("has digests of {}, and .fidx has sha256", parameters.algorithm);
        return Err(Error::Unsupported(reason));
    }
    let mut whole = Digester::new(Algorithm::Sha256).start();
    digests::each(map, |digest| {
        whole.update(digest);
        Ok(())
    })?;
    let mut header = [
        &MAGIC[..],
        &uuid(&commit.content_id(parameters).unwrap_or_default()),
        &[0; 8],
        whole.finalize().as_bytes(),
        &commit.image_size().to_le_bytes(),
        &u64::from(parameters.block_size).to_le_bytes(),
    ]
    .concat();
    header.resize(HEADER, 0);
    output.write_all(&header)?;
    digests::write(map, output)
}

/// Returns the first bytes of a content id as a UUID of version 8, so that equal content has equal indexes.
fn uuid(id: &[u8; 32]) -> [u8; 16] {
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&id[..16]);
    uuid[6] = 0x80 | (uuid[6] & 0x0f);
    uuid[8] = 0x80 | (uuid[8] & 0x3f);
    uuid
}

/// The first bytes.
const MAGIC: [u8; 8] = [0x2f, 0x7f, 0x41, 0xed, 0x91, 0xfd, 0x0f, 0xcd];

/// Length of the header, and offsets in it.
const HEADER: usize = 4096;
const CHECKSUM: usize = 32;
const SIZE: usize = 64;
const CHUNK_SIZE: usize = 72;
const RESERVED: usize = 80;

/// Length of a digest in bytes.
const DIGEST: usize = 32;
