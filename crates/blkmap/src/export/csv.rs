//! Comma-separated values. No field needs quotes.

use std::io::Write;

use super::{Hex, Kind, walk};
use crate::{Map, Result};

pub(super) fn write(map: &Map, output: &mut impl Write) -> Result<()> {
    writeln!(output, "block,offset,length,kind,digest")?;
    walk(map, |piece| {
        write!(output, "{},{},{},", piece.block, piece.offset, piece.length)?;
        match piece.kind {
            Kind::Data(digest) => writeln!(output, "data,{}", Hex(digest)),
            Kind::Zeros => writeln!(output, "zero,"),
            Kind::Unknown => writeln!(output, "unknown,"),
        }
    })?;
    Ok(())
}
