//! A file system of any kind.

use std::fmt;
use std::sync::Arc;

use blkimage::Source;

use crate::error::Result;
use crate::kind::Kind;
use crate::visitor::{ObjectId, Visitor, Wanted};
use crate::volume::Volume;

/// A file system whose superblock, or what it has instead, was read.
pub struct FileSystem {
    reader: Box<dyn Reader>,
}

/// A reader of one kind of file systems.
pub(crate) trait Reader: Send + Sync {
    /// Returns the kind.
    fn kind(&self) -> Kind;

    /// Returns the number of bytes that the file system covers, from offset 0 on.
    fn size(&self) -> u64;

    /// Returns the label as stored, if it has one.
    fn label(&self) -> Option<Vec<u8>>;

    /// Returns the UUID or serial number as `blkid` prints it, if it has one.
    fn uuid(&self) -> Option<String>;

    /// Returns what a user should know of the state, such as a journal that was not replayed: one sentence each, without
    /// a full stop.
    fn remarks(&self) -> Vec<String>;

    /// Returns the number of the top directory.
    fn root(&self) -> ObjectId;

    /// Reports to `visitor` what is wanted.
    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()>;
}

/// Opens a file system if `volume` has one of this reader's kinds.
type Open = fn(&Volume) -> Result<Option<Box<dyn Reader>>>;

const READERS: &[Open] = &[];

impl FileSystem {
    /// Recognises the file system that begins at the first byte of `source`. Returns `None` if there is none of a known kind.
    ///
    /// # Errors
    ///
    /// Fails if the image cannot be read, or if the file system is damaged in a way or has a feature that leaves nothing to read.
    pub fn open(source: Arc<dyn Source>) -> Result<Option<Self>> {
        let volume = Volume::new(source);
        for open in READERS {
            if let Some(reader) = open(&volume)? {
                return Ok(Some(Self { reader }));
            }
        }
        Ok(None)
    }

    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        self.reader.kind()
    }

    /// Returns the number of bytes that the file system covers, from its beginning on.
    pub fn size(&self) -> u64 {
        self.reader.size()
    }

    /// Returns the label as stored, if it has one.
    pub fn label(&self) -> Option<Vec<u8>> {
        self.reader.label()
    }

    /// Returns the UUID or serial number as `blkid` prints it, if it has one.
    pub fn uuid(&self) -> Option<String> {
        self.reader.uuid()
    }

    /// Returns what to know of its state, such as a journal that was not replayed.
    pub fn remarks(&self) -> Vec<String> {
        self.reader.remarks()
    }

    /// Returns the number of the top directory.
    pub fn root(&self) -> ObjectId {
        self.reader.root()
    }

    /// Reads the metadata, and reports to `visitor` what is wanted.
    ///
    /// # Errors
    ///
    /// Fails if the visitor stops it. Anything else is reported to the visitor as a [`Problem`](crate::Problem).
    pub fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
        self.reader.walk(wanted, visitor)
    }
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileSystem({})", self.kind())
    }
}
