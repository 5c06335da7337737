//! The table `block,offset,length,kind,digest`. No field needs quotes.

use std::io::Write;

use blkmap::{Map, Result};

use crate::codec::{Codec, Sink, boxed};
use crate::pieces::{self, Form, Line, Piece};
use crate::text::{digest, number, shown};
use crate::walk::{Hex, Kind, walk};

pub(crate) const CODEC: Codec = Codec {
    name: "csv",
    noun: "a list of digests",
    suffix: None,
    is_start: |head| head.starts_with(HEAD),
    open: |file, options| pieces::open(file, FORM, options).map(boxed),
    write: Some(write),
};

const FORM: Form = Form { head: Some(HEAD), has_summary: false, parse };

/// The first line.
const HEAD: &[u8] = b"block,offset,length,kind,digest";

fn parse(line: &[u8]) -> std::result::Result<Line, String> {
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b',').take(6).collect();
    let [block, offset, length, kind, text] = columns[..] else {
        return Err(format!("{} does not have five columns", shown(line)));
    };
    let kind = match (kind, text) {
        (b"data", text) => Kind::Digest(digest(text)?),
        (b"zero", b"") => Kind::Zeros,
        (b"unknown", b"") => Kind::Unknown,
        _ => return Err(format!("{} is not a kind, or has a digest", shown(kind))),
    };
    let (block, offset, length) = (Some(number(block)?), number(offset)?, number(length)?);
    Ok(Line::Piece(Piece { block, offset, length, kind }))
}

fn write(map: &Map, output: &mut Sink<'_>) -> Result<()> {
    output.write_all(HEAD)?;
    writeln!(output)?;
    walk(map, |piece| {
        write!(output, "{},{},{},", piece.block, piece.offset, piece.length)?;
        match piece.kind {
            Kind::Digest(digest) => writeln!(output, "data,{}", Hex(digest)),
            Kind::Zeros => writeln!(output, "zero,"),
            Kind::Unknown => writeln!(output, "unknown,"),
        }
    })?;
    Ok(())
}
