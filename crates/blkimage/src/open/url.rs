//! Opens what is at the URL of an HTTP or S3 server.
//!
//! An object is an image like a file: its name and its content say what it is, and it may refer to others beneath its folder on
//! the same server. A server without ranges, or compressed content of unknown size, gives a [`Stream`] instead, so that no byte
//! is sent twice.

use std::io::{self, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use blkhttp::StoredChecksum;

use super::finish;
use crate::chain::Chain as Images;
use crate::check::{Summary, Visitor};
#[cfg(feature = "compressed")]
use crate::compressed::{self, Decompressed};
use crate::compression::Compression;
use crate::container;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::options::OpenOptions;
use crate::probe::{Format, probe};
use crate::recognise::{self, check_raw};
use crate::references::Folder;
use crate::storage;
use crate::storage::web::{Forward, Web};

/// What is at a URL.
pub enum AtUrl {
    /// An image.
    Image(Image),
    /// Raw content that is read once, from its start to its end.
    Stream(Stream),
}

/// The raw content of an object that is read once, from its start to its end.
///
/// Reading fails if the server does, if the object is damaged or has other bytes than a disk, and at the end if it changed. All
/// that was read before is invalid then. The [`io::Error`] contains an [`Error`](crate::Error).
pub struct Stream {
    content: Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>,
    compression: Option<Compression>,
}

impl Stream {
    /// Returns the compression that is undone, if any.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.content.read(buf)
    }
}

impl OpenOptions {
    /// Opens what is at a URL of an HTTP or S3 server, or the disk of an appliance or OCI archive that is there: its name
    /// follows the path of the URL after a colon, with `%` escapes.
    ///
    /// The format is detected as for a file. An image may refer to other objects in the folder of the URL, unless
    /// [`Follow`](crate::Follow) says otherwise.
    ///
    /// Raw content is a [`Stream`] if the server has no ranges, or if it is compressed and does not state its size, so that
    /// [`open_uri`](Self::open_uri) would get it twice.
    ///
    /// # Errors
    ///
    /// Fails if the URL is invalid, if the server cannot be reached, has no such object or does not allow reading it, if the
    /// server lacks the ranges that a format needs, or as [`open`](Self::open) does.
    pub fn open_url(&self, url: &str) -> Result<AtUrl> {
        if let Some(image) = container::open_disk_at(self, url)? {
            return Ok(AtUrl::Image(image));
        }
        let object = Arc::new(Web::open(url, self)?);
        match self.stream(&object)? {
            Some(stream) => Ok(AtUrl::Stream(stream)),
            None => self.open_object(object).map(AtUrl::Image),
        }
    }

    /// Returns the checksums of its bytes that the server stores with an object, those that detect the most first. Empty if it
    /// stores none, or if the object is not read by ranges.
    ///
    /// # Errors
    ///
    /// Fails if the URL is invalid, or if the server cannot be reached, has no such object or does not allow reading it.
    pub fn stored_checksums(&self, url: &str) -> Result<Vec<StoredChecksum>> {
        let mut checksums = Web::open(url, self)?.checksums()?;
        checksums.sort_by_key(|checksum| std::cmp::Reverse(checksum.algorithm.strength()));
        Ok(checksums)
    }

    /// Opens an object as an image.
    pub(super) fn open_image_at(&self, url: &str) -> Result<Image> {
        if let Some(image) = container::open_disk_at(self, url)? {
            return Ok(image);
        }
        self.open_object(Arc::new(Web::open(url, self)?))
    }

    fn open_object(&self, object: Arc<Web>) -> Result<Image> {
        let name = object.name().to_owned();
        if !object.has_ranges() {
            let head = object.head(recognise::HEAD_SIZE)?;
            let compression = compression_of(self, &object, &head);
            let format = self.format.or_else(|| probe(&head));
            let need = match (compression, format) {
                (Some(compression), _) => format!("{compression} content that is not read at once"),
                (None, Some(format)) if format != Format::Raw => format!("a {format} image"),
                _ => "what is not read at once".to_owned(),
            };
            return Err(object.without_ranges(&need));
        }
        #[cfg(feature = "compressed")]
        if let Some(compression) = compressed::of_file(self, &name, &*object) {
            return self.open_compressed(compression, object, &name);
        }
        let mut chain = Images::new(self);
        let folder = Folder::Url(object.url().clone());
        let file = chain.object(object, &name)?;
        finish(chain, file, folder, 0)
    }

    /// Returns the raw content of an object that is not read twice. `None` if it is no raw content, or is read in parts.
    fn stream(&self, object: &Arc<Web>) -> Result<Option<Stream>> {
        let is_raw = self.format.is_none_or(|format| format == Format::Raw);
        if !is_raw || self.snapshot.is_some() {
            return Ok(None);
        }
        let head = object.head(recognise::HEAD_SIZE)?;
        let compression = compression_of(self, object, &head);
        let mut content: Box<dyn Read + Send> = match compression {
            None if object.has_ranges() => return Ok(None),
            None => Box::new(Forward::new(object.clone())),
            #[cfg(not(feature = "compressed"))]
            Some(_) => return Ok(None),
            #[cfg(feature = "compressed")]
            Some(compression) => match self.decompressed(object, compression)? {
                None => return Ok(None),
                Some(content) => Box::new(content),
            },
        };
        let mut head = Vec::new();
        let read = (&mut content).take(recognise::HEAD_SIZE as u64).read_to_end(&mut head);
        read.map_err(|error| of_stream(object.name(), error))?;
        if self.format.is_none() {
            match probe(&head) {
                // An image that is compressed is read in parts.
                Some(_) if object.has_ranges() => return Ok(None),
                Some(format) => return Err(object.without_ranges(&format!("a {format} image"))),
                None => check_raw(&head, object.name(), compression)?,
            }
        }
        Ok(Some(Stream { content: Cursor::new(head).chain(content), compression }))
    }

    /// Returns the content of a compressed object that does not state its size, or whose server has no ranges.
    #[cfg(feature = "compressed")]
    fn decompressed(
        &self,
        object: &Arc<Web>,
        compression: Compression,
    ) -> Result<Option<Decompressed<'static>>> {
        let name = object.name();
        if object.has_ranges() && compressed::states_size(self, compression, &**object, name)? {
            return Ok(None);
        }
        let content = Decompressed::new(compression, Forward::new(object.clone()), self, name);
        content.map(Some).map_err(|error| of_stream(name, error))
    }

    /// Checks the structure of the image at a URL.
    pub(super) fn check_object(
        &self,
        url: &str,
        visitor: &mut dyn Visitor,
    ) -> Result<Option<Summary>> {
        let object = Web::open(url, self)?;
        if !object.has_ranges() {
            return Err(object.without_ranges("a check"));
        }
        let name = object.name().to_owned();
        self.check_file(&Images::new(self).host_file(Box::new(object), &name), visitor)
    }
}

/// Returns the compression of an object that begins with `head`, as for a file.
#[cfg(feature = "compressed")]
fn compression_of(options: &OpenOptions, object: &Web, head: &[u8]) -> Option<Compression> {
    compressed::of_head(options, object.name(), head)
}

#[cfg(not(feature = "compressed"))]
fn compression_of(_: &OpenOptions, _: &Web, _: &[u8]) -> Option<Compression> {
    None
}

/// Returns the error of a stream, which contains one.
fn of_stream(name: &Path, error: io::Error) -> Error {
    match error.downcast() {
        Ok(error) => error,
        Err(error) => storage::read_error(name, error, None),
    }
}
