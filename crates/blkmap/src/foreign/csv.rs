//! The table `block,offset,length,kind,digest`.

use super::bytes::{number, shown};
use super::digest_text;
use super::pieces::{Form, Kind, Line, Piece};

pub(super) const FORM: Form = Form { head: Some(HEAD), has_summary: false, parse };

/// The first line.
pub(super) const HEAD: &[u8] = b"block,offset,length,kind,digest";

fn parse(line: &[u8]) -> Result<Line, String> {
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b',').take(6).collect();
    let [block, offset, length, kind, digest] = columns[..] else {
        return Err(format!("{} does not have five columns", shown(line)));
    };
    let kind = match (kind, digest) {
        (b"data", digest) => Kind::Digest(digest_text::parse(digest)?),
        (b"zero", b"") => Kind::Zeros,
        (b"unknown", b"") => Kind::Unknown,
        _ => return Err(format!("{} is not a kind, or has a digest", shown(kind))),
    };
    let (block, offset, length) = (Some(number(block)?), number(offset)?, number(length)?);
    Ok(Line::Piece(Piece { block, offset, length, kind }))
}
