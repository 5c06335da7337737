//! Lines `OFFSET LENGTH DIGEST`, with `zero` or `unknown` instead of a digest. A digest may be in base64.

use super::bytes::{number, shown};
use super::digest_text;
use super::pieces::{Form, Kind, Line, Piece};

pub(super) const FORM: Form = Form { head: None, has_summary: false, parse };

fn parse(line: &[u8]) -> Result<Line, String> {
    let mut columns = line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
    let (Some(offset), Some(length), Some(kind), None) =
        (columns.next(), columns.next(), columns.next(), columns.next())
    else {
        return Err(format!("{} is not OFFSET LENGTH DIGEST", shown(line)));
    };
    let kind = match kind {
        b"zero" => Kind::Zeros,
        b"unknown" => Kind::Unknown,
        digest => Kind::Digest(digest_text::parse(digest)?),
    };
    let (offset, length) = (number(offset)?, number(length)?);
    Ok(Line::Piece(Piece { block: None, offset, length, kind }))
}

/// Returns whether a text begins with such a line.
pub(super) fn is_start(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    parse(line).is_ok()
}
