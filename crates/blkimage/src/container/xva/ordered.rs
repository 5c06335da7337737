//! A disk in a stream, whose blocks come in order.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::blocks::{Block, Blocks, State};
use super::machine::Disk;
use super::plain::mismatch;
use crate::container::forward::{Forward, Stream};
use crate::container::kind::whole;
use crate::storage::HostFile;

/// The content of a disk, from start to end.
pub(super) struct InOrder {
    forward: Arc<Forward>,
    file: HostFile,
    disk: Disk,
    state: State,
    /// The last block that was read, and its bytes.
    block: Option<(Block, Vec<u8>)>,
    position: u64,
    is_over: bool,
}

impl InOrder {
    /// Creates a reader of a disk in the archive that `stream` returns from its start.
    pub fn new(stream: Stream, name: &Path, disk: &Disk) -> Self {
        let forward = Forward::new(stream, 0);
        let file = whole(forward.clone(), name);
        let disk = disk.clone();
        Self {
            forward,
            file,
            disk,
            state: State::default(),
            block: None,
            position: 0,
            is_over: false,
        }
    }

    /// Reads the next block. At the end of the archive, there is none.
    fn advance(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut blocks = Blocks::new(&self.disk, std::mem::take(&mut self.state));
        let file = &self.file;
        let next = blocks.next(file, |block| {
            bytes.resize(block.length as usize, 0);
            file.read_exact_at(&mut bytes, block.place)
        });
        let next =
            next.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.reason()))?;
        let (place, length) = blocks.sum();
        self.state = blocks.state();
        self.block = None;
        match next {
            None => {
                self.forward.finish()?;
                self.is_over = true;
            }
            Some(block) => {
                let mut text = vec![0; length as usize];
                let read = file.read_exact_at(&mut text, place);
                read.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.reason()))?;
                if !block.sum.is_of(&bytes, &text) {
                    return Err(mismatch(&self.disk, block.offset));
                }
                self.block = Some((block, bytes));
            }
        }
        Ok(())
    }
}

impl Read for InOrder {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if self.is_over {
                return Ok(0);
            }
            if let Some((block, bytes)) = &self.block {
                let gap = block.offset.saturating_sub(self.position);
                if gap > 0 {
                    let count = gap.min(buf.len() as u64) as usize;
                    buf[..count].fill(0);
                    self.position += count as u64;
                    return Ok(count);
                }
                let rest = &bytes[(self.position - block.offset) as usize..];
                if !rest.is_empty() {
                    let count = rest.len().min(buf.len());
                    buf[..count].copy_from_slice(&rest[..count]);
                    self.position += count as u64;
                    return Ok(count);
                }
            }
            self.advance()?;
        }
    }
}
