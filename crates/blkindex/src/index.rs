//! Reads indexes of blocks, as maps.

use std::ffi::OsStr;

use blkmap::{Commit, Error, Header, MAGIC, Output, ReadAt, Result, Writer};

use crate::shape::Shape;
use crate::target::{Blocks, Take, Target};
use crate::{Format, Options, bmap, caibx, csv, fidx, json, lines, pieces, raw, s3};

/// An index of blocks in a format of another program.
pub struct Index<'a> {
    format: Format,
    shape: Shape,
    blocks: Box<dyn Blocks + 'a>,
}

impl<'a> Index<'a> {
    /// Opens an index and reads what it says about its image. The format is that of `options`, or else shows in the first
    /// bytes or, for [`Format::Raw`], in `name`.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Magic`] if it has no known format. Fails if it cannot be read, is damaged or no map can have its
    /// blocks.
    pub fn open(file: &'a dyn ReadAt, name: &OsStr, options: &Options) -> Result<Self> {
        let format = match options.format {
            Some(format) => format,
            None => Format::recognise(file, name)?.ok_or(Error::Magic)?,
        };
        let (shape, blocks): (_, Box<dyn Blocks + 'a>) = match format {
            Format::Fidx => boxed(fidx::open(file)?),
            Format::Caibx => boxed(caibx::open(file)?),
            Format::Bmap => boxed(bmap::open(file)?),
            Format::S3 => boxed(s3::open(file, options)?),
            Format::Lines => boxed(pieces::open(file, lines::FORM, options)?),
            Format::Csv => boxed(pieces::open(file, csv::FORM, options)?),
            Format::Json => boxed(pieces::open(file, json::FORM, options)?),
            Format::Raw => boxed(raw::open(file, options)?),
        };
        options.check(format, &shape)?;
        Ok(Self { format, shape, blocks })
    }

    /// Returns the format.
    pub fn format(&self) -> Format {
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

impl Format {
    /// Returns the format of an index by its first bytes or, if it has no magic, its name. Returns `None` if neither is
    /// that of an index, and for a map.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn recognise(file: &dyn ReadAt, name: &OsStr) -> Result<Option<Self>> {
        let mut head = vec![0; file.length()?.min(HEAD) as usize];
        file.read_exact_at(&mut head, 0)?;
        Ok(match () {
            () if head.starts_with(&MAGIC) => None,
            () if head.starts_with(&fidx::MAGIC) => Some(Self::Fidx),
            () if head.starts_with(&caibx::MAGIC) => Some(Self::Caibx),
            () if bmap::is_start(&head) => Some(Self::Bmap),
            () if head.starts_with(csv::HEAD) => Some(Self::Csv),
            () if head.starts_with(json::START) => Some(Self::Json),
            () if s3::is_start(&head) => Some(Self::S3),
            () if lines::is_start(&head) => Some(Self::Lines),
            () => Some(Self::Raw).filter(|raw| raw.name_without_suffix(name).is_some()),
        })
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

/// Length of the head in bytes. A text shows in its first line.
const HEAD: u64 = 4096;
