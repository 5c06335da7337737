//! Reads and writes the lines of check files.
//!
//! The meaning of a line follows from its bytes, the digest of untagged lines and, for one rare
//! form ([`Parser`]), the lines before it. Nothing here opens an image. docs/reference/check-file.md specifies
//! the format. It is the format of `sha256sum --check` with more kinds of tags.

mod lines;
mod mistake;
mod text;
pub mod windows;

use blkhash::Algorithm;

pub use self::lines::{Binary, End, Entries, Folder, Item, Lines};
pub use self::mistake::{Mistake, mistake};
pub use self::text::Text;
use crate::expect::Value;
use crate::tag::parse_plain;
use crate::{Encoding, Tag, decode_base64};

/// Parses the lines of check files.
///
/// Keeps two facts between lines: whether a name follows the digest after one blank (as old BSD
/// tools wrote it) or after a blank and a mode character, and whether the file is a list of CRC-32 (.sfv).
/// A file never mixes the first two, so an
/// attacker who chooses a name with a leading blank cannot make it stand for another name.
#[derive(Clone, Debug)]
pub struct Parser {
    untagged: Algorithm,
    /// Whether untagged lines may have other digests, of at least [`MIN_ANY`] bytes.
    is_any: bool,
    /// The tag that untagged lines get.
    tag: Option<Tag>,
    separator: Option<Separator>,
    list: List,
}

/// A parsed line of a check file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A comment or an empty line.
    Ignored,
    /// A checksum and the name of the file it belongs to.
    Entry(Entry),
    /// A line in no known format.
    Malformed,
}

/// A checksum to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File name with escapes resolved. Contains no NUL. May be empty if there is a tag.
    pub name: Vec<u8>,
    /// Checksum, as long as the digest of the tag or of untagged lines.
    pub digest: Vec<u8>,
    /// Algorithm that an untagged line names.
    pub algorithm: Option<Algorithm>,
    /// Algorithm, parameters and content named by the line, or `None` for an untagged line.
    pub tag: Option<Tag>,
}

/// Output format of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Form of the line.
    pub form: Form,
    /// The encoding of the checksum.
    pub encoding: Encoding,
    /// Ends the line with NUL and escapes nothing. Such lines do not belong in check files.
    pub zero: bool,
}

/// Form of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `HEX  NAME`
    Text,
    /// `HEX *NAME`
    Binary,
    /// `ALGORITHM:HEX  NAME`, as in descriptors of OCI.
    Named(Algorithm),
    /// `TAG (NAME) = HEX`
    Tagged(Tag),
}

impl Parser {
    /// Creates a parser that expects digests of `untagged` on untagged lines.
    pub fn new(untagged: Algorithm) -> Self {
        Self { untagged, is_any: false, tag: None, separator: None, list: List::Unknown }
    }

    /// Creates a parser that takes any digest of at least 16 bytes on untagged lines, and shorter ones of `untagged`.
    pub fn of_any(untagged: Algorithm) -> Self {
        Self { is_any: true, ..Self::new(untagged) }
    }

    /// A parser for which untagged lines have digests of the files' own bytes, as sha256sum and its
    /// siblings write them. Their entries have the tag [`Tag::File`].
    pub fn of_files(untagged: Algorithm) -> Self {
        Self { tag: Some(Tag::File(untagged)), ..Self::new(untagged) }
    }

    /// Begins another file. The first line without a tag decides the form of all others, also in later files.
    pub fn begin(&mut self) {
        self.list = List::Unknown;
    }

    /// Parses `line`, with or without its line ending (`\n` or `\r\n`).
    pub fn parse(&mut self, line: &[u8]) -> Line {
        let is_long = line.len() > MAX_LINE;
        let line = line.strip_prefix(BOM).unwrap_or(line);
        if line.starts_with(b"#") {
            return Line::Ignored;
        }
        // A long line of `;` is no text that a program wrote as a comment.
        if line.starts_with(b";") && !is_long && self.list.is_sfv() {
            return Line::Ignored;
        }
        if is_long {
            return Line::Malformed;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Line::Ignored;
        }
        let is_sfv = self.list == List::Sfv;
        if !is_sfv {
            self.list = List::Plain;
        }
        // A name holds no NUL, so this is a binary file or its lines end with NUL.
        if line.contains(&0) {
            return Line::Malformed;
        }
        let entry = self.parse_entry(line);
        let entry = entry.or_else(|| parse_sfv(line).filter(|_| is_sfv));
        entry.map_or(Line::Malformed, Line::Entry)
    }

    fn parse_entry(&mut self, line: &[u8]) -> Option<Entry> {
        let line = trim_blanks(line);
        let (line, escaped) = match line.strip_prefix(b"\\") {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        let (tag, digest, algorithm, name) = match split_tag(line) {
            Some((tag, rest)) => {
                let (name, digits) = split_tagged(rest)?;
                let digest = decode(digits).filter(|digest| digest.len() == tag.digest_size())?;
                (Some(tag), digest, None, name)
            }
            None => {
                let (Value { digest, algorithm, .. }, name) = self.split_untagged(line)?;
                (self.tag.clone(), digest, algorithm, name)
            }
        };
        let name = if escaped { unescape(name)? } else { name.to_vec() };
        Some(Entry { name, digest, algorithm, tag })
    }

    /// Splits `VALUE  NAME`, `VALUE *NAME` or `VALUE NAME` into checksum and name. In front of the value may be the
    /// name of its digest.
    fn split_untagged<'a>(&mut self, line: &'a [u8]) -> Option<(Value, &'a [u8])> {
        let (algorithm, line) = split_algorithm(line)?;
        let end = line.iter().position(|byte| is_blank(*byte))?;
        let name = &line[end + 1..];
        // Only a line that starts with a digest may decide how later lines are read.
        let value = self.value(algorithm, &line[..end])?;
        let separator = match name {
            [] => return None,
            [b' ' | b'*', _, ..] => *self.separator.get_or_insert(Separator::BlankAndMode),
            _ if self.separator == Some(Separator::BlankAndMode) => return None,
            _ => *self.separator.insert(Separator::Blank),
        };
        match separator {
            Separator::BlankAndMode => Some((value, &name[1..])),
            Separator::Blank => Some((value, name)),
        }
    }

    /// Reads `HEX` or `BASE64`, if untagged lines may have such a digest.
    fn value(&self, algorithm: Option<Algorithm>, text: &[u8]) -> Option<Value> {
        let value = match algorithm {
            Some(algorithm) => Value::of(algorithm, decode_any(text)?),
            None => Value::new(decode(text)?),
        };
        let value = value.ok()?;
        let size = value.digest.len();
        let is_expected = size == self.untagged.digest_size()
            && value.algorithm.is_none_or(|algorithm| algorithm == self.untagged);
        let is_other = self.is_any && (value.algorithm.is_some() || size >= MIN_ANY);
        (is_expected || is_other).then_some(value)
    }
}

impl List {
    /// Whether a line that begins with a semicolon is a comment: the file is a list of CRC-32, or such a line begins it.
    fn is_sfv(&mut self) -> bool {
        if *self == Self::Unknown {
            *self = Self::Sfv;
        }
        *self == Self::Sfv
    }
}

impl Style {
    /// Returns the line for `name` with the checksum `digest`, including its line ending.
    pub fn line(&self, name: &[u8], digest: &[u8]) -> Vec<u8> {
        let escaped = if self.zero { None } else { escape(name) };
        let digits = self.encoding.encode(digest);
        let mut line = Vec::with_capacity(name.len() + digits.len() + 48);
        if escaped.is_some() {
            line.push(b'\\');
        }
        let name = escaped.as_deref().unwrap_or(name);
        match &self.form {
            Form::Tagged(tag) => {
                line.extend_from_slice(tag.to_string().as_bytes());
                line.extend_from_slice(b" (");
                line.extend_from_slice(name);
                line.extend_from_slice(b") = ");
                line.extend_from_slice(digits.as_bytes());
            }
            Form::Text | Form::Binary | Form::Named(_) => {
                if let Form::Named(algorithm) = &self.form {
                    line.extend_from_slice(algorithm.name().as_bytes());
                    line.push(b':');
                }
                line.extend_from_slice(digits.as_bytes());
                line.extend_from_slice(if self.form == Form::Binary { b" *" } else { b"  " });
                line.extend_from_slice(name);
            }
        }
        line.push(if self.zero { 0 } else { b'\n' });
        line
    }
}

/// Hexadecimal digits that `line` begins with, if it has the form of an untagged line with a digest of
/// any length.
pub fn untagged_digits(line: &[u8]) -> Option<usize> {
    let line = trim_blanks(line);
    let line = line.strip_prefix(b"\\").unwrap_or(line);
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    (digits > 0 && is_blank(line[digits]) && line.len() > digits + 1).then_some(digits)
}

/// Escapes backslashes, newlines and carriage returns in `name`, or returns `None` if it has none.
/// A line with an escaped name starts with a backslash.
pub fn escape(name: &[u8]) -> Option<Vec<u8>> {
    if !name.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r')) {
        return None;
    }
    let mut escaped = Vec::with_capacity(name.len() + 8);
    for &byte in name {
        match byte {
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            _ => escaped.push(byte),
        }
    }
    Some(escaped)
}

/// Reverses [`escape`]. Returns `None` for an escape that it does not write.
fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            _ => byte,
        });
    }
    Some(plain)
}

/// Returns the tag before the first parenthesis, and the text after the parenthesis. Blanks may be between both.
fn split_tag(line: &[u8]) -> Option<(Tag, &[u8])> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let tag = std::str::from_utf8(&line[..open]).ok()?.trim_end_matches([' ', '\t']);
    Some((tag.parse().ok()?, &line[open + 1..]))
}

/// Returns the digest that a line without a tag names, and the text from the value on. Blanks may be after the colon.
/// `None` if its first word has another name and a colon.
fn split_algorithm(line: &[u8]) -> Option<(Option<Algorithm>, &[u8])> {
    let end = line.iter().position(|byte| is_blank(*byte)).unwrap_or(line.len());
    let Some(colon) = line[..end].iter().position(|byte| *byte == b':') else {
        return Some((None, line));
    };
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    let algorithm = name.parse().ok().or_else(|| parse_plain(name))?;
    Some((Some(algorithm), trim_blanks(&line[colon + 1..])))
}

/// Reads a line of a list of CRC-32, `NAME HEX`.
fn parse_sfv(line: &[u8]) -> Option<Entry> {
    let end = line.iter().rposition(|byte| is_blank(*byte))?;
    let digest = Encoding::Hex.decode(&line[end + 1..])?;
    let blanks = line[..end].iter().rev().take_while(|byte| is_blank(**byte)).count();
    let name = line[..end - blanks].to_vec();
    let tag = Tag::File(Algorithm::Crc32);
    let is_entry = digest.len() == tag.digest_size() && !name.is_empty();
    is_entry.then_some(Entry { name, digest, algorithm: None, tag: Some(tag) })
}

/// Splits `NAME) = HEX` into name and digest. Searches from the right because the name may contain
/// anything.
fn split_tagged(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let close = rest.iter().rposition(|byte| *byte == b')')?;
    let digest = trim_blanks(&rest[close + 1..]).strip_prefix(b"=")?;
    Some((&rest[..close], trim_blanks(digest)))
}

/// Reads a checksum in hexadecimal, or in base64 as `cksum --base64` writes it.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    [Encoding::Hex, Encoding::Base64].into_iter().find_map(|encoding| encoding.decode(text))
}

/// Reads a checksum after the name of its digest, in hexadecimal or in any base64.
fn decode_any(text: &[u8]) -> Option<Vec<u8>> {
    Encoding::Hex.decode(text).or_else(|| decode_base64(text))
}

fn trim_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    &text[blanks..]
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Blank,
    BlankAndMode,
}

/// What the first line of a file says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Unknown,
    Plain,
    /// A list of CRC-32 (.sfv): it begins with a comment after a semicolon.
    Sfv,
}

/// A byte order mark in UTF-8, which editors of Windows write at the beginning of a file.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Minimum length in bytes of a checksum that an untagged line may have without being named: a text may begin with a
/// word that looks like a shorter one.
const MIN_ANY: usize = 16;

/// Maximum length of a line of a check file, including its line ending. Leaves room for the longest path (PATH_MAX
/// with every byte escaped), tag and digest. A caller that reads a file line by line needs to keep at most one byte
/// more.
/// Limit in bytes.
pub const MAX_LINE: usize = 16 << 10;

#[cfg(test)]
mod tests;
