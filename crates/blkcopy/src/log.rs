//! The log of a copy: the map of what was written.

use std::io;

use blkmap::{Output, ReadAt};

use crate::destination::Syncer;

/// The output of a map that is never ahead of its copy: before a commit, what the destination got is brought to where it
/// stays. A copy that is interrupted goes on behind the last commit.
pub struct Log<O> {
    output: O,
    sync: Syncer,
    /// Number of times that the map was brought to where it stays.
    syncs: u32,
    committed: Box<dyn Fn() + Send>,
}

impl<O> Log<O> {
    /// Writes a map to `output`, of what the destination of `sync` gets. Calls `committed` once, when a copy that is interrupted
    /// can go on.
    pub fn new(output: O, sync: Syncer, committed: impl Fn() + Send + 'static) -> Self {
        Self { output, sync, syncs: 0, committed: Box::new(committed) }
    }
}

impl<O: Output> Output for Log<O> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (self.sync)()?;
        self.output.sync()?;
        self.syncs = self.syncs.saturating_add(1);
        // The first commit is between the first two.
        if self.syncs == 2 {
            (self.committed)();
        }
        Ok(())
    }

    fn written(&self) -> Option<&dyn ReadAt> {
        self.output.written()
    }
}
