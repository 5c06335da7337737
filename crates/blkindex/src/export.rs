//! Writes maps as indexes.
//!
//! The output does not depend on the layout of the map: zero blocks in stored pages are part of the runs of zeros
//! next to them. Memory does not grow with the map.

use std::io::{BufWriter, Write};

use blkmap::{Error, Map, Result};

use crate::Format;
use crate::codec::Sink;

/// Writes `map` in another format.
///
/// # Errors
///
/// Fails if `output` fails, if the map cannot be read or is damaged, or if the format does not have what the map
/// holds or is not [written](Format::is_written). An error of the last kind comes before anything is written.
pub fn export(map: &Map, format: Format, mut output: impl Write) -> Result<()> {
    let Some(write) = format.codec().write else {
        return Err(Error::Unsupported(format!("cannot be written as {}", format.noun())));
    };
    let mut output: Sink<'_> = BufWriter::with_capacity(BUFFER, &mut output);
    write(map, &mut output)?;
    Ok(output.flush()?)
}

/// Bytes that are collected before they are written.
const BUFFER: usize = 64 << 10;
