//! zstd: frames one after the other.

use std::io::{self, Read};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::input::{Input, damaged, too_much_memory};
use super::unit::{Unit, Units};
use crate::storage::Storage;

/// Decodes frames.
pub(super) struct Zstd<R> {
    input: Input<R>,
    context: DCtx<'static>,
    /// Whether a frame is not complete.
    is_within: bool,
    has_begun: bool,
    /// The first bytes of the frame, and the number of bytes of its content so far.
    head: Vec<u8>,
    content: u64,
}

impl<R: Read> Zstd<R> {
    /// Fails if a frame asks for a larger window than `max_memory`.
    pub fn new(reader: R, start: u64, max_memory: u64) -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        let log = max_memory.max(1 << MIN_WINDOW_LOG).ilog2().min(MAX_WINDOW_LOG);
        context
            .set_parameter(DParameter::WindowLogMax(log))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let (head, content) = (Vec::with_capacity(MAX_HEADER), 0);
        let input = Input::new(reader, start);
        Ok(Self { input, context, is_within: false, has_begun: false, head, content })
    }

    /// Ends a frame. libzstd does not compare the size that it states with its content's if the last block is empty.
    fn end_frame(&mut self) -> io::Result<()> {
        let content = std::mem::take(&mut self.content);
        let stated = Header::content_of(&self.head);
        self.head.clear();
        match stated {
            Some(stated) if stated != content => {
                Err(self.input.damaged("zstd stream is damaged (another size is stated)"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() {
            let bytes = self.input.fill()?;
            let is_over = bytes.is_empty();
            if is_over && self.has_begun && !self.is_within {
                break;
            }
            let was_within = self.is_within;
            let mut source = InBuffer::around(bytes);
            let mut output = OutBuffer::around(&mut *buf);
            let result = self.context.decompress_stream(&mut output, &mut source);
            let (taken, count) = (source.pos, output.pos());
            let room = MAX_HEADER - self.head.len();
            self.head.extend_from_slice(&bytes[..taken.min(room)]);
            self.input.consume(taken);
            self.content += count as u64;
            match result {
                Ok(0) => {
                    self.is_within = false;
                    self.end_frame()?;
                }
                Ok(_) => self.is_within = true,
                Err(code) => {
                    let name = zstd_safe::get_error_name(code);
                    return Err(match name {
                        TOO_LARGE => too_much_memory("zstd stream needs a larger window"),
                        _ if self.has_begun && !was_within => self.input.trailing("zstd"),
                        _ => self.input.damaged(&format!("zstd stream is damaged ({name})")),
                    });
                }
            }
            self.has_begun = true;
            if count > 0 {
                return Ok(count);
            }
            if is_over {
                return Err(self.input.truncated("zstd"));
            }
        }
        Ok(0)
    }
}

/// Returns the frames of a file. `None` if the size of the content of one is not stated.
pub(super) fn units(storage: &dyn Storage, mut units: Units) -> io::Result<Option<Vec<Unit>>> {
    let mut seekable = SeekTable::find(storage)?;
    let size = storage.size();
    let mut window = Window::new(storage);
    let mut offset = 0;
    while offset < size {
        let start = offset;
        let magic = window.number(offset)?;
        if magic & !0xf == SKIPPABLE {
            offset += 8 + u64::from(window.number(offset + 4)?);
            if offset > size {
                return Err(damaged("zstd stream is truncated"));
            }
            units.push(offset - start, 0)?;
            continue;
        }
        if magic != MAGIC {
            return Err(damaged(format!(
                "zstd stream is followed by other bytes at byte {offset} of the compressed file"
            )));
        }
        let header = Header::new(window.byte(offset + 4)?);
        let mut head = [0; MAX_HEADER];
        for (index, byte) in (0..header.length).zip(&mut head) {
            *byte = window.byte(offset + index)?;
        }
        let content = Header::content_of(&head);
        offset += header.length;
        loop {
            let block = u32::from_le_bytes([
                window.byte(offset)?,
                window.byte(offset + 1)?,
                window.byte(offset + 2)?,
                0,
            ]);
            // A run of one byte takes one.
            let is_run = block >> 1 & 3 == 1;
            offset += 3 + if is_run { 1 } else { u64::from(block >> 3) };
            if block & 1 != 0 {
                break;
            }
        }
        offset += if header.has_checksum { 4 } else { 0 };
        if offset > size {
            return Err(damaged("zstd stream is truncated"));
        }
        let stated = match &mut seekable {
            Some(table) => table.next(storage, offset - start)?,
            None => None,
        };
        match content.or(stated) {
            Some(content) => units.push(offset - start, content)?,
            None => return Ok(None),
        }
    }
    Ok(Some(units.finish()))
}

/// The sizes in the header of a frame.
struct Header {
    /// Length of the header, with the magic.
    length: u64,
    /// Length of the field with the size of the content. It is the last one.
    content_size: u64,
    has_checksum: bool,
}

impl Header {
    fn new(descriptor: u8) -> Self {
        let is_single = descriptor & 1 << 5 != 0;
        let content_size = match descriptor >> 6 {
            0 => u64::from(is_single),
            power => 1 << power,
        };
        let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let length = 4 + 1 + u64::from(!is_single) + dictionary + content_size;
        Self { length, content_size, has_checksum: descriptor & 1 << 2 != 0 }
    }

    /// Returns the size of the content that the first bytes of a frame state. `None` if they state none, or are another frame's.
    fn content_of(head: &[u8]) -> Option<u64> {
        let magic = head.get(..4)?;
        let header = Self::new(*head.get(4).filter(|_| magic == MAGIC.to_le_bytes())?);
        let end = header.length as usize;
        let field = head.get(end - header.content_size as usize..end)?;
        let mut bytes = [0; 8];
        bytes[..field.len()].copy_from_slice(field);
        // Two bytes state sizes from 256 on.
        let number = u64::from_le_bytes(bytes);
        match field.len() {
            0 => None,
            2 => Some(number + 256),
            _ => Some(number),
        }
    }
}

/// The table at the end of a file in the seekable format, which states the sizes of frames.
struct SeekTable {
    next: u64,
    end: u64,
    entry: u64,
}

impl SeekTable {
    fn find(storage: &dyn Storage) -> io::Result<Option<Self>> {
        let Some(end) = storage.size().checked_sub(FOOTER) else { return Ok(None) };
        let mut footer = [0; FOOTER as usize];
        storage.read_exact_at(&mut footer, end)?;
        let count = u64::from(u32::from_le_bytes(footer[..4].try_into().unwrap_or_default()));
        let entry = if footer[4] & 1 << 7 == 0 { 8 } else { 12 };
        let start = end.checked_sub(count * entry).filter(|_| footer[5..] == SEEKABLE);
        Ok(start.map(|next| Self { next, end, entry }))
    }

    /// Returns the size of the content of the next frame, whose compressed length is `stored`. `None` if the table
    /// says something else.
    fn next(&mut self, storage: &dyn Storage, stored: u64) -> io::Result<Option<u64>> {
        if self.next == self.end {
            return Ok(None);
        }
        let mut entry = [0; 8];
        storage.read_exact_at(&mut entry, self.next)?;
        self.next += self.entry;
        let number = |at: usize| {
            u64::from(u32::from_le_bytes(entry[at..at + 4].try_into().unwrap_or_default()))
        };
        Ok(Some(number(4)).filter(|_| number(0) == stored))
    }
}

/// Reads single bytes of a file, from the start on.
struct Window<'a> {
    storage: &'a dyn Storage,
    bytes: Vec<u8>,
    start: u64,
}

impl<'a> Window<'a> {
    fn new(storage: &'a dyn Storage) -> Self {
        Self { storage, bytes: Vec::new(), start: 0 }
    }

    fn byte(&mut self, offset: u64) -> io::Result<u8> {
        let end = self.start + self.bytes.len() as u64;
        if !(self.start..end).contains(&offset) {
            let left = self.storage.size().saturating_sub(offset).min(WINDOW);
            if left == 0 {
                return Err(damaged("zstd stream is truncated"));
            }
            self.bytes.resize(left as usize, 0);
            self.storage.read_exact_at(&mut self.bytes, offset)?;
            self.start = offset;
        }
        Ok(self.bytes[(offset - self.start) as usize])
    }

    fn number(&mut self, offset: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        for (index, byte) in (0..).zip(&mut bytes) {
            *byte = self.byte(offset + index)?;
        }
        Ok(u32::from_le_bytes(bytes))
    }
}

/// The name of the error of libzstd for a window that is larger than the limit.
const TOO_LARGE: &str = "Frame requires too much memory for decoding";

/// The longest header of a frame: the magic, two descriptors, and the fields of a dictionary and of the size.
const MAX_HEADER: usize = 18;

const MAGIC: u32 = 0xfd2f_b528;
const SKIPPABLE: u32 = 0x184d_2a50;
const SEEKABLE: [u8; 4] = 0x8f92_eab1_u32.to_le_bytes();
const FOOTER: u64 = 9;
/// Blocks are up to 128 KiB, and blocks of zeros take 4 bytes.
const WINDOW: u64 = 4 << 10;
const MIN_WINDOW_LOG: u32 = 10;
const MAX_WINDOW_LOG: u32 = 31;
