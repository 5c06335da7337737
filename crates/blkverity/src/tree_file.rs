//! Writes a tree to a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blkhash::TreeBlocks;

use crate::StoredTree;

/// Writes the blocks of a tree to their places in a file, and the superblock at the end. [`finish`](Self::finish) has
/// to be called.
#[derive(Debug)]
pub struct TreeFile<'a> {
    stored: StoredTree,
    file: &'a File,
    scratch: Option<&'a File>,
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
    /// Creates the writer of a tree to `file`. The rest of the file is left as it is.
    pub fn new(file: &'a File, stored: &StoredTree) -> Self {
        let pending = vec![Pending::default(); stored.layout().levels().len()];
        Self { stored: stored.clone(), file, scratch: None, pending }
    }

    /// Writes the tree to `scratch` first, and copies it at the end. Use this if the data is in the same file as the
    /// tree, and would seem to change while it is read otherwise. `scratch` has to be readable.
    #[must_use]
    pub fn with_scratch(self, scratch: &'a File) -> Self {
        Self { scratch: Some(scratch), ..self }
    }

    /// Returns the tree that is written.
    pub fn stored(&self) -> &StoredTree {
        &self.stored
    }

    /// Writes the blocks that wait, and the superblock. The file is of no use before that.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or the scratch file cannot be read.
    pub fn finish(mut self) -> io::Result<()> {
        let target = self.target();
        self.pending.iter_mut().try_for_each(|pending| pending.write(target))?;
        if let Some(scratch) = self.scratch {
            let layout = self.stored.layout();
            copy(scratch, self.file, layout.start(), layout.end())?;
        }
        let Some((superblock, offset)) = self.stored.superblock() else { return Ok(()) };
        self.file.write_all_at(&superblock.to_bytes(), *offset)?;
        // A superblock alone fills a block, too.
        let filled = offset + superblock.hash_block_size.get().min(PAGE) as u64;
        let metadata = self.file.metadata()?;
        if metadata.is_file() && metadata.len() < filled {
            self.file.set_len(filled)?;
        }
        Ok(())
    }

    fn target(&self) -> &'a File {
        self.scratch.unwrap_or(self.file)
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
        let target = self.target();
        let layout = self.stored.layout();
        if layout.levels().get(level).is_none_or(|all| index + count > *all) {
            return Err(io::Error::other("more data than the layout of the tree has room for"));
        }
        let pending = &mut self.pending[level];
        if pending.bytes.is_empty() {
            pending.offset = layout.offset(level, index);
        }
        for _ in 0..count {
            pending.bytes.extend_from_slice(block);
            if pending.bytes.len() >= MAX_PENDING {
                pending.write(target)?;
            }
        }
        Ok(())
    }
}

/// Copies the bytes between two offsets.
fn copy(from: &File, to: &File, start: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; MAX_PENDING];
    let mut offset = start;
    while offset < end {
        let part = &mut buffer[..(end - offset).min(MAX_PENDING as u64) as usize];
        from.read_exact_at(part, offset)?;
        to.write_all_at(part, offset)?;
        offset += part.len() as u64;
    }
    Ok(())
}

/// Bytes of a level that are written at once.
const MAX_PENDING: usize = 256 << 10;

/// The most bytes that a superblock fills, as in veritysetup.
const PAGE: usize = 4096;
