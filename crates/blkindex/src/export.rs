//! Writes maps as indexes.
//!
//! The output does not depend on the layout of the map: zero blocks in stored pages are part of the runs of zeros
//! beside them. Memory does not grow with the map.

use std::io::{BufWriter, Write};

use blkmap::{Error, Map, Result};

use crate::{Format, bmap, caibx, csv, fidx, json, lines, raw};

/// Writes `map` in another format.
///
/// # Errors
///
/// Fails if `output` fails, if the map cannot be read or is damaged, or if the format does not have what the map
/// holds or is not [written](Format::is_written). An error of the last kind comes before anything is written.
pub fn export(map: &Map, format: Format, output: impl Write) -> Result<()> {
    let mut output = BufWriter::with_capacity(BUFFER, output);
    match format {
        Format::Lines => lines::write(map, &mut output)?,
        Format::Csv => csv::write(map, &mut output)?,
        Format::Json => json::write(map, &mut output)?,
        Format::Bmap => bmap::write(map, &mut output)?,
        Format::Fidx => fidx::write(map, &mut output)?,
        Format::Caibx => caibx::write(map, &mut output)?,
        Format::Raw => raw::write(map, &mut output)?,
        Format::S3 => {
            let reason = format!("cannot be written as {}", format.noun());
            return Err(Error::Unsupported(reason));
        }
    }
    Ok(output.flush()?)
}

/// Bytes that are collected before they are written.
const BUFFER: usize = 64 << 10;
