//! Collects the blocks of an image in any order, for its map.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use blkhash::engine::Batch;
use blkhash::{BlockDigests, Digest, Leaf, Run, Sink};

use crate::{Commit, Error, Header, Output, Result, Writer};

/// Collects the digests of the blocks of an image, which come in any order, from any thread and also more than once. The
/// digests wait in a file without a name.
pub struct Collector {
    header: Header,
    leaf: Leaf,
    image_size: u64,
    file: File,
    state: Mutex<State>,
}

struct State {
    /// A bit for each block that is known.
    known: Vec<u64>,
    /// A bit for each block of zeros.
    zeros: Vec<u64>,
    /// Number of blocks that are not known.
    left: u64,
    /// Number of a block that came with two digests.
    changed: Option<u64>,
    padded_last: Option<Digest>,
}

impl Collector {
    /// Begins the map of an image of `image_size` bytes.
    ///
    /// # Errors
    ///
    /// Fails if no temporary file can be created, or the image is larger than 2^34 blocks.
    pub fn new(header: Header, image_size: u64) -> Result<Self> {
        let blocks = image_size.div_ceil(header.block_size.into());
        if blocks > MAX_BLOCKS {
            return Err(Error::Unsupported(format!("has {blocks} blocks, more than 2^34")));
        }
        let words = blocks.div_ceil(64) as usize;
        let state = State {
            known: vec![0; words],
            zeros: vec![0; words],
            left: blocks,
            changed: None,
            padded_last: None,
        };
        let file = tempfile::tempfile()?;
        Ok(Self { header, leaf: header.leaf(), image_size, file, state: Mutex::new(state) })
    }

    /// Returns the parameters.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the number of blocks that did not come yet.
    pub fn left(&self) -> u64 {
        self.lock().left
    }

    /// Adds whole blocks of content, which begin at `offset`.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Mismatch`] unless the content consists of blocks of the image, of which only the last one may be
    /// short. Fails if the temporary file cannot be written.
    pub fn add(&self, offset: u64, content: &[u8]) -> Result<()> {
        let mut block = self.first_block(offset, content.len() as u64)?;
        let mut digests = BlockDigests::default();
        let mut batch = Batch::new(&self.leaf, &mut digests);
        batch.update(content);
        batch.finish();
        let short = content.len() % self.header.block_size.get();
        let padded = (short > 0).then(|| {
            let mut padded = content[content.len() - short..].to_vec();
            padded.resize(self.header.block_size.get(), 0);
            self.leaf.hash(&padded)
        });
        let mut state = self.lock();
        for run in digests.runs() {
            let count = match run {
                Run::Zeros { count } => {
                    self.add_zero_blocks(&mut state, block, count)?;
                    count
                }
                Run::Digests { count, digests } => {
                    self.add_digests(&mut state, block, digests)?;
                    count
                }
            };
            block += count;
        }
        state.padded_last = padded.or(state.padded_last);
        Ok(())
    }

    /// Adds blocks of zeros, like [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// Fails like [`add`](Self::add).
    pub fn add_zeros(&self, offset: u64, length: u64) -> Result<()> {
        let first = self.first_block(offset, length)?;
        let block_size = u64::from(self.header.block_size);
        self.add_zero_blocks(&mut self.lock(), first, length / block_size)?;
        match length % block_size {
            0 => Ok(()),
            short => self.add(offset + (length - short), &vec![0; short as usize]),
        }
    }

    /// Writes the map, and ends it with `info`, a JSON object.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Incomplete`] if a block did not come, and with [`Error::Content`] if one changed. Fails if the
    /// temporary file cannot be read, or the map cannot be written.
    pub fn write<O: Output>(&self, mut writer: Writer<O>, info: &str) -> Result<(O, Commit)> {
        let state = self.lock();
        let blocks = self.image_size.div_ceil(self.header.block_size.into());
        if let Some(block) = state.changed {
            return Err(Error::Content(format!("block {block} came with two contents")));
        }
        if state.left > 0 {
            return Err(Error::Incomplete { known: blocks - state.left, blocks });
        }
        writer.set_padded_last(state.padded_last);
        let size = self.leaf.digest_size();
        let mut buffer = vec![0; PART as usize * size];
        let mut block = 0;
        while block < blocks {
            let end = blocks.min(block + PART);
            let buffer = &mut buffer[..(end - block) as usize * size];
            // Zero blocks at the end have no bytes in the file.
            read_up_to(&self.file, buffer, block * size as u64)?;
            let mut digests = BlockDigests::default();
            for (block, digest) in (block..end).zip(buffer.chunks_exact(size)) {
                match has(&state.zeros, block) {
                    true => digests.push_zero_blocks(1, self.header.block_size.get()),
                    false => digests.extend(digest, size, self.header.block_size.into()),
                }
            }
            writer.take(&digests).map_err(|error| match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(error) => Error::Content(error.to_string()),
            })?;
            block = end;
        }
        writer.finish(info)
    }

    /// Returns the number of the first block.
    fn first_block(&self, offset: u64, length: u64) -> Result<u64> {
        let block_size = u64::from(self.header.block_size);
        let end = offset.checked_add(length).filter(|end| *end <= self.image_size);
        let is_whole = |at: u64| at.is_multiple_of(block_size);
        if !end.is_some_and(|end| is_whole(offset) && (is_whole(end) || end == self.image_size)) {
            let reason = format!("{length} bytes at {offset} are not whole blocks of the image");
            return Err(Error::Mismatch(reason));
        }
        Ok(offset / block_size)
    }

    fn add_digests(&self, state: &mut State, first: u64, digests: &[u8]) -> Result<()> {
        let size = self.leaf.digest_size();
        let count = (digests.len() / size) as u64;
        if (first..first + count).any(|block| has(&state.known, block)) {
            let mut before = vec![0; digests.len()];
            read_up_to(&self.file, &mut before, first * size as u64)?;
            let pairs = before.chunks_exact(size).zip(digests.chunks_exact(size));
            for (block, (before, digest)) in (first..).zip(pairs) {
                if has(&state.known, block) && (has(&state.zeros, block) || before != digest) {
                    state.changed.get_or_insert(block);
                }
            }
        }
        self.file.write_all_at(digests, first * size as u64)?;
        for block in first..first + count {
            state.left -= u64::from(set(&mut state.known, block));
        }
        Ok(())
    }

    fn add_zero_blocks(&self, state: &mut State, first: u64, count: u64) -> Result<()> {
        for block in first..first + count {
            if set(&mut state.known, block) {
                state.left -= 1;
                set(&mut state.zeros, block);
            } else if !has(&state.zeros, block) {
                state.changed.get_or_insert(block);
            }
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has(bits: &[u64], block: u64) -> bool {
    bits[(block / 64) as usize] & (1 << (block % 64)) != 0
}

/// Sets a bit. Returns whether it was not set.
fn set(bits: &mut [u64], block: u64) -> bool {
    let is_new = !has(bits, block);
    bits[(block / 64) as usize] |= 1 << (block % 64);
    is_new
}

/// Reads what the file has, and zeros past its end.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(length) => done += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer[done..].fill(0);
    Ok(())
}

/// Blocks whose digests are read at once.
const PART: u64 = 1 << 12;

/// Maximum number of blocks of an image whose map is collected in any order. There are two bits for each in memory.
/// Limit in blocks.
const MAX_BLOCKS: u64 = 1 << 34;
