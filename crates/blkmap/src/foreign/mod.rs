//! Reads indexes of blocks that other programs write, as maps.
//!
//! [`Index::open`] recognises an index and reads what it says about the image. [`Index::write`] passes its digests to a
//! [`Writer`]. [`open`] makes a map in a temporary file, so that an index is read wherever a map is.
//!
//! An index may come from anybody. It is read in order and not kept, and nothing is allocated for a number in it.

mod bmap;
mod bytes;
pub(crate) mod caibx;
mod csv;
mod digest_text;
pub(crate) mod fidx;
mod format;
mod json;
mod lines;
mod open;
mod pieces;
mod raw;
mod recognise;
mod s3;
mod shape;
mod spool;
mod target;

pub(crate) use self::bmap::BMAP_DIGESTS;
pub use self::format::IndexFormat;
pub(crate) use self::format::one_of;
pub use self::open::{Opened, open};
pub use self::shape::IndexOptions;

use std::ffi::OsStr;

use self::shape::Shape;
use self::target::{Blocks, Take, Target};
use crate::{Commit, Error, Header, Output, ReadAt, Result, Writer};

/// An index of blocks in a format of another program.
pub struct Index<'a> {
    format: IndexFormat,
    shape: Shape,
    blocks: Box<dyn Blocks + 'a>,
}

impl<'a> Index<'a> {
    /// Opens an index and reads what it says about its image. The format is that of `options`, or else shows in the first
    /// bytes or, for [`IndexFormat::Raw`], in `name`.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Magic`] if it has no known format. Fails if it cannot be read, is damaged or no map can have its
    /// blocks.
    pub fn open(file: &'a dyn ReadAt, name: &OsStr, options: &IndexOptions) -> Result<Self> {
        let format = match options.format {
            Some(format) => format,
            None => IndexFormat::recognise(file, name)?.ok_or(Error::Magic)?,
        };
        let (shape, blocks): (_, Box<dyn Blocks + 'a>) = match format {
            IndexFormat::Fidx => boxed(fidx::open(file)?),
            IndexFormat::Caibx => boxed(caibx::open(file)?),
            IndexFormat::Bmap => boxed(bmap::open(file)?),
            IndexFormat::S3 => boxed(s3::open(file, options)?),
            IndexFormat::Lines => boxed(pieces::open(file, lines::FORM, options)?),
            IndexFormat::Csv => boxed(pieces::open(file, csv::FORM, options)?),
            IndexFormat::Json => boxed(pieces::open(file, json::FORM, options)?),
            IndexFormat::Raw => boxed(raw::open(file, options)?),
        };
        options.check(format, &shape)?;
        Ok(Self { format, shape, blocks })
    }

    /// Returns the format.
    pub fn format(&self) -> IndexFormat {
        self.format
    }

    /// Returns the size of the image in bytes.
    pub fn image_size(&self) -> u64 {
        self.shape.image_size
    }

    /// Returns the header of a new map of the blocks, with random bytes for its file.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random bytes.
    pub fn header(&self) -> Result<Header> {
        let Shape { algorithm, block_size, salt, .. } = self.shape;
        Ok(Header::new(algorithm, block_size, salt)?)
    }

    /// Writes the digests of all blocks to a map that has the parameters of [`header`](Self::header) and
    /// [`image_size`](Self::image_size), and ends the map with `info`, a JSON object.
    ///
    /// Returns the number of blocks that were left out: a page of a map is known as a whole or not at all, so blocks that
    /// share a page with an unknown one become unknown, too.
    ///
    /// # Errors
    ///
    /// Fails if the index cannot be read or is damaged, or the map cannot be written. The map is not finished then.
    pub fn write<O: Output>(
        mut self,
        mut writer: Writer<O>,
        info: &str,
    ) -> Result<(O, Commit, u64)> {
        let header = *writer.header();
        let mut target = Target::new(&mut writer as &mut dyn Take, header, self.shape.image_size);
        self.blocks.write(&mut target)?;
        let left_out = target.finish()?;
        let expected = self.shape.content_id;
        let (output, commit) = writer.finish_if(info, |commit| {
            if expected.is_some() && commit.content_id(&header) != expected {
                let reason = "has another content id than its digests";
                return Err(Error::Content(reason.into()));
            }
            Ok(())
        })?;
        Ok((output, commit, left_out))
    }
}

impl std::fmt::Debug for Index<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { format, shape, .. } = self;
        f.debug_struct("Index")
            .field("format", format)
            .field("shape", shape)
            .finish_non_exhaustive()
    }
}

fn boxed<'a>(opened: (Shape, impl Blocks + 'a)) -> (Shape, Box<dyn Blocks + 'a>) {
    (opened.0, Box::new(opened.1))
}
