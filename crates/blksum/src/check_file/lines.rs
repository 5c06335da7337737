//! Reads the lines of a check file until its end, or until it is clear that it is none.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use blkimage::{Format, Location, is_tar, probe, url_beside};

use super::text::{Text, unmarked};
use super::{Entry, Line, MAX_LINE, Mistake, Parser, mistake, untagged_digits, windows};

/// The lines of a check file. Comments and empty lines are left out.
pub struct Lines<R> {
    reader: Text<BufReader<R>>,
    folder: Folder,
    is_stdin: bool,
    line: Vec<u8>,
    /// Number of lines that were read.
    number: u64,
    bytes: u64,
    has_entries: bool,
    is_over: bool,
}

/// The folder that names in a check file are relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folder {
    /// A folder of this host. The empty path is the current one.
    Local(PathBuf),
    /// The folder of the check file with this URL. Names become URLs of files in it or beneath, and never files of this
    /// host.
    Url(String),
}

/// A line of a check file.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// The reason why reading a check file ended.
#[derive(Debug)]
pub enum End {
    /// The end was reached, or the file turned out not to be a check file.
    Reached,
    /// The file is an image.
    Image(Format),
    /// The file holds a NUL byte in its first block, so it is no text.
    Binary(Binary),
    /// The file could not be read.
    Unreadable(io::Error),
    /// A line is too long.
    EndlessLine,
}

/// The kind of a file with NUL bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// It begins like a tar archive.
    Tar,
    /// It begins like text in this encoding.
    Utf16(&'static str),
    /// It begins like neither.
    Other,
}

/// The checksums in a check file that is held in memory. What is malformed is left out.
pub struct Entries<'a> {
    text: Text<&'a [u8]>,
    folder: Folder,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Reads the lines of a file whose names are relative to `folder`.
    pub fn new(file: R, folder: Folder) -> Self {
        Self {
            reader: Text::new(BufReader::with_capacity(BUFFER_SIZE, file)),
            folder,
            is_stdin: false,
            line: Vec::new(),
            number: 0,
            bytes: 0,
            has_entries: false,
            is_over: false,
        }
    }

    /// Takes lines that name `-` for malformed: the file itself is standard input.
    #[must_use]
    pub fn of_stdin(self) -> Self {
        Self { is_stdin: true, ..self }
    }

    /// Returns the next line. `parser` is shared by the files that are checked together.
    ///
    /// # Errors
    ///
    /// Fails with the reason why there is none.
    pub fn next(&mut self, parser: &mut Parser) -> Result<Item, End> {
        if self.number == 0 {
            self.check_head()?;
            parser.begin();
        }
        while !self.is_over {
            match read_line(&mut self.reader, &mut self.line)? {
                0 => break,
                length if length > MAX_NONSENSE && self.has_entries => {
                    return Err(End::EndlessLine);
                }
                length => self.bytes = self.bytes.saturating_add(length),
            }
            self.number += 1;
            match parse(parser, &self.line, self.reader.is_marked()?, &self.folder) {
                Line::Ignored => {}
                Line::Entry(entry) if !(self.is_stdin && entry.name == b"-") => {
                    self.has_entries = true;
                    return Ok(Item::Entry(entry));
                }
                Line::Entry(_) | Line::Malformed => {
                    self.is_over = !self.has_entries && self.bytes > MAX_NONSENSE;
                    return Ok(Item::Malformed {
                        number: self.number,
                        digits: untagged_digits(&self.line),
                        mistake: mistake(&self.line),
                    });
                }
            }
        }
        Err(End::Reached)
    }

    /// Refuses what begins like another kind of file.
    fn check_head(&mut self) -> Result<(), End> {
        let head = self.reader.fill_buf()?;
        if let Some(format) = probe(head) {
            return Err(End::Image(format));
        }
        // An archive may hold a check file, whose lines are of its members.
        if head[..head.len().min(BLOCK)].contains(&0) {
            return Err(End::Binary(match unmarked(head) {
                _ if is_tar(head) => Binary::Tar,
                Some(encoding) => Binary::Utf16(encoding),
                None => Binary::Other,
            }));
        }
        Ok(())
    }
}

impl<'a> Entries<'a> {
    /// Reads the content of a file whose names are relative to `folder`.
    pub fn new(content: &'a [u8], folder: Folder) -> Self {
        Self { text: Text::new(content), folder, line: Vec::new() }
    }

    /// Returns the next checksum, or `None` at the end. `parser` is shared by the files that are checked together.
    pub fn next(&mut self, parser: &mut Parser) -> Option<Entry> {
        loop {
            // Memory can be read.
            let length = read_line(&mut self.text, &mut self.line).unwrap_or(0);
            if length == 0 {
                return None;
            }
            let is_marked = self.text.is_marked().unwrap_or(false);
            if let Line::Entry(entry) = parse(parser, &self.line, is_marked, &self.folder) {
                return Some(entry);
            }
        }
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Parses a line. `is_marked`: its file begins with a byte order mark. A line of Windows may have backslashes in its
/// name that are slashes here.
fn parse(parser: &mut Parser, line: &[u8], is_marked: bool, folder: &Folder) -> Line {
    let mut parsed = parser.parse(line);
    let Line::Entry(entry) = &mut parsed else { return parsed };
    match folder {
        Folder::Url(_) if Location::new(OsStr::from_bytes(&entry.name)).is_uri() => {}
        Folder::Url(url) => match url_beside(url, &entry.name) {
            Some(url) => entry.name = url.into(),
            None => return Line::Malformed,
        },
        Folder::Local(folder) => {
            let is_of_windows = is_marked || line.ends_with(b"\r\n");
            if is_of_windows && let Some(name) = windows::translate(folder, &entry.name) {
                entry.name = name;
            }
        }
    }
    parsed
}

/// Reads a line with its newline into `line` and returns its length, which is 0 at the end of the file.
/// Keeps only the first [`MAX_LINE`] + 1 bytes of a longer line. A line longer than [`MAX_NONSENSE`] is
/// not read to its end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    let length = reader.by_ref().take(limit).read_until(b'\n', line)? as u64;
    if length < limit || line.ends_with(b"\n") {
        return Ok(length);
    }
    Ok(length + reader.by_ref().take(MAX_NONSENSE).skip_until(b'\n')? as u64)
}

/// Size in bytes of what decides whether a file is text: a header of tar.
const BLOCK: usize = 512;

const BUFFER_SIZE: usize = 32 << 10;

/// Maximum number of bytes without a checksum, after which a file is not a check file. It may be a disk.
/// Limit in bytes.
const MAX_NONSENSE: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use blkhash::Algorithm;

    use super::*;

    const HEX: &str = "49abd65bbf7f7e40c7055093ed2e3fd75f2f602f2c5fcf955c213e3135eb03f7";

    fn here() -> Folder {
        Folder::Local(PathBuf::new())
    }

    /// Returns the lines as text, and how the file ends.
    fn read(content: &[u8], folder: Folder, is_stdin: bool) -> (Vec<String>, String) {
        let mut parser = Parser::of_any(Algorithm::Sha256);
        let mut lines = Lines::new(content, folder);
        if is_stdin {
            lines = lines.of_stdin();
        }
        let mut found = Vec::new();
        loop {
            match lines.next(&mut parser) {
                Ok(Item::Entry(entry)) => found.push(String::from_utf8(entry.name).unwrap()),
                Ok(Item::Malformed { number, .. }) => found.push(format!("line {number}")),
                Err(end) => return (found, format!("{end:?}")),
            }
        }
    }

    #[test]
    fn lines_have_numbers_and_an_end() {
        let text = format!("# comment\n{HEX}  a\n\nnothing\n{HEX}  -\nSHA256 (b) = {HEX}");
        let (found, end) = read(text.as_bytes(), here(), false);
        assert_eq!((found.join(" "), end), ("a line 4 - b".into(), "Reached".into()));
        let (found, _) = read(text.as_bytes(), here(), true);
        assert_eq!(found.join(" "), "a line 4 line 5 b");
        let mut entries = Entries::new(text.as_bytes(), here());
        let mut parser = Parser::of_any(Algorithm::Sha256);
        let names: Vec<_> = std::iter::from_fn(|| entries.next(&mut parser)).collect();
        assert_eq!(names.iter().map(|it| &*it.name).collect::<Vec<_>>(), [&b"a"[..], b"-", b"b"]);
    }

    #[test]
    fn names_beside_a_file_on_a_server() {
        let text = format!("{HEX}  a b\n{HEX}  ../c\n{HEX}  nbd://host/d\n{HEX}  /etc/passwd\n");
        let url = Folder::Url("https://host/folder/SUMS".into());
        let (found, _) = read(text.as_bytes(), url, false);
        assert_eq!(found.join(" "), "https://host/folder/a%20b line 2 nbd://host/d line 4");
    }

    #[test]
    fn other_files_are_recognised() {
        let end = |content: &[u8]| read(content, here(), false).1;
        assert_eq!(end(b"QFI\xfb\0\0\0\x03"), "Image(Qcow2)");
        assert_eq!(end(b"\x7fELF\0\0"), "Binary(Other)");
        assert_eq!(end(b"a\0b\0c\0"), "Binary(Utf16(\"UTF-16LE\"))");
        let nonsense = vec![b'x'; MAX_NONSENSE as usize + (1 << 20)];
        assert_eq!(read(&nonsense, here(), false), (vec!["line 1".into()], "Reached".into()));
        let text = [format!("{HEX}  a\n").as_bytes(), &nonsense].concat();
        assert_eq!(end(&text), "EndlessLine");
    }
}
