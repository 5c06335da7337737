//! A file with holes, of which an archive stores the other parts.

use std::io;
use std::sync::Arc;

use crate::storage::{ReadMethod, Storage};
use crate::tar::Sparse;
use crate::{Extent, ExtentKind};

/// The content of a file with holes.
pub(super) struct WithHoles {
    pub stored: Arc<dyn Storage>,
    pub map: Arc<Sparse>,
}

impl WithHoles {
    /// Returns the extent at `offset`, and where it is stored.
    fn at(&self, offset: u64, limit: u64) -> (Extent, u64) {
        let parts = &self.map.parts;
        let index = parts.partition_point(|(part, _)| part.end <= offset);
        let limit = limit.min(self.map.size.saturating_sub(offset));
        let (end, kind, place) = match parts.get(index) {
            Some((part, stored)) if part.start <= offset => {
                (part.end, ExtentKind::Data, stored + (offset - part.start))
            }
            Some((part, _)) => (part.start, ExtentKind::Zero, 0),
            None => (self.map.size, ExtentKind::Zero, 0),
        };
        let length = limit.min(end.saturating_sub(offset));
        (Extent { offset, length, kind }, place)
    }
}

impl Storage for WithHoles {
    fn size(&self) -> u64 {
        self.map.size
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (extent, place) = self.at(offset, buf.len() as u64);
        let buf = &mut buf[..extent.length as usize];
        match extent.kind {
            ExtentKind::Zero => {
                buf.fill(0);
                Ok(buf.len())
            }
            ExtentKind::Data => self.stored.read_at_most(buf, place),
        }
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        let (extent, place) = self.at(offset, limit);
        match extent.kind {
            ExtentKind::Zero => Ok(extent),
            ExtentKind::Data => {
                let stored = self.stored.extent(place, extent.length)?;
                Ok(Extent { offset, length: stored.length.min(extent.length), ..stored })
            }
        }
    }

    fn verify(&self) -> io::Result<()> {
        self.stored.verify()
    }

    fn reads_forward(&self) -> bool {
        self.stored.reads_forward()
    }

    fn changed(&self) -> Option<String> {
        self.stored.changed()
    }

    fn stored(&self) -> Option<u64> {
        self.stored.stored()
    }

    fn read_method(&self) -> ReadMethod {
        self.stored.read_method()
    }
}
