//! The content of a member of which the archive stores some runs of bytes, and leaves out zeros.

use std::io;
use std::sync::Arc;

use crate::storage::{ReadMethod, Storage};
use crate::{Extent, ExtentKind};

/// Where the bytes of a member are stored.
pub(super) trait Map: Send + Sync {
    /// Returns the size of the member.
    fn size(&self) -> u64;

    /// Returns the length of the run at `offset`, at most `limit` and up to the end of the member, and where it begins in the
    /// storage. `None` for zeros.
    fn run(&self, offset: u64, limit: u64) -> (u64, Option<u64>);
}

/// A member as a storage.
pub(super) struct Runs<M> {
    pub storage: Arc<dyn Storage>,
    pub map: M,
}

impl<M: Map> Storage for Runs<M> {
    fn size(&self) -> u64 {
        self.map.size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.size() {
            return Ok(0);
        }
        let (length, place) = self.map.run(offset, buf.len() as u64);
        let buf = &mut buf[..length as usize];
        match place {
            Some(place) => self.storage.read_at_most(buf, place),
            None => {
                buf.fill(0);
                Ok(buf.len())
            }
        }
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        let (length, place) = self.map.run(offset, limit);
        let Some(place) = place else {
            return Ok(Extent { offset, length, kind: ExtentKind::Zero });
        };
        let stored = self.storage.extent(place, length)?;
        Ok(Extent { offset, length: stored.length.min(length), ..stored })
    }

    fn verify(&self) -> io::Result<()> {
        self.storage.verify()
    }

    fn reads_forward(&self) -> bool {
        self.storage.reads_forward()
    }

    fn changed(&self) -> Option<String> {
        self.storage.changed()
    }

    fn queue_depth(&self) -> usize {
        self.storage.queue_depth()
    }

    fn will_need(&self, mut offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size());
        while offset < end {
            let (length, place) = self.map.run(offset, end - offset);
            if let Some(place) = place {
                self.storage.will_need(place, length);
            }
            offset += length;
        }
    }

    fn read_ahead(&self) -> u64 {
        self.storage.read_ahead()
    }

    fn stored(&self) -> Option<u64> {
        self.storage.stored()
    }

    fn read_method(&self) -> ReadMethod {
        self.storage.read_method()
    }
}
