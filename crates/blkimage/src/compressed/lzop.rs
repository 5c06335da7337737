//! lzop: a member of blocks that state their sizes, and zeros after it. Each further member is a file of its own.

use std::io::{self, Read};

use libdeflater::{adler32, crc32};

use super::input::{Input, damaged, too_much_memory};
use crate::lzo;

/// Decodes a member.
pub(super) struct Lzop<R> {
    input: Input<R>,
    max_memory: u64,
    state: State,
    content: Vec<u8>,
    /// Number of bytes of `content` that were read.
    read: usize,
}

#[derive(Clone, Copy)]
enum State {
    Header,
    /// A block or the end follows. The value has the flags of the header.
    Blocks(u32),
    End,
}

impl<R: Read> Lzop<R> {
    /// A block may take at most `max_memory` bytes.
    pub fn new(reader: R, start: u64, max_memory: u64) -> Self {
        let input = Input::new(reader, start);
        Self { input, max_memory, state: State::Header, content: Vec::new(), read: 0 }
    }

    /// Decodes the next block. Returns whether there is one.
    fn next_block(&mut self) -> io::Result<bool> {
        loop {
            let state = self.state;
            match state {
                State::Header => self.state = State::Blocks(read_header(&mut self.input)?),
                State::Blocks(flags) if self.decode(flags)? => return Ok(true),
                State::Blocks(_) => {
                    self.read_padding()?;
                    self.state = State::End;
                }
                State::End => return Ok(false),
            }
        }
    }

    /// Reads the bytes after the member, which are zeros.
    fn read_padding(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.input.fill()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            if bytes.is_empty() {
                return Ok(());
            }
            if bytes[zeros..].starts_with(&MAGIC) {
                let reason = "is an lzop archive of several files, which lzop -x extracts";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
            let is_padding = zeros == bytes.len();
            self.input.consume(zeros);
            if !is_padding {
                return Err(self.input.trailing("lzop"));
            }
        }
    }

    fn decode(&mut self, flags: u32) -> io::Result<bool> {
        let Some(block) = Block::read(&mut self.input, flags)? else { return Ok(false) };
        if u64::from(block.content) * 2 > self.max_memory {
            return Err(too_much_memory("lzop file has larger blocks"));
        }
        let mut stored = vec![0; block.stored as usize];
        self.input.read_exact(&mut stored)?;
        let fails = |what| Err(self.input.damaged(&format!("lzop block is damaged ({what})")));
        if block.stored_sums.iter().any(|sum| !sum.matches(&stored)) {
            return fails("its checksum does not match".to_owned());
        }
        self.content = match block.stored == block.content {
            true => stored,
            false => match lzo::decompress(&stored, block.content as usize) {
                Ok(content) if content.len() == block.content as usize => content,
                Ok(content) => return fails(format!("it has {} bytes", content.len())),
                Err(defect) => return fails(defect.to_string()),
            },
        };
        if block.content_sums.iter().any(|sum| !sum.matches(&self.content)) {
            return fails("the checksum of its content does not match".to_owned());
        }
        self.read = 0;
        Ok(true)
    }
}

impl<R: Read> Read for Lzop<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        if self.read == self.content.len() {
            let has_block = self.next_block().map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => self.input.truncated("lzop"),
                _ => error,
            });
            if !has_block? {
                return Ok(0);
            }
        }
        let rest = &self.content[self.read..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

/// Reads the header of a member. Returns its flags.
fn read_header(reader: &mut impl Read) -> io::Result<u32> {
    let mut header = Recorded { reader, bytes: Vec::new() };
    if header.take::<9>()? != MAGIC {
        return Err(damaged("is not lzop: it does not begin like that"));
    }
    header.bytes.clear();
    let version = u16::from_be_bytes(header.take()?);
    if version < FIRST_VERSION {
        return Err(unsupported(&format!("version {version:#x} of lzop")));
    }
    let _version_of_library: [u8; 2] = header.take()?;
    let needed = u16::from_be_bytes(header.take()?);
    if needed > LAST_VERSION {
        return Err(unsupported(&format!("lzop file that needs version {needed:#x}")));
    }
    let [method, _level] = header.take()?;
    let flags = u32::from_be_bytes(header.take()?);
    if flags & HAS_FILTER != 0 {
        return Err(unsupported("lzop filter"));
    }
    let _mode_and_time: [u8; 12] = header.take()?;
    let [name_length] = header.take()?;
    for _ in 0..name_length {
        header.take::<1>()?;
    }
    let sum = match flags & HAS_HEADER_CRC {
        0 => adler32(&header.bytes),
        _ => crc32(&header.bytes),
    };
    if u32::from_be_bytes(header.take()?) != sum {
        return Err(damaged("lzop header is damaged (its checksum does not match)"));
    }
    if !(1..=3).contains(&method) {
        return Err(unsupported(&format!("lzop method {method}")));
    }
    if flags & (HAS_EXTRA_FIELD | IS_MULTIPART) != 0 {
        return Err(unsupported("lzop file of several parts, or with an extra field"));
    }
    Ok(flags)
}

/// A reader that keeps what was read.
struct Recorded<'a, R> {
    reader: &'a mut R,
    bytes: Vec<u8>,
}

impl<R: Read> Recorded<'_, R> {
    fn take<const COUNT: usize>(&mut self) -> io::Result<[u8; COUNT]> {
        let bytes = take(self.reader)?;
        self.bytes.extend(bytes);
        Ok(bytes)
    }
}

fn take<const COUNT: usize>(reader: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The header of a block.
struct Block {
    /// Bytes of the content.
    content: u32,
    /// Bytes in the file. As many as `content` if it is not compressed.
    stored: u32,
    content_sums: Vec<Sum>,
    stored_sums: Vec<Sum>,
}

enum Sum {
    Adler32(u32),
    Crc32(u32),
}

impl Block {
    /// Reads a header. Returns `None` at the end of the member.
    fn read(reader: &mut impl Read, flags: u32) -> io::Result<Option<Self>> {
        let content = u32::from_be_bytes(take(reader)?);
        if content == 0 {
            return Ok(None);
        }
        let stored = u32::from_be_bytes(take(reader)?);
        if content > MAX_BLOCK || stored == 0 || stored > content {
            let reason = format!("lzop block is damaged (it has {stored} bytes for {content})");
            return Err(damaged(reason));
        }
        let mut sums = |adler, crc| {
            let mut sums = Vec::new();
            if flags & adler != 0 {
                sums.push(Sum::Adler32(u32::from_be_bytes(take(reader)?)));
            }
            if flags & crc != 0 {
                sums.push(Sum::Crc32(u32::from_be_bytes(take(reader)?)));
            }
            io::Result::Ok(sums)
        };
        let content_sums = sums(HAS_CONTENT_ADLER, HAS_CONTENT_CRC)?;
        let stored_sums = match stored == content {
            true => Vec::new(),
            false => sums(HAS_STORED_ADLER, HAS_STORED_CRC)?,
        };
        Ok(Some(Self { content, stored, content_sums, stored_sums }))
    }
}

impl Sum {
    fn matches(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Adler32(sum) => adler32(bytes) == *sum,
            Self::Crc32(sum) => crc32(bytes) == *sum,
        }
    }
}

fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{what} is not supported"))
}

const MAGIC: [u8; 9] = *b"\x89LZO\0\r\n\x1a\n";

/// The oldest version whose headers have a level and the version that is needed.
const FIRST_VERSION: u16 = 0x0940;
const LAST_VERSION: u16 = 0x1040;

/// Maximum content of a block in lzop files, as in lzop.
/// Limit in bytes.
const MAX_BLOCK: u32 = 64 << 20;

const HAS_CONTENT_ADLER: u32 = 1;
const HAS_STORED_ADLER: u32 = 1 << 1;
const HAS_EXTRA_FIELD: u32 = 1 << 6;
const HAS_CONTENT_CRC: u32 = 1 << 8;
const HAS_STORED_CRC: u32 = 1 << 9;
const IS_MULTIPART: u32 = 1 << 10;
const HAS_FILTER: u32 = 1 << 11;
const HAS_HEADER_CRC: u32 = 1 << 12;
