//! A file system of any kind.

use std::fmt;
use std::sync::Arc;

use blkimage::Source;

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::reader::Reader;
use crate::visitor::{ObjectId, Visitor, Wanted};
use crate::volume::Volume;
use crate::{exfat, ext, fat, ntfs, xfs};

/// A file system whose superblock, or what it has instead, was read.
pub struct FileSystem {
    reader: Box<dyn Reader>,
}

/// Opens a file system if `volume` has one of this reader's kinds.
type Open = fn(&Volume) -> Result<Option<Box<dyn Reader>>>;

const READERS: &[Open] = &[ext::open, xfs::open, ntfs::open, exfat::open, fat::open];

impl FileSystem {
    /// Recognises the file system that begins at the first byte of `source`. Returns `None` if there is none of a known kind.
    ///
    /// # Errors
    ///
    /// Fails if the image cannot be read, or if the file system is damaged in a way or has a feature that leaves nothing to read.
    pub fn open(source: Arc<dyn Source>) -> Result<Option<Self>> {
        let volume = Volume::new(source);
        let mut unreadable = None;
        if is_swap(&volume) {
            return Ok(None);
        }
        for open in READERS {
            match open(&volume) {
                Ok(Some(reader)) => return Ok(Some(Self { reader })),
                Ok(None) => {}
                // A place that cannot be read may belong to another kind.
                Err(Error::Image(error)) if error.is_of_bytes() => {
                    unreadable.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        unreadable.map_or(Ok(None), |error| Err(Error::Image(error)))
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

    /// Returns whether the state that is read is the one that the next mount shows. It is not if there is a journal with changes
    /// that are not taken into account, or if the volume was not unmounted and the system that mounts it may repair it.
    pub fn is_settled(&self) -> bool {
        self.reader.is_settled()
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

/// Returns whether swap space is where a file system was. `mkswap` leaves the first 1024 bytes.
fn is_swap(volume: &Volume) -> bool {
    SWAP_PAGES.iter().any(|page| {
        let signature = volume.read(page - SWAP.len() as u64, SWAP.len());
        signature.is_ok_and(|bytes| bytes == SWAP)
    })
}

/// Signature at the end of the first page of swap space.
const SWAP: &[u8] = b"SWAPSPACE2";

/// Sizes of pages.
const SWAP_PAGES: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileSystem({})", self.kind())
    }
}
