//! Writes the blocks of a tree to a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blkhash::TreeBlocks;

use crate::Layout;

/// Writes the blocks of a tree where its layout has them. Call [`flush`](Self::flush) at the end.
#[derive(Debug)]
pub struct TreeFile<'a> {
    file: &'a File,
    layout: Layout,
    /// Adjacent blocks of each level that wait to be written.
    pending: Vec<Pending>,
}

#[derive(Clone, Debug, Default)]
struct Pending {
    /// Offset in the file.
    offset: u64,
    bytes: Vec<u8>,
}

impl<'a> TreeFile<'a> {
    /// Creates the writer of a tree to `file`.
    pub fn new(file: &'a File, layout: Layout) -> Self {
        let pending = vec![Pending::default(); layout.levels().len()];
        Self { file, layout, pending }
    }

    /// Writes the blocks that wait.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.pending.iter_mut().try_for_each(|pending| pending.write(self.file))
    }
}

impl Pending {
    fn write(&mut self, file: &File) -> io::Result<()> {
        file.write_all_at(&self.bytes, self.offset)?;
        self.offset += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}

impl TreeBlocks for TreeFile<'_> {
    type Error = io::Error;

    fn take(&mut self, level: usize, index: u64, count: u64, block: &[u8]) -> io::Result<()> {
        let is_inside = self.layout.levels().get(level).is_some_and(|all| index + count <= *all);
        if !is_inside {
            return Err(io::Error::other("more data than the layout of the tree has room for"));
        }
        let pending = &mut self.pending[level];
        if pending.bytes.is_empty() {
            pending.offset = self.layout.offset(level, index);
        }
        for _ in 0..count {
            pending.bytes.extend_from_slice(block);
            if pending.bytes.len() >= MAX_PENDING {
                pending.write(self.file)?;
            }
        }
        Ok(())
    }
}

/// Bytes of a level that are written at once.
const MAX_PENDING: usize = 256 << 10;
