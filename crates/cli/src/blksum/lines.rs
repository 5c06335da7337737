//! Iterates over the lines of check files, including malformed ones and errors. Prints nothing.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use blksum::check_file::{self, Entries, Entry, Folder, Mistake, Parser};

use super::check_files::{CheckFile, Held};
use super::stated::SelfCheck;

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
    /// The file could not be opened.
    OpenError(io::Error),
    /// The file was opened.
    Read(check_file::End),
}

/// Iterator over the items of check files, one file after the other. The last item of each is its end.
pub struct Lines<F> {
    files: F,
    /// Shared by all files, as in sha256sum.
    parser: Parser,
    file: Option<FileLines>,
}

/// The lines of an open file.
struct FileLines {
    lines: check_file::Lines<CheckFile>,
    /// Images that are checked without a line, before all lines.
    read: VecDeque<SelfCheck>,
}

impl<'a, F: Iterator<Item = (&'a OsStr, io::Result<CheckFile>)>> Lines<F> {
    /// Creates the iterator over `files`, which are given with their names.
    pub fn new(files: F, parser: Parser) -> Self {
        Self { files, parser, file: None }
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
        let item = file.next(&mut self.parser);
        if let Item::End(_) = item {
            self.file = None;
        }
        Some(item)
    }
}

impl FileLines {
    fn new(mut file: CheckFile, is_stdin: bool) -> Self {
        let folder = folder(file.base());
        let read = std::iter::from_fn(|| file.next_read()).collect();
        let lines = check_file::Lines::new(file, folder);
        Self { lines: if is_stdin { lines.of_stdin() } else { lines }, read }
    }

    /// Returns the next line that is not ignored.
    fn next(&mut self, parser: &mut Parser) -> Item {
        if let Some(image) = self.read.pop_front() {
            return Item::Read(image);
        }
        match self.lines.next(parser) {
            Ok(check_file::Item::Entry(entry)) => Item::Entry(entry),
            Ok(check_file::Item::Malformed { number, digits, mistake }) => {
                Item::Malformed { number, digits, mistake }
            }
            Err(end) => Item::End(End::Read(end)),
        }
    }
}

/// Returns the checksums in check files with these contents.
pub fn entries<'a>(
    contents: impl Iterator<Item = Held<'a>>,
    mut parser: Parser,
) -> impl Iterator<Item = Entry> {
    let mut contents =
        contents.map(|held| Entries::new(held.content, folder(held.base))).peekable();
    std::iter::from_fn(move || {
        loop {
            if let Some(entry) = contents.peek_mut()?.next(&mut parser) {
                return Some(entry);
            }
            contents.next();
            parser.begin();
        }
    })
}

/// Returns what the names in a check file are relative to. `base` is its URL.
fn folder(base: Option<&str>) -> Folder {
    base.map_or(Folder::Local(PathBuf::new()), |url| Folder::Url(url.to_owned()))
}
