//! Offsets and ranges of bytes on the command line.

use std::str::FromStr;

use crate::values::parse_size;

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: u64,
    /// Offset after the range, `None` for the end of the image.
    pub to: Option<u64>,
}

impl Range {
    /// Returns the first page of the range, and the page after it. `page` is the number of bytes of a page.
    pub fn pages(self, page: u64, pages: u64) -> (u64, u64) {
        let first = (self.from / page).min(pages);
        let end = self.to.map_or(pages, |to| to.div_ceil(page).min(pages));
        (first, end.max(first))
    }
}

/// Parses an offset: a size, hexadecimal digits after `0x`, or a number of sectors of 512 bytes with the suffix `s`.
pub fn parse_offset(text: &str) -> Result<u64, &'static str> {
    let lower = text.to_ascii_lowercase();
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    if let Some(digits) = lower.strip_prefix("0x").filter(|it| it.bytes().all(is_digit)) {
        return u64::from_str_radix(digits, 16).map_err(|_| SYNTAX);
    }
    match lower.strip_suffix('s') {
        Some(count) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
            let sectors = count.parse::<u64>().ok();
            sectors.and_then(|count| count.checked_mul(SECTOR)).ok_or(SYNTAX)
        }
        _ => parse_size(text),
    }
}

impl FromStr for Range {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = text.find(['-', '+']).ok_or(SYNTAX)?;
        let from = parse_offset(&text[..at]).map_err(|_| SYNTAX)?;
        let to = match text[at..].split_at(1) {
            ("-", "") => None,
            ("-", to) => Some(parse_offset(to).map_err(|_| SYNTAX)?),
            (_, length) => {
                let length = parse_offset(length).map_err(|_| SYNTAX)?;
                Some(from.checked_add(length).ok_or(SYNTAX)?)
            }
        };
        if to.is_some_and(|to| to <= from) {
            return Err(SYNTAX);
        }
        Ok(Self { from, to })
    }
}

const SYNTAX: &str = "use FROM-TO or FROM+LENGTH, such as 1G-2G, or FROM- for the rest";

/// Bytes of a sector, as the kernel counts them.
const SECTOR: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets() {
        assert_eq!(parse_offset("4k"), Ok(4096));
        assert_eq!(parse_offset("0x10"), Ok(16));
        assert_eq!(parse_offset("16s"), Ok(8192));
        for text in ["99999999999999999s", "0x10000000000000000", "0x1k", "+1s", "0x"] {
            assert!(parse_offset(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts() {
        assert_eq!("1G-2G".parse(), Ok(Range { from: 1 << 30, to: Some(2 << 30) }));
        assert_eq!("1G+64K".parse(), Ok(Range { from: 1 << 30, to: Some((1 << 30) + 65536) }));
        assert_eq!("4096-".parse(), Ok(Range { from: 4096, to: None }));
        assert_eq!("0x1000-0X1fFf".parse(), Ok(Range { from: 4096, to: Some(8191) }));
        assert_eq!("2s-3S".parse(), Ok(Range { from: 1024, to: Some(1536) }));
        for text in [
            "", "-", "2G-1G", "1G", "-1G", "1-1", "0x-1", "0x+1-9", "s-9", "1ks-9", "9-0xg", "1+",
            "1+0", "1+-1",
        ] {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
    }
}
