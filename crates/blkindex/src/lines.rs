//! Lines `OFFSET LENGTH DIGEST`, with `zero` or `unknown` instead of a digest. A digest that is read may be in base64.

use std::io::Write;

use blkmap::{Map, Result};

use crate::codec::{Codec, Sink, boxed};
use crate::pieces::{self, Form, Line, Piece};
use crate::text::{digest, number, shown};
use crate::walk::{Hex, Kind, walk};

pub(crate) const CODEC: Codec = Codec {
    name: "lines",
    noun: "a list of digests",
    suffix: None,
    is_start,
    open: |file, options| pieces::open(file, FORM, options).map(boxed),
    write: Some(write),
};

const FORM: Form = Form { head: None, has_summary: false, parse };

fn parse(line: &[u8]) -> std::result::Result<Line, String> {
    let mut columns = line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
    let (Some(offset), Some(length), Some(kind), None) =
        (columns.next(), columns.next(), columns.next(), columns.next())
    else {
        return Err(format!("{} is not OFFSET LENGTH DIGEST", shown(line)));
    };
    let kind = match kind {
        b"zero" => Kind::Zeros,
        b"unknown" => Kind::Unknown,
        text => Kind::Digest(digest(text)?),
    };
    let (offset, length) = (number(offset)?, number(length)?);
    Ok(Line::Piece(Piece { block: None, offset, length, kind }))
}

/// Returns whether a text begins with such a line.
fn is_start(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    parse(line).is_ok()
}

fn write(map: &Map, output: &mut Sink<'_>) -> Result<()> {
    walk(map, |piece| {
        write!(output, "{} {} ", piece.offset, piece.length)?;
        match piece.kind {
            Kind::Digest(digest) => writeln!(output, "{}", Hex(digest)),
            Kind::Zeros => writeln!(output, "zero"),
            Kind::Unknown => writeln!(output, "unknown"),
        }
    })?;
    Ok(())
}
