//! Ranges of bytes on the command line.

use std::str::FromStr;

use crate::values::parse_size;

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: u64,
    /// Offset behind the range, `None` for the end of the image.
    pub to: Option<u64>,
}

impl Range {
    /// Returns the first page of the range, and the page behind it. `page` is the number of bytes of a page.
    pub fn pages(self, page: u64, pages: u64) -> (u64, u64) {
        let first = (self.from / page).min(pages);
        let end = self.to.map_or(pages, |to| to.div_ceil(page).min(pages));
        (first, end.max(first))
    }
}

impl FromStr for Range {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const SYNTAX: &str = "use FROM-TO, such as 1G-2G, or FROM- for the rest";
        let (from, to) = text.split_once('-').ok_or(SYNTAX)?;
        let from = parse_size(from).map_err(|_| SYNTAX)?;
        let to = match to {
            "" => None,
            to => Some(parse_size(to).map_err(|_| SYNTAX)?),
        };
        if to.is_some_and(|to| to <= from) {
            return Err(SYNTAX);
        }
        Ok(Self { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!("1G-2G".parse(), Ok(Range { from: 1 << 30, to: Some(2 << 30) }));
        assert_eq!("4096-".parse(), Ok(Range { from: 4096, to: None }));
        for text in ["", "-", "2G-1G", "1G", "-1G", "1-1"] {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
    }
}
