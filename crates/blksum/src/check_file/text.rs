//! Reads text that programs of Windows wrote: UTF-16, which PowerShell writes, becomes UTF-8. Everything else stays as
//! it is.

use std::io::{self, BufRead, Read};

/// A reader of text. What is no UTF-16 is not decoded: names are bytes.
pub struct Text<R> {
    inner: R,
    encoding: Encoding,
    decoded: Vec<u8>,
    position: usize,
}

#[derive(Clone, Copy)]
enum Encoding {
    /// Nothing was read.
    Unknown,
    /// The bytes are not decoded.
    Bytes,
    /// The same after a byte order mark in UTF-8.
    Marked,
    Utf16(fn([u8; 2]) -> u16),
}

impl<R: BufRead> Text<R> {
    /// Reads `inner`, whose beginning says what it is.
    pub fn new(inner: R) -> Self {
        Self { inner, encoding: Encoding::Unknown, decoded: Vec::new(), position: 0 }
    }

    /// Whether the text begins with a byte order mark, as files of Windows do.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn is_marked(&mut self) -> io::Result<bool> {
        self.find_encoding()?;
        Ok(matches!(self.encoding, Encoding::Marked | Encoding::Utf16(_)))
    }

    fn find_encoding(&mut self) -> io::Result<()> {
        let Encoding::Unknown = self.encoding else { return Ok(()) };
        self.encoding = match self.inner.fill_buf()? {
            [0xff, 0xfe, ..] => Encoding::Utf16(u16::from_le_bytes),
            [0xfe, 0xff, ..] => Encoding::Utf16(u16::from_be_bytes),
            [0xef, 0xbb, 0xbf, ..] => Encoding::Marked,
            _ => Encoding::Bytes,
        };
        if let Encoding::Utf16(_) = self.encoding {
            self.inner.consume(2);
        }
        Ok(())
    }

    /// Decodes the next part. What is no character becomes U+FFFD.
    fn decode(&mut self, unit: fn([u8; 2]) -> u16) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK + 2);
        self.inner.by_ref().take(CHUNK as u64).read_to_end(&mut bytes)?;
        let units = |bytes: &[u8]| -> Vec<u16> {
            let (pairs, _) = bytes.as_chunks();
            pairs.iter().map(|pair| unit(*pair)).collect()
        };
        // The second half of a pair of surrogates is past the end of the part.
        if units(&bytes).last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
            self.inner.by_ref().take(2).read_to_end(&mut bytes)?;
        }
        let is_cut = (!bytes.len().is_multiple_of(2)).then_some(char::REPLACEMENT_CHARACTER);
        let text = char::decode_utf16(units(&bytes));
        let text = text.map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).chain(is_cut);
        self.decoded = text.collect::<String>().into_bytes();
        self.position = 0;
        Ok(())
    }
}

impl<R: BufRead> BufRead for Text<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.find_encoding()?;
        match self.encoding {
            Encoding::Utf16(unit) => {
                if self.position == self.decoded.len() {
                    self.decode(unit)?;
                }
                Ok(&self.decoded[self.position..])
            }
            _ => self.inner.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self.encoding {
            Encoding::Utf16(_) => self.position += count,
            _ => self.inner.consume(count),
        }
    }
}

impl<R: BufRead> Read for Text<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buf)?;
        self.consume(count);
        Ok(count)
    }
}

/// Returns the encoding of text in UTF-16 without a byte order mark, for iconv, if `head` begins like that.
pub(super) fn unmarked(head: &[u8]) -> Option<&'static str> {
    let (pairs, _) = head[..head.len().min(BLOCK)].as_chunks::<2>();
    let is_text = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let all = |is: fn(&[u8; 2]) -> (u8, u8)| {
        pairs.iter().map(is).all(|(high, low)| high == 0 && is_text(low))
    };
    match () {
        () if pairs.len() < 2 => None,
        () if all(|pair| (pair[1], pair[0])) => Some("UTF-16LE"),
        () if all(|pair| (pair[0], pair[1])) => Some("UTF-16BE"),
        () => None,
    }
}

/// Number of bytes that are decoded at a time, which is even.
const CHUNK: usize = 32 << 10;

/// Number of bytes of ASCII text that show its encoding.
const BLOCK: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    fn read(bytes: &[u8]) -> String {
        io::read_to_string(Text::new(bytes)).unwrap()
    }

    #[test]
    fn utf16_is_decoded() {
        // Every place of a pair of surrogates in a part, and more than one part.
        for shift in 0..4 {
            let text = "x".repeat(shift) + &"aé中😀\r\n".repeat(CHUNK / 4);
            assert_eq!(read(&encode(&format!("\u{feff}{text}"), u16::to_le_bytes)), text);
            assert_eq!(read(&encode(&format!("\u{feff}{text}"), u16::to_be_bytes)), text);
        }
        assert_eq!(read(b"\xff\xfea\0\0\xd8b\0\0\xdcc"), "a\u{fffd}b\u{fffd}\u{fffd}");
        assert_eq!((read(b"\xff\xfe"), read(b"")), (String::new(), String::new()));
    }

    #[test]
    fn other_text_stays() {
        for (bytes, is_marked) in [
            (&b"a\xff\xfe"[..], false),
            (b"\xef\xbb\xbfa", true),
            (b"\xff", false),
            (b"\xfe\xff", true),
        ] {
            let mut text = Text::new(bytes);
            assert_eq!(text.is_marked().unwrap(), is_marked);
            let mut all = Vec::new();
            text.read_to_end(&mut all).unwrap();
            assert_eq!(all, if bytes == b"\xfe\xff" { &b""[..] } else { bytes });
        }
    }

    #[test]
    fn utf16_without_a_mark_is_recognised() {
        assert_eq!(unmarked(&encode("a b\r\n", u16::to_le_bytes)), Some("UTF-16LE"));
        assert_eq!(unmarked(&encode("a b\r\n", u16::to_be_bytes)), Some("UTF-16BE"));
        for bytes in [&b""[..], b"a\0", b"\0\0\0\0", b"a\0b\0\0\0", b"abcd"] {
            assert_eq!(unmarked(bytes), None, "{bytes:?}");
        }
    }
}
