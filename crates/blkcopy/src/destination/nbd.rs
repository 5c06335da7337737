//! Copies to exports of NBD servers.

use std::io;
use std::sync::Arc;

use blkimage::{Format, Holes, Image, NbdExport, NbdOptions, OpenOptions};

use super::{Destination, Syncer, Zeroing};
use crate::Error;

/// An export of an NBD server.
pub struct Export {
    export: Arc<NbdExport>,
    uri: String,
}

impl Export {
    /// Connects to the export that `uri` names.
    ///
    /// # Errors
    ///
    /// Fails if there is no such export, or it cannot be written to.
    pub fn open(uri: &str, options: &NbdOptions) -> blkimage::Result<Self> {
        let export = Arc::new(NbdExport::open(uri, options)?);
        Ok(Self { export, uri: uri.to_owned() })
    }

    fn image(&self, holes: Holes) -> blkimage::Result<Image> {
        let options = OpenOptions::new().format(Format::Raw).holes(holes);
        options.open_storage(self.export.storage(), &self.uri)
    }
}

impl Destination for Export {
    fn begin(&mut self, size: Option<u64>, _keeps: bool) -> Result<bool, Error> {
        let found = self.export.size();
        match size {
            Some(needed) if found < needed => Err(Error::Small { size: found, needed }),
            _ => Ok(false),
        }
    }

    fn can_resize(&self) -> bool {
        false
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.export.write_all_at(bytes, offset)
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<bool> {
        // A server may deallocate them, and none says whether it did.
        match how {
            Zeroing::Any => self.export.zero(offset, length),
            Zeroing::Punch => Ok(false),
        }
    }

    fn end(&self, _size: u64) -> io::Result<()> {
        self.export.flush()
    }

    fn syncer(&self) -> io::Result<Syncer> {
        let export = Arc::clone(&self.export);
        Ok(Box::new(move || export.flush()))
    }

    fn current(&self) -> blkimage::Result<Image> {
        self.image(Holes::Trust)
    }

    fn read_back(&self) -> blkimage::Result<Image> {
        // What the server called zero may have changed since, and its word is what is checked.
        self.image(Holes::Ignore)
    }
}
