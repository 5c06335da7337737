//! Reads a text in order, within limits.

use std::io::{self, BufRead, BufReader, Read};

use blkhash::Digest;
use blkmap::{Error, ReadAt, Result};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};

/// Reads a text in tokens and knows their offsets.
pub(crate) struct Tokens<'a> {
    reader: BufReader<Bytes<'a>>,
    at: u64,
}

impl<'a> Tokens<'a> {
    /// Begins at an offset of the file.
    pub fn new(file: &'a dyn ReadAt, at: u64) -> Result<Self> {
        Ok(Self { reader: Bytes::buffered(file, at)?, at })
    }

    /// Reads up to and including `delimiter` into `token`, or up to the end of the text. Returns the offset of the token, or
    /// `None` at the end of the text.
    ///
    /// # Errors
    ///
    /// Fails if the token is longer than [`MAX_TOKEN`].
    pub fn next(&mut self, delimiter: u8, token: &mut Vec<u8>) -> Result<Option<u64>> {
        token.clear();
        let at = self.at;
        let limit = MAX_TOKEN as u64 + 1;
        let length = self.reader.by_ref().take(limit).read_until(delimiter, token)? as u64;
        if length == limit {
            let reason = format!("a part of the text is longer than {MAX_TOKEN} bytes");
            return Err(Error::damaged(at, reason));
        }
        self.at += length;
        Ok((length > 0).then_some(at))
    }
}

/// The bytes of a file, in order.
pub(crate) struct Bytes<'a> {
    file: &'a dyn ReadAt,
    at: u64,
    end: u64,
}

impl<'a> Bytes<'a> {
    /// Begins at an offset of the file.
    pub fn buffered(file: &'a dyn ReadAt, at: u64) -> Result<BufReader<Self>> {
        let end = file.length()?;
        Ok(BufReader::with_capacity(BUFFER, Self { file, at, end }))
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = (buffer.len() as u64).min(self.end.saturating_sub(self.at)) as usize;
        self.file.read_exact_at(&mut buffer[..length], self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

/// Returns the last line of a text, without the end of the line, and its offset.
pub(crate) fn last_line(file: &dyn ReadAt) -> Result<(u64, Vec<u8>)> {
    let length = file.length()?;
    let from = length.saturating_sub(MAX_TOKEN as u64 + 1);
    let mut end = vec![0; (length - from) as usize];
    file.read_exact_at(&mut end, from)?;
    if end.last() == Some(&b'\n') {
        end.pop();
    }
    let start = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if start == 0 && from > 0 {
        return Err(Error::damaged(from, format!("a line is longer than {MAX_TOKEN} bytes")));
    }
    Ok((from + start as u64, end.split_off(start)))
}

/// Reads a decimal number without a sign.
pub(crate) fn number(digits: &[u8]) -> std::result::Result<u64, String> {
    let text = std::str::from_utf8(digits).ok();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let number = text.filter(is_number).and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{} is not a number", shown(digits)))
}

/// Reads a digest in hexadecimal or in base64. What can be both is hexadecimal.
pub(crate) fn digest(text: &[u8]) -> std::result::Result<Digest, String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text).or_else(|_| BASE64.decode(text));
    let digest = bytes.ok().and_then(|bytes| Digest::try_from(&bytes[..]).ok());
    let digest = digest.filter(|digest| !digest.as_bytes().is_empty());
    digest.ok_or_else(|| format!("{} is not a digest", shown(text)))
}

/// Returns what was read at an offset of a file, or the problem with it as an error.
pub(crate) fn read_at<T>(at: u64, read: std::result::Result<T, String>) -> Result<T> {
    read.map_err(|reason| Error::damaged(at, reason))
}

/// Quotes bytes of a text for a message.
pub(crate) fn shown(bytes: &[u8]) -> String {
    match bytes.get(..MAX_SHOWN) {
        Some(start) => format!("'{}...'", start.escape_ascii()),
        None => format!("'{}'", bytes.escape_ascii()),
    }
}

/// Maximum length of a line of an index, and of an element of XML.
/// Limit in bytes.
pub(crate) const MAX_TOKEN: usize = 4096;

/// Maximum number of bytes of an index that a message quotes.
/// Limit in bytes.
const MAX_SHOWN: usize = 80;

const BUFFER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_offsets_and_a_limit() {
        let text = b"one\ntwo\n\nlast".to_vec();
        let mut tokens = Tokens::new(&text, 0).unwrap();
        let mut token = Vec::new();
        let mut found = Vec::new();
        while let Some(at) = tokens.next(b'\n', &mut token).unwrap() {
            found.push((at, String::from_utf8(token.clone()).unwrap()));
        }
        let expected = [(0, "one\n"), (4, "two\n"), (8, "\n"), (9, "last")];
        assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
        assert_eq!(last_line(&text).unwrap(), (9, b"last".to_vec()));
        let long = vec![b'x'; MAX_TOKEN];
        assert!(Tokens::new(&long, 0).unwrap().next(b'\n', &mut token).is_ok());
        let long = vec![b'x'; MAX_TOKEN + 1];
        assert!(Tokens::new(&long, 0).unwrap().next(b'\n', &mut token).is_err());
        assert!(last_line(&vec![b'x'; MAX_TOKEN + 2]).is_err());
    }

    #[test]
    fn numbers_have_only_digits() {
        assert_eq!(number(b"18446744073709551615"), Ok(u64::MAX));
        for bad in ["", "+1", "-1", " 1", "1 ", "0x1", "18446744073709551616"] {
            assert!(number(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn digests_are_hexadecimal_or_base64() {
        let zeros = Digest::try_from(&[0; 32][..]).unwrap();
        assert_eq!(digest("00".repeat(32).as_bytes()), Ok(zeros));
        assert_eq!(digest(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), Ok(zeros));
        assert_eq!(digest(b"AbCd").map(|it| it.to_string()), Ok("abcd".to_owned()));
        for bad in ["", "0", "zz", "00 ", "AAAA=", &"00".repeat(65)] {
            assert!(digest(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
