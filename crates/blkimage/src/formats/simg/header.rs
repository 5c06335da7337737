//! The header of a file, and the headers of its chunks.

use crate::error::{ErrorKind, Result};
use crate::formats::fields::Head;
use crate::storage::HostFile;

/// The header of a file.
pub(super) struct Header {
    /// Bytes in a block.
    pub block: u64,
    /// Number of blocks of content.
    pub blocks: u64,
    pub chunks: u32,
    /// CRC-32 of the content, 0 for none.
    pub checksum: u32,
    /// Offset of the first chunk.
    pub end: u64,
    /// Size of the header of a chunk in bytes.
    pub chunk_header: u64,
}

/// A chunk, whose data follows its header.
pub(super) struct ChunkHeader {
    pub kind: u16,
    pub blocks: u64,
    /// Offset of its data.
    pub data: u64,
    /// Bytes of its data.
    pub length: u64,
}

impl Header {
    pub fn read(file: &HostFile) -> Result<Self> {
        let head = Head::read(file, 0, SIZE)?;
        let number16 = |at| (head.le32(at) & 0xffff) as u16;
        let major = number16(4);
        if !head.starts_with(MAGIC) {
            return Err(file.error(ErrorKind::Format, "is not an Android sparse image"));
        }
        if major != 1 {
            let reason =
                format!("is an Android sparse image of version {major}, which is not known");
            return Err(file.error(ErrorKind::Unsupported, reason).at(4));
        }
        let (end, chunk_header) = (u64::from(number16(8)), u64::from(number16(10)));
        if end < SIZE as u64 || chunk_header < CHUNK_SIZE as u64 {
            let reason =
                format!("has headers of {end} and {chunk_header} bytes, which are too short");
            return Err(file.corrupt(reason).at(8));
        }
        let block = u64::from(head.le32(12));
        if block == 0 || block % 4 != 0 {
            let reason = format!("has blocks of {block} bytes, which is not a multiple of 4");
            return Err(file.corrupt(reason).at(12));
        }
        let (blocks, chunks) = (u64::from(head.le32(16)), head.le32(20));
        Ok(Self { block, blocks, chunks, checksum: head.le32(24), end, chunk_header })
    }

    /// Reads the header of the chunk at `offset`.
    pub fn chunk(&self, file: &HostFile, offset: u64) -> Result<ChunkHeader> {
        let head = Head::read(file, offset, CHUNK_SIZE)?;
        let total = u64::from(head.le32(8));
        let Some(length) = total.checked_sub(self.chunk_header) else {
            let reason = format!("has a chunk of {total} bytes, which is shorter than its header");
            return Err(file.corrupt(reason).at(offset));
        };
        let kind = (head.le32(0) & 0xffff) as u16;
        let data = offset.saturating_add(self.chunk_header);
        Ok(ChunkHeader { kind, blocks: u64::from(head.le32(4)), data, length })
    }
}

const MAGIC: &[u8] = b"\x3a\xff\x26\xed";

/// Size of the header of a file in bytes.
const SIZE: usize = 28;

/// Size of the header of a chunk in bytes.
const CHUNK_SIZE: usize = 12;
