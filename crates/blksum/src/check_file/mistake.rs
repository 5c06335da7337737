//! What a malformed line looks like, to say what to write or to type instead.

use blkhash::Algorithm;

use super::{MAX_LINE, is_blank, split_algorithm};
use crate::expect::digests_of_size;
use crate::tag::PREFIX;

/// The form of a malformed line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// A value in hexadecimal without a name, after the name of its digest or alone.
    Bare,
    /// A value after the name of another digest than the expected one. Holds the digest.
    Prefixed(Algorithm),
    /// A line that begins with the tag of an image, and is damaged or of a later version. It has a checksum
    /// that cannot be checked.
    ImageTag,
    /// A line with NUL, or one that is too long. The file is no list.
    Binary,
    /// A name in front of its value, as in lists of CRC-32 (.sfv) and of `rhash` with several digests.
    NameFirst,
    /// A line of a program with a form of its own. Holds its name.
    Foreign(&'static str),
    /// Another line that has a value of 16 bytes or more in hexadecimal.
    Value,
}

/// Returns what `line` looks like, if it is malformed in a known way.
pub fn mistake(line: &[u8]) -> Option<Mistake> {
    let text = line.trim_ascii_start();
    if text.strip_prefix(b"\\").unwrap_or(text).starts_with(PREFIX.as_bytes()) {
        return Some(Mistake::ImageTag);
    }
    if line.contains(&0) || line.len() > MAX_LINE {
        return Some(Mistake::Binary);
    }
    let line = line.trim_ascii();
    if let Some(program) = program(line) {
        return Some(Mistake::Foreign(program));
    }
    let (algorithm, rest) = split_algorithm(line).unwrap_or((None, line));
    let mut words = rest.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty());
    let first = words.next()?;
    let is_value = |text: &[u8]| text.len() >= MIN_DIGITS && is_hex(text);
    match (algorithm, words.next_back()) {
        (_, None) if is_value(first) => Some(Mistake::Bare),
        (Some(algorithm), Some(_)) if is_value(first) => Some(Mistake::Prefixed(algorithm)),
        // A shorter word may be a date.
        (None, Some(last)) if !line.contains(&b'(') && (is_digest(last) || is_crc(last)) => {
            Some(Mistake::NameFirst)
        }
        _ if line.split(|byte| !byte.is_ascii_hexdigit()).any(is_digest) => Some(Mistake::Value),
        _ => None,
    }
}

/// Returns the program that writes such lines.
fn program(line: &[u8]) -> Option<&'static str> {
    let begins =
        |start: &[u8]| line.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    let mut words = line.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let mut next = || words.next().unwrap_or_default();
    if begins(b"%%%% HASHDEEP") {
        return Some("hashdeep");
    }
    if begins(b"CertUtil:") || line.ends_with(b":") && find(line, b" hash of ") {
        return Some("certutil");
    }
    // The title of a table or of CSV, and the first line of a list.
    match (next(), next()) {
        (b"Algorithm", b"Hash") => Some("Get-FileHash"),
        (b"Algorithm", _) if find(line, b" : ") => Some("Get-FileHash"),
        _ => None,
    }
}

fn find(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|window| window == text)
}

fn is_hex(text: &[u8]) -> bool {
    text.len().is_multiple_of(2) && text.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a text has the digits of a digest of 16 bytes or more.
fn is_digest(text: &[u8]) -> bool {
    text.len() >= MIN_DIGEST && is_hex(text) && !digests_of_size(text.len() / 2).is_empty()
}

/// Whether a text can be a CRC-32 and no date.
fn is_crc(text: &[u8]) -> bool {
    text.len() == MIN_DIGITS && is_hex(text) && !text.iter().all(u8::is_ascii_digit)
}

/// Minimum number of digits of a value, as many as CRC-32 has.
const MIN_DIGITS: usize = 8;

/// Minimum number of digits of a value that is recognised in any place.
const MIN_DIGEST: usize = 32;
