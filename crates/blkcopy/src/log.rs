//! The log of a copy: the map of what was written.

use std::io;

use blkmap::{Output, ReadAt};

use crate::destination::Syncer;

/// The output of a map that is never ahead of its copy: before a commit, what the destination got is brought to where it
/// stays. A copy that is interrupted continues after the last commit.
pub struct Log<O> {
    output: O,
    sync: Syncer,
}

impl<O> Log<O> {
    /// Writes a map to `output`, of what the destination of `sync` gets.
    pub fn new(output: O, sync: Syncer) -> Self {
        Self { output, sync }
    }
}

impl<O: Output> Output for Log<O> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (self.sync)()?;
        self.output.sync()
    }

    fn written(&self) -> Option<&dyn ReadAt> {
        self.output.written()
    }
}
