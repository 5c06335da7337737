//! How a format is recognised, read and written.

use std::io::{BufWriter, Write};

use blkmap::{Map, ReadAt, Result};

use crate::shape::{Options, Shape};
use crate::target::Blocks;

/// What the file of a format says about it.
pub(crate) struct Codec {
    pub name: &'static str,
    /// For messages, such as `a .fidx index`.
    pub noun: &'static str,
    /// The end of names of files.
    pub suffix: Option<&'static str>,
    /// Returns whether a file with these first bytes has the format.
    pub is_start: fn(&[u8]) -> bool,
    /// Reads what an index says about its image.
    pub open: for<'a> fn(&'a dyn ReadAt, &Options) -> Result<Opened<'a>>,
    /// Writes a map in the format, if that is done.
    pub write: Option<fn(&Map, &mut Sink<'_>) -> Result<()>>,
}

pub(crate) type Opened<'a> = (Shape, Box<dyn Blocks + 'a>);

/// Where an index is written. It is buffered.
pub(crate) type Sink<'a> = BufWriter<&'a mut dyn Write>;

pub(crate) fn boxed<'a>((shape, blocks): (Shape, impl Blocks + 'a)) -> Opened<'a> {
    (shape, Box::new(blocks))
}
