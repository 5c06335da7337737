//! Records of the log: a header, and blocks of data whose first words were exchanged for the number of the cycle.

use crate::bytes::{be32_at, be64_at};
use crate::crc::crc32c;

/// Size of a block of the log in bytes.
pub const BLOCK: usize = 512;

/// The fields of a record's header that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub cycle: u32,
    pub version: u32,
    /// Length of the data in bytes.
    pub length: u32,
    /// The cycle, and the block of the header.
    pub lsn: u64,
    pub tail_lsn: u64,
    pub operations: u32,
    pub is_big_endian: bool,
    /// Size of the buffers that records were written from, in bytes.
    pub buffer: u32,
}

impl Header {
    /// Parses a block that begins a record.
    pub fn parse(block: &[u8]) -> Option<Self> {
        if be32_at(block, 0)? != MAGIC {
            return None;
        }
        let length = be32_at(block, 12)?;
        let version = be32_at(block, 8)?;
        let buffer = be32_at(block, 320)?;
        let is_possible = length > 0 && length <= MAX_LENGTH && buffer <= MAX_LENGTH;
        is_possible.then_some(Self {
            cycle: be32_at(block, 4)?,
            version,
            length,
            lsn: be64_at(block, 16)?,
            tail_lsn: be64_at(block, 24)?,
            operations: be32_at(block, 40)?,
            is_big_endian: be32_at(block, 300)? != LITTLE_ENDIAN,
            buffer,
        })
    }

    /// Returns the number of blocks of the header.
    pub fn header_blocks(&self) -> u64 {
        if self.version & 2 == 0 { 1 } else { u64::from(self.buffer.div_ceil(CYCLES)).max(1) }
    }

    /// Returns the number of blocks of header and data.
    pub fn blocks(&self) -> u64 {
        self.header_blocks() + u64::from(self.length).div_ceil(BLOCK as u64)
    }
}

/// Returns the number of the cycle in which a block was written.
pub fn cycle(block: &[u8]) -> u32 {
    let first = be32_at(block, 0).unwrap_or(0);
    if first == MAGIC { be32_at(block, 4).unwrap_or(0) } else { first }
}

/// Returns whether all blocks of a record were written in its cycle. Blocks past the end of the ring are of the next.
pub fn is_complete(record: &[u8], header: &Header, before_end: u64) -> bool {
    record.chunks_exact(BLOCK).enumerate().all(|(index, block)| {
        let is_wrapped = index as u64 >= before_end;
        cycle(block) == header.cycle.wrapping_add(is_wrapped.into())
    })
}

/// Returns whether the CRC of a record matches, or the reason why it does not.
pub fn check(record: &[u8], header: &Header) -> Result<(), String> {
    let stored = record.get(32..36).and_then(|it| it.first_chunk().copied());
    let stored = stored.map_or(0, u32::from_le_bytes);
    let crcs = HEADER_SIZES.map(|size| crc(record, header, size).unwrap_or(0));
    if crcs.contains(&stored) {
        return Ok(());
    }
    Err(format!("crc32c {:#010x}, stored {stored:#010x}", crcs[0]))
}

fn crc(record: &[u8], header: &Header, size: usize) -> Option<u32> {
    let mut state = crc32c(!0, record.get(..32)?);
    state = crc32c(state, &[0; 4]);
    state = crc32c(state, record.get(36..size)?);
    let blocks = header.header_blocks() as usize;
    for block in 1..blocks {
        state = crc32c(state, record.get(block * BLOCK..)?.get(..EXTENDED)?);
    }
    let data = record.get(blocks * BLOCK..)?.get(..header.length as usize)?;
    Some(!crc32c(state, data))
}

/// Puts the first words of the data back in their places.
pub fn unpack(record: &mut [u8], header: &Header) {
    let blocks = header.header_blocks() as usize;
    let Some((headers, data)) = record.split_at_mut_checked(blocks * BLOCK) else { return };
    let per_header = CYCLES as usize / BLOCK;
    for (index, block) in data.chunks_exact_mut(BLOCK).enumerate() {
        let (part, word) = (index / per_header, index % per_header);
        // The first header has fields before the words, others only the cycle.
        let at = if part == 0 { 44 } else { part * BLOCK + 4 } + word * 4;
        if let Some(saved) = headers.get(at..at + 4) {
            block[..4].copy_from_slice(saved);
        }
    }
}

const MAGIC: u32 = 0xfeed_babe;
const LITTLE_ENDIAN: u32 = 1;

/// Maximum length of a record's data.
/// Limit in bytes.
const MAX_LENGTH: u32 = 256 << 10;

/// Bytes of data whose words one block of headers holds.
const CYCLES: u32 = 32 << 10;

/// Sizes of a header that are covered by its CRC: on machines with 64 and with 32 bits.
const HEADER_SIZES: [usize; 2] = [328, 324];

/// Size of a further header that is covered.
const EXTENDED: usize = 260;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record of 40 KiB, which takes two blocks of headers, as it is written in cycle 7 at block 100.
    fn record() -> (Vec<u8>, Vec<u8>) {
        let length = 40 << 10;
        let data: Vec<u8> = (0..length).map(|at| (at / 7 % 251) as u8).collect();
        let mut headers = vec![0; 2 * BLOCK];
        let mut put =
            |at: usize, word: u32| headers[at..at + 4].copy_from_slice(&word.to_be_bytes());
        let fields = [(0, MAGIC), (4, 7), (8, 2), (12, length as u32), (16, 7), (20, 100), (40, 3)];
        fields.into_iter().for_each(|(at, word)| put(at, word));
        put(300, LITTLE_ENDIAN);
        put(320, 64 << 10);
        put(BLOCK, 7);
        let mut packed = data.clone();
        for (index, block) in packed.chunks_exact_mut(BLOCK).enumerate() {
            let at = if index < 64 { 44 + index * 4 } else { BLOCK + 4 + (index - 64) * 4 };
            headers[at..at + 4].copy_from_slice(&block[..4]);
            block[..4].copy_from_slice(&7u32.to_be_bytes());
        }
        headers.extend(packed);
        let header = Header::parse(&headers).unwrap();
        let crc = crc(&headers, &header, 328).unwrap();
        headers[32..36].copy_from_slice(&crc.to_le_bytes());
        (headers, data)
    }

    #[test]
    fn records_are_unpacked() {
        let (mut record, data) = record();
        let header = Header::parse(&record).unwrap();
        assert_eq!((header.header_blocks(), header.blocks()), (2, 82));
        assert_eq!((header.lsn, header.operations), (7 << 32 | 100, 3));
        assert!(is_complete(&record, &header, 1000));
        assert!(!is_complete(&record, &header, 50));
        unpack(&mut record, &header);
        assert!(record[2 * BLOCK..] == data);
    }

    #[test]
    fn changed_bytes_do_not_match() {
        let (record, _) = record();
        let header = Header::parse(&record).unwrap();
        assert_eq!(check(&record, &header), Ok(()));
        for at in [4, 44, 325, BLOCK, BLOCK + 259, 2 * BLOCK, record.len() - 1] {
            let mut changed = record.clone();
            changed[at] ^= 1;
            assert!(check(&changed, &header).is_err(), "{at}");
        }
    }

    #[test]
    fn impossible_headers_are_none() {
        let (mut record, _) = record();
        record[12] = 1;
        assert_eq!(Header::parse(&record), None);
        assert_eq!(Header::parse(&record[1..]), None);
        assert_eq!(cycle(&[0, 0, 1, 0]), 256);
    }
}
