//! Reads indexes of blocks, as maps.

use std::ffi::OsStr;

use blkmap::{Commit, Error, Header, MAGIC, Output, ReadAt, Result, Writer};

use crate::format::Format;
use crate::shape::{Options, Shape};
use crate::target::{Blocks, Take, Target};

/// An index of blocks in a format of another program.
pub struct Index<'a> {
    format: Format,
    shape: Shape,
    blocks: Box<dyn Blocks + 'a>,
}

impl<'a> Index<'a> {
    /// Opens an index and reads what it says about its image. The format is the one that is given, or else shows in the first
    /// bytes or, for [`Format::Raw`], in `name`.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Magic`] if it has no known format. Fails if it cannot be read, is damaged or no map can have its
    /// blocks.
    pub fn open(
        file: &'a dyn ReadAt,
        name: &OsStr,
        format: Option<Format>,
        options: &Options,
    ) -> Result<Self> {
        let format = match format {
            Some(format) => format,
            None => Format::recognise(file, name)?.ok_or(Error::Magic)?,
        };
        let (shape, blocks) = (format.codec().open)(file, options)?;
        options.check(format.noun(), &shape)?;
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
    /// an index's, and for a map.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn recognise(file: &dyn ReadAt, name: &OsStr) -> Result<Option<Self>> {
        let mut head = vec![0; file.length()?.min(HEAD) as usize];
        file.read_exact_at(&mut head, 0)?;
        if head.starts_with(&MAGIC) {
            return Ok(None);
        }
        let found = Self::ALL.iter().copied().find(|it| (it.codec().is_start)(&head));
        // Only a name shows that digests alone are an index.
        let raw = || Some(Self::Raw).filter(|raw| raw.name_without_suffix(name).is_some());
        Ok(found.or_else(raw))
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

/// Length of the head in bytes. A text shows in its first line.
const HEAD: u64 = 4096;
