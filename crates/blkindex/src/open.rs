//! Opens a map, or an index as a map.

use std::ffi::OsStr;
use std::time::Duration;

use blkmap::{Map, ReadAt, Result, Writer};

use crate::spool::Spool;
use crate::{Format, Index, Options};

/// A map that was opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The map.
    pub map: Map,
    /// The format of the file, if it is an index of another program.
    pub format: Option<Format>,
    /// Number of blocks of the index that the map does not know, because it knows pages as a whole.
    pub left_out: u64,
}

/// Opens the last state of a map, or makes a map of an index of another program. The format of an index shows in its first
/// bytes or in `name`.
///
/// The map of an index is in memory or, if it is large, in a temporary file. Its info has the format only.
///
/// # Errors
///
/// Fails if the file is neither, or is damaged, or the temporary file cannot be written.
pub fn open(file: impl ReadAt + 'static, name: &OsStr) -> Result<Opened> {
    let Some(format) = Format::recognise(&file, name)? else {
        return Ok(Opened { map: Map::open(file)?, format: None, left_out: 0 });
    };
    let index = Index::open(&file, name, Some(format), &Options::default())?;
    let info = format!(r#"{{"made":{{"import":"{format}"}}}}"#);
    let writer = Writer::new(Spool::new(), index.header()?, index.image_size())?;
    let writer = writer.checkpoint_every(NEVER, info.clone());
    let (spool, _, left_out) = index.write(writer, &info)?;
    Ok(Opened { map: Map::open(spool)?, format: Some(format), left_out })
}

/// Time between checkpoints. Those for the sake of memory are always written.
const NEVER: Duration = Duration::MAX;
