//! The log of a copy: the map of what was written.

use std::io;

use blkmap::{Output, ReadAt};

use crate::destination::Syncer;

/// The output of a map that is never ahead of its copy: before a commit, what the destination got is brought to where it
/// stays. A copy that is interrupted continues after the last commit.
pub struct Log<O> {
    output: O,
    sync: Syncer,
    /// Number of times that the map was brought to the disk.
    syncs: u32,
    committed: Option<Box<dyn FnOnce() + Send>>,
}

impl<O> Log<O> {
    /// Writes a map to `output`, of what the destination of `sync` gets.
    pub fn new(output: O, sync: Syncer) -> Self {
        Self { output, sync, syncs: 0, committed: None }
    }

    /// Calls a function once, as soon as the map has a commit, after which an interrupted copy continues.
    #[must_use]
    pub fn committed(self, call: impl FnOnce() + Send + 'static) -> Self {
        Self { committed: Some(Box::new(call)), ..self }
    }
}

impl<O: Output> Output for Log<O> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (self.sync)()?;
        self.output.sync()?;
        self.syncs += 1;
        if self.syncs == COMMITTED
            && let Some(call) = self.committed.take()
        {
            call();
        }
        Ok(())
    }

    fn written(&self) -> Option<&dyn ReadAt> {
        self.output.written()
    }
}

/// Number of times that a map was brought to the disk when it has a commit, which is between the first two.
const COMMITTED: u32 = 2;
