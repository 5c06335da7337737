//! Objects on HTTP and S3 servers.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blkhttp::{Object, StoredChecksum, Url, Validator};

use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::hint::Hint;
use crate::options::OpenOptions;
use crate::storage::ahead::Ahead;
use crate::storage::{self, ReadMethod, ServedObject, Storage};

/// An object on a server.
pub(crate) struct Web {
    object: Object,
    url: Url,
    name: PathBuf,
}

impl Web {
    /// Opens the object that a URL names.
    pub fn open(url: &str, options: &OpenOptions) -> Result<Self> {
        Self::at(parse(url)?, options)
    }

    /// Opens the object at a URL.
    pub fn at(url: Url, options: &OpenOptions) -> Result<Self> {
        let object = Object::open(&url, &options.http).map_err(|error| of_open(&error))?;
        let name = url.to_string().into();
        Ok(Self { object, url, name })
    }

    /// Returns the URL by which the object was opened.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the name for messages, which holds no secret.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Returns whether the server has ranges, so that bytes are read in any order. Otherwise they are read once, from the start
    /// to the end.
    pub fn has_ranges(&self) -> bool {
        self.object.has_ranges()
    }

    /// Returns the first bytes of the object, at most `limit`.
    pub fn head(&self, limit: usize) -> Result<Vec<u8>> {
        let mut head = vec![0; limit];
        let mut length = 0;
        while length < limit {
            let read = self.object.read_at(&mut head[length..], length as u64);
            match read.map_err(|error| self.read_error(error, length as u64))? {
                0 => break,
                count => length += count,
            }
        }
        head.truncate(length);
        Ok(head)
    }

    /// Returns the error for what cannot be done, because the server has no ranges.
    pub fn without_ranges(&self, need: &str) -> Error {
        let reason = format!("the server has no ranges, which {need} needs");
        let error = Error::new(ErrorKind::Unsupported, &*self.name, reason);
        error.with_hint(Hint::Download)
    }

    /// Returns the checksums that the server stores with the object.
    pub fn checksums(&self) -> Result<Vec<StoredChecksum>> {
        self.object.checksums().map_err(|error| of_open(&error))
    }

    fn read_error(&self, error: io::Error, offset: u64) -> Error {
        storage::read_error(&self.name, error, Some(offset))
    }
}

impl Storage for Web {
    /// Returns the size, or the largest number if the server does not state it.
    fn size(&self) -> u64 {
        self.object.size().unwrap_or(u64::MAX)
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.object.read_at(buf, offset)
    }

    fn reads_forward(&self) -> bool {
        !self.object.has_ranges()
    }

    fn changed(&self) -> Option<String> {
        self.object.changed()
    }

    fn stored(&self) -> Option<u64> {
        self.object.size()
    }

    fn read_method(&self) -> ReadMethod {
        ReadMethod::Http
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.object.will_need(offset, length);
    }

    fn read_ahead(&self) -> u64 {
        self.object.read_ahead()
    }

    fn object(&self) -> Option<ServedObject> {
        let taken = self.object.statistics();
        Some(ServedObject {
            url: self.object.url().to_string(),
            validator: match self.object.validator() {
                Validator::ETag(tag) => format!("ETag {}", excerpt(tag.as_bytes())),
                Validator::LastModified(time) => {
                    format!("Last-Modified {}", excerpt(time.as_bytes()))
                }
                _ => "length".to_owned(),
            },
            requests: taken.requests,
            retries: taken.retries,
            bytes: taken.bytes,
        })
    }
}

/// The bytes of an object from its start to its end, each read once.
pub(crate) struct Forward {
    object: Arc<Web>,
    offset: u64,
    ahead: Ahead,
}

impl Forward {
    pub fn new(object: Arc<Web>) -> Self {
        Self { object, offset: 0, ahead: Ahead::default() }
    }
}

impl Read for Forward {
    /// Fails if the object changed, at the end at the latest.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        if self.object.has_ranges() {
            self.ahead.announce(&*self.object, self.offset, self.object.size());
        }
        let failed = |error| io::Error::other(self.object.read_error(error, self.offset));
        let count = self.object.object.read_at(buf, self.offset).map_err(failed)?;
        let has_size = self.object.object.size().is_none_or(|size| self.offset == size);
        match self.object.changed() {
            Some(reason) if count == 0 => {
                let error = Error::new(ErrorKind::Changed, self.object.name(), reason);
                return Err(io::Error::other(error));
            }
            None if count == 0 && !has_size => {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            _ => {}
        }
        self.offset += count as u64;
        Ok(count)
    }
}

/// Parses a URL.
pub(crate) fn parse(url: &str) -> Result<Url> {
    url.parse()
        .map_err(|error: blkhttp::Error| Error::new(ErrorKind::Argument, url, error.reason()))
}

/// Returns the error of opening an object.
fn of_open(error: &blkhttp::Error) -> Error {
    let cause = match error.kind() {
        blkhttp::ErrorKind::NotFound => io::ErrorKind::NotFound,
        blkhttp::ErrorKind::Denied => io::ErrorKind::PermissionDenied,
        _ => return Error::new(kind_of(error), error.url(), error.reason()),
    };
    let cause = io::Error::new(cause, error.reason());
    Error::new(ErrorKind::Open, error.url(), "cannot open").because(cause)
}

/// Returns the error of the file `name` for the error of reading its object. `None` for other errors.
pub(crate) fn of_read(name: &Path, error: &io::Error) -> Option<Error> {
    let inner = error.get_ref()?.downcast_ref::<blkhttp::Error>()?;
    let found = Error::new(kind_of(inner), name, inner.reason());
    Some(match Hint::of_io(error) {
        Some(hint) => found.with_hint(hint),
        None => found,
    })
}

fn kind_of(error: &blkhttp::Error) -> ErrorKind {
    match error.kind() {
        blkhttp::ErrorKind::Changed => ErrorKind::Changed,
        blkhttp::ErrorKind::Url => ErrorKind::Argument,
        blkhttp::ErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Connect,
    }
}
