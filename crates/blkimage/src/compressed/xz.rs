//! xz: streams one after the other, and zeros after them. The index at the end of a stream has the sizes of its blocks.

use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;

use libdeflater::Crc;
use liblzma::stream::{Action, CONCATENATED, Error, Status, Stream, TELL_UNSUPPORTED_CHECK};

use super::bytes::Bytes;
use super::input::{Input, damaged, too_much_memory};
use super::unit::{Blocks, MAX_SIZE, Unit, Units};
use crate::storage::Storage;

/// Decodes streams.
pub(super) struct Xz<R> {
    input: Input<R>,
    stream: Stream,
    is_over: bool,
}

impl<R: Read> Xz<R> {
    /// Fails if a stream asks for more memory than `max_memory`.
    pub fn new(reader: R, start: u64, max_memory: u64) -> io::Result<Self> {
        let stream = Stream::new_stream_decoder(max_memory, CONCATENATED | TELL_UNSUPPORTED_CHECK);
        let stream = stream.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { input: Input::new(reader, start), stream, is_over: false })
    }
}

impl<R: Read> Read for Xz<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() && !self.is_over {
            let bytes = self.input.fill()?;
            let is_end = bytes.is_empty();
            let action = if is_end { Action::Finish } else { Action::Run };
            let before = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.process(bytes, buf, action);
            self.input.consume((self.stream.total_in() - before.0) as usize);
            let count = (self.stream.total_out() - before.1) as usize;
            match status {
                Ok(Status::StreamEnd) => self.is_over = true,
                Ok(_) if count == 0 && is_end => return Err(self.input.truncated("xz")),
                Ok(_) => {}
                Err(Error::MemLimit) => {
                    return Err(too_much_memory("xz stream needs a larger dictionary"));
                }
                Err(Error::Mem) => return Err(io::ErrorKind::OutOfMemory.into()),
                Err(Error::UnsupportedCheck | Error::Options) => {
                    let reason = "xz stream has a check or a filter that is not supported";
                    return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
                }
                Err(Error::Format) if self.stream.total_out() > 0 => {
                    return Err(self.input.trailing("xz"));
                }
                Err(_) => return Err(self.input.damaged("xz stream is damaged")),
            }
            if count > 0 {
                return Ok(count);
            }
        }
        Ok(0)
    }
}

/// Returns the blocks of a file, joined to units.
pub(super) fn units(storage: &dyn Storage, mut units: Units) -> io::Result<Vec<Unit>> {
    let mut streams = Vec::new();
    let mut end = storage.size();
    while end > 0 {
        end = padding_start(storage, end)?;
        let stream = IndexedStream::before(storage, end)?;
        end = stream.start;
        streams.push(stream);
        if streams.len() > MAX_STREAMS {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "has more than 65536 xz streams",
            ));
        }
    }
    for stream in streams.iter().rev() {
        stream.units(storage, &mut units)?;
    }
    Ok(units.finish())
}

/// Returns the offset of the zeros that end at `end`.
fn padding_start(storage: &dyn Storage, mut end: u64) -> io::Result<u64> {
    let mut bytes = vec![0; PADDING];
    while end >= 4 {
        let length = end.min(PADDING as u64) & !3;
        let bytes = &mut bytes[..length as usize];
        storage.read_exact_at(bytes, end - length)?;
        let words = bytes.rchunks_exact(4).take_while(|word| **word == [0; 4]).count() as u64;
        end -= words * 4;
        if words * 4 < length {
            break;
        }
    }
    Ok(end)
}

/// A stream, by its footer.
struct IndexedStream {
    start: u64,
    flags: [u8; 2],
    /// The index, in the file.
    index: Range<u64>,
}

impl IndexedStream {
    /// Returns the stream that ends at `end`.
    fn before(storage: &dyn Storage, end: u64) -> io::Result<Self> {
        let at = end.checked_sub(HEADER).ok_or_else(no_footer)?;
        let mut footer = [0; HEADER as usize];
        storage.read_exact_at(&mut footer, at)?;
        let word =
            |at: usize| u32::from_le_bytes(footer[at..at + 4].try_into().unwrap_or_default());
        if footer[10..] != *b"YZ" || word(0) != crc(&footer[4..10]) {
            return Err(no_footer());
        }
        let length = (u64::from(word(4)) + 1) * 4;
        let index = at.checked_sub(length).ok_or_else(no_footer)?..at;
        let flags = [footer[8], footer[9]];
        let blocks = blocks_length(storage, index.clone())?;
        let start = index.start.checked_sub(blocks).and_then(|start| start.checked_sub(HEADER));
        let start = start.ok_or_else(bad_index)?;
        let mut header = [0; HEADER as usize];
        storage.read_exact_at(&mut header, start)?;
        if header != header_of(flags) {
            return Err(damaged(format!(
                "xz stream has no valid header at byte {start} of the compressed file"
            )));
        }
        Ok(Self { start, flags, index })
    }

    /// Adds the units of the stream.
    fn units(&self, storage: &dyn Storage, units: &mut Units) -> io::Result<()> {
        let mut index = Index::new(storage, self.index.clone())?;
        let mut start = self.start + HEADER;
        while let Some(Record { stored, content, bytes }) = index.next()? {
            let block = Blocks { flags: self.flags, records: bytes, count: 1 };
            units.push_block(start, stored, content, block)?;
            start += stored;
        }
        Ok(())
    }
}

/// Returns the number of bytes of all blocks of an index, which is checked.
fn blocks_length(storage: &dyn Storage, range: Range<u64>) -> io::Result<u64> {
    let mut index = Index::new(storage, range)?;
    let mut length = 0_u64;
    while let Some(record) = index.next()? {
        length = length.checked_add(record.stored).ok_or_else(bad_index)?;
    }
    index.finish()?;
    Ok(length)
}

/// A block, as in the index.
struct Record {
    /// Its length in the file.
    stored: u64,
    content: u64,
    /// The record, in the file.
    bytes: Range<u64>,
}

/// Reads an index.
struct Index<'a> {
    bytes: Input<Bytes<&'a dyn Storage>>,
    start: u64,
    end: u64,
    /// Number of bytes that were read.
    taken: u64,
    crc: Crc,
    left: u64,
}

impl<'a> Index<'a> {
    fn new(storage: &'a dyn Storage, range: Range<u64>) -> io::Result<Self> {
        let (start, end) = (range.start, range.end);
        let bytes = Input::new(Bytes::new(storage, range), start);
        let mut index = Self { bytes, start, end, taken: 0, crc: Crc::new(), left: 0 };
        if index.byte()? != 0 {
            return Err(bad_index());
        }
        index.left = index.number()?;
        Ok(index)
    }

    fn byte(&mut self) -> io::Result<u8> {
        let byte = *self.bytes.fill()?.first().ok_or_else(bad_index)?;
        self.bytes.consume(1);
        self.crc.update(&[byte]);
        self.taken += 1;
        Ok(byte)
    }

    /// Reads a number of 7 bits a byte.
    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 { Err(bad_index()) } else { Ok(number) };
            }
        }
        Err(bad_index())
    }

    fn next(&mut self) -> io::Result<Option<Record>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let start = self.start + self.taken;
        let (stored, content) = (self.number()?, self.number()?);
        if !(MIN_BLOCK..=MAX_SIZE).contains(&stored) {
            return Err(bad_index());
        }
        let bytes = start..self.start + self.taken;
        Ok(Some(Record { stored: stored.next_multiple_of(4), content, bytes }))
    }

    /// Checks the end of the index.
    fn finish(mut self) -> io::Result<()> {
        while !self.taken.is_multiple_of(4) {
            if self.byte()? != 0 {
                return Err(bad_index());
            }
        }
        let sum = self.crc.sum();
        let mut stated = [0; 4];
        for byte in &mut stated {
            *byte = self.byte()?;
        }
        match u32::from_le_bytes(stated) == sum && self.start + self.taken == self.end {
            true => Ok(()),
            false => Err(bad_index()),
        }
    }
}

/// Returns a reader of a stream that has the blocks of a unit only.
pub(super) fn stream_of(
    storage: Arc<dyn Storage>,
    stored: Bytes<Arc<dyn Storage>>,
    blocks: &Blocks,
) -> impl Read + Send + use<> {
    let mut count = vec![0];
    let mut left = blocks.count;
    while left >= 0x80 {
        count.push(left as u8 | 0x80);
        left >>= 7;
    }
    count.push(left as u8);
    let index = Tail {
        count: Cursor::new(count),
        records: Bytes::new(storage, blocks.records.clone()),
        crc: Crc::new(),
        length: 0,
        flags: blocks.flags,
        end: None,
    };
    Cursor::new(header_of(blocks.flags)).chain(stored).chain(index)
}

/// The index and the footer of a stream that has some of the blocks of another one.
struct Tail {
    count: Cursor<Vec<u8>>,
    records: Bytes<Arc<dyn Storage>>,
    crc: Crc,
    length: u64,
    flags: [u8; 2],
    /// What follows the records.
    end: Option<Cursor<Vec<u8>>>,
}

impl Read for Tail {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(end) = &mut self.end {
            return end.read(buf);
        }
        let mut count = self.count.read(buf)?;
        if count == 0 {
            count = self.records.read(buf)?;
        }
        self.crc.update(&buf[..count]);
        self.length += count as u64;
        if count > 0 || buf.is_empty() {
            return Ok(count);
        }
        let mut end = vec![0; (self.length.next_multiple_of(4) - self.length) as usize];
        self.crc.update(&end);
        end.extend(self.crc.sum().to_le_bytes());
        let length = self.length.next_multiple_of(4) + 4;
        let mut footer = ((length / 4 - 1) as u32).to_le_bytes().to_vec();
        footer.extend(self.flags);
        end.extend(crc(&footer).to_le_bytes());
        end.extend(footer);
        end.extend(b"YZ");
        self.end.insert(Cursor::new(end)).read(buf)
    }
}

fn header_of(flags: [u8; 2]) -> [u8; HEADER as usize] {
    let mut header = [0; HEADER as usize];
    header[..6].copy_from_slice(&MAGIC);
    header[6..8].copy_from_slice(&flags);
    header[8..].copy_from_slice(&crc(&flags).to_le_bytes());
    header
}

fn crc(bytes: &[u8]) -> u32 {
    libdeflater::crc32(bytes)
}

fn no_footer() -> io::Error {
    damaged("xz stream is truncated, or followed by other bytes")
}

fn bad_index() -> io::Error {
    damaged("the index of the xz stream is damaged")
}

pub(super) const MAGIC: [u8; 6] = *b"\xfd7zXZ\0";
/// Length of the header of a stream, and of its footer.
pub(super) const HEADER: u64 = 12;
/// Blocks have a header, at least, and something compressed.
const MIN_BLOCK: u64 = 5;

/// Maximum number of streams of an xz file, whose indexes are read first.
/// Limit in streams.
const MAX_STREAMS: usize = 1 << 16;

/// Bytes of padding that are read at once.
const PADDING: usize = 64 << 10;
