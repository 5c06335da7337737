//! Lines of offset, length and digest.

use std::io::Write;

use super::{Hex, Kind, walk};
use crate::{Map, Result};

pub(super) fn write(map: &Map, output: &mut impl Write) -> Result<()> {
    walk(map, |piece| {
        write!(output, "{} {} ", piece.offset, piece.length)?;
        match piece.kind {
            Kind::Data(digest) => writeln!(output, "{}", Hex(digest)),
            Kind::Zeros => writeln!(output, "zero"),
            Kind::Unknown => writeln!(output, "unknown"),
        }
    })?;
    Ok(())
}
