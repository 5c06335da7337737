//! Iterates over the lines of check files, including malformed ones and errors. Prints nothing.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;

use blkimage::{Format, Location, is_tar, probe, url_beside};
use blksum::check_file::{Entry, Line, MAX_LINE, Mistake, Parser, mistake, untagged_digits};

use super::check_files::{CheckFile, Held};
use super::stated::SelfCheck;
use super::text::{self, Text};
use super::windows;

/// A line of a check file, or the end of the file.
pub enum Item {
    /// A checksum to check.
    Entry(Entry),
    /// A malformed line.
    Malformed {
        /// Number of the line, from 1.
        number: u64,
        /// Number of hexadecimal digits, if it looks like an untagged line.
        digits: Option<usize>,
        /// The form of the line.
        mistake: Option<Mistake>,
    },
    /// An image that is checked without a line.
    Read(SelfCheck),
    /// The end of the file.
    End(End),
}

/// The reason why reading a check file ended.
pub enum End {
    /// The end was reached, or the file turned out not to be a check file.
    Reached,
    /// The file is an image.
    Image(Format),
    /// The file holds a NUL byte in its first block, so it is no text.
    Binary(Binary),
    /// The file could not be opened.
    OpenError(io::Error),
    /// The file could not be read.
    ReadError,
    /// A line is too long.
    EndlessLine,
}

/// The kind of a file with NUL bytes.
pub enum Binary {
    /// It begins like a tar archive.
    Tar,
    /// It begins like text in this encoding.
    Utf16(&'static str),
    Other,
}

/// Iterator over the items of check files, one file after the other. The last item of each is its end.
pub struct Lines<F> {
    files: F,
    /// Shared by all files, as in sha256sum.
    parser: Parser,
    file: Option<FileLines>,
    line: Vec<u8>,
}

/// The lines of an open file.
struct FileLines {
    reader: Text<BufReader<CheckFile>>,
    /// Images that are checked without a line, before all lines.
    read: VecDeque<SelfCheck>,
    is_stdin: bool,
    /// Number of lines that were read.
    number: u64,
    bytes: u64,
    has_entries: bool,
    is_over: bool,
    /// The URL of the file, in whose folder its names are.
    base: Option<String>,
}

impl<'a, F: Iterator<Item = (&'a OsStr, io::Result<CheckFile>)>> Lines<F> {
    /// Creates the iterator over `files`, which are given with their names.
    pub fn new(files: F, parser: Parser) -> Self {
        Self { files, parser, file: None, line: Vec::new() }
    }
}

impl<'a, F: Iterator<Item = (&'a OsStr, io::Result<CheckFile>)>> Iterator for Lines<F> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let file = match &mut self.file {
            Some(file) => file,
            None => match self.files.next()? {
                (name, Ok(file)) => self.file.insert(FileLines::new(file, name == "-")),
                (_, Err(error)) => return Some(Item::End(End::OpenError(error))),
            },
        };
        let item = file.next(&mut self.parser, &mut self.line).unwrap_or_else(Item::End);
        if let Item::End(_) = item {
            self.file = None;
        }
        Some(item)
    }
}

impl FileLines {
    fn new(mut file: CheckFile, is_stdin: bool) -> Self {
        let base = file.base().map(str::to_owned);
        let read = std::iter::from_fn(|| file.next_read()).collect();
        let reader = Text::new(BufReader::with_capacity(BUFFER_SIZE, file));
        Self {
            reader,
            read,
            is_stdin,
            number: 0,
            bytes: 0,
            has_entries: false,
            is_over: false,
            base,
        }
    }

    /// Returns the next line that is not ignored. `line` is a reused buffer.
    fn next(&mut self, parser: &mut Parser, line: &mut Vec<u8>) -> Result<Item, End> {
        if let Some(image) = self.read.pop_front() {
            return Ok(Item::Read(image));
        }
        if self.number == 0 {
            let head = self.reader.fill_buf()?;
            if let Some(format) = probe(head) {
                return Err(End::Image(format));
            }
            // An archive may hold a check file, whose lines are of its members.
            if head[..head.len().min(BLOCK)].contains(&0) {
                return Err(End::Binary(match text::unmarked(head) {
                    _ if is_tar(head) => Binary::Tar,
                    Some(encoding) => Binary::Utf16(encoding),
                    None => Binary::Other,
                }));
            }
            parser.begin();
        }
        while !self.is_over {
            match read_line(&mut self.reader, line)? {
                0 => break,
                length if length > MAX_NONSENSE && self.has_entries => {
                    return Err(End::EndlessLine);
                }
                length => self.bytes += length,
            }
            self.number += 1;
            match parse(parser, line, self.reader.is_marked()?, self.base.as_deref()) {
                Line::Ignored => {}
                Line::Entry(entry) if !(self.is_stdin && entry.name == b"-") => {
                    self.has_entries = true;
                    return Ok(Item::Entry(entry));
                }
                Line::Entry(_) | Line::Malformed => {
                    self.is_over = !self.has_entries && self.bytes > MAX_NONSENSE;
                    let digits = untagged_digits(line);
                    return Ok(Item::Malformed {
                        number: self.number,
                        digits,
                        mistake: mistake(line),
                    });
                }
            }
        }
        Err(End::Reached)
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::ReadError
    }
}

/// Returns the checksums in check files with these contents.
pub fn entries<'a>(
    contents: impl Iterator<Item = Held<'a>>,
    mut parser: Parser,
) -> impl Iterator<Item = Entry> {
    let mut line = Vec::new();
    let mut contents = contents.map(|held| (Text::new(held.content), held.base)).peekable();
    std::iter::from_fn(move || {
        loop {
            let (content, base) = contents.peek_mut()?;
            if !read_line(content, &mut line).is_ok_and(|length| length > 0) {
                contents.next();
                parser.begin();
                continue;
            }
            let is_marked = content.is_marked().unwrap_or(false);
            if let Line::Entry(entry) = parse(&mut parser, &line, is_marked, *base) {
                return Some(entry);
            }
        }
    })
}

/// Parses a line. `is_marked`: its file begins with a byte order mark. A line of Windows may have backslashes in its
/// name that are slashes here. With the URL of its file, a name is that of a file beside it, or a URI, and never one of this host.
fn parse(parser: &mut Parser, line: &[u8], is_marked: bool, base: Option<&str>) -> Line {
    let mut parsed = parser.parse(line);
    if let (Line::Entry(entry), Some(base)) = (&mut parsed, base) {
        if !Location::new(OsStr::from_bytes(&entry.name)).is_uri() {
            match url_beside(base, &entry.name) {
                Some(url) => entry.name = url.into(),
                None => return Line::Malformed,
            }
        }
        return parsed;
    }
    let is_of_windows = is_marked || line.ends_with(b"\r\n");
    if let Line::Entry(entry) = &mut parsed
        && is_of_windows
        && let Some(name) = windows::translate(&entry.name)
    {
        entry.name = name;
    }
    parsed
}

/// Reads a line with its newline into `line` and returns its length, which is 0 at the end of the file.
/// Keeps only the first [`MAX_LINE`] + 1 bytes of a longer line. A line longer than [`MAX_NONSENSE`] is
/// not read to its end.
pub fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    let length = reader.by_ref().take(limit).read_until(b'\n', line)? as u64;
    if length < limit || line.ends_with(b"\n") {
        return Ok(length);
    }
    Ok(length + reader.by_ref().take(MAX_NONSENSE).skip_until(b'\n')? as u64)
}

/// Size in bytes of what decides whether a file is text, which is that of a header of tar.
const BLOCK: usize = 512;

const BUFFER_SIZE: usize = 32 << 10;

/// Maximum number of bytes without a checksum, after which a file is not a check file. It may be a disk.
/// Limit in bytes.
const MAX_NONSENSE: u64 = 16 << 20;
