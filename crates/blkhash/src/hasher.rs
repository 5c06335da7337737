//! The push hasher: content goes in, its checksum comes out.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::engine::{Buffer, Chunk, Pool};
use crate::zero::is_zero;
use crate::{Digest, Digester, Parameters};

/// Computes the checksum of content that is pushed into it, in pieces of any size.
///
/// The value depends on the content and the [`Parameters`] alone: not on how the content is split,
/// on whether zeros come as bytes or as counts, nor on the number of threads.
///
/// ```
/// use blkhash::{Hasher, Parameters};
///
/// let mut hasher = Hasher::new(Parameters::default(), 2);
/// hasher.update(b"boot sector");
/// hasher.zero(10 << 30);
/// assert_eq!(hasher.finalize().to_string().len(), 64);
/// ```
#[derive(Debug)]
pub struct Hasher {
    pool: Pool,
    /// What was copied and waits for more; ends anywhere.
    chunk: Chunk,
    block_size: usize,
    length: u64,
}

impl Hasher {
    /// A hasher that has taken nothing yet. It hashes on up to `threads` threads, the caller's
    /// among them; the others start when there is work for them.
    pub fn new(parameters: Parameters, threads: usize) -> Self {
        Self::with_digester(parameters, &Digester::new(parameters.algorithm()), threads)
    }

    /// The same with a choice of implementations.
    ///
    /// # Panics
    ///
    /// If the digester is of another algorithm than the parameters.
    pub fn with_digester(parameters: Parameters, digester: &Digester, threads: usize) -> Self {
        let pool = Pool::new(&parameters, digester, threads);
        let chunk = pool.empty_chunk();
        Self { pool, chunk, block_size: parameters.block_size(), length: 0 }
    }

    /// Takes the next bytes. What cannot be hashed at once is copied, unless it is zeros, to be hashed
    /// with what follows.
    ///
    /// # Panics
    ///
    /// If the content grows beyond 2^64 - 1 bytes.
    pub fn update(&mut self, mut data: &[u8]) {
        self.grow(data.len() as u64);
        if !self.pool.has_blocks() {
            return self.pool.in_turn(|accumulator| accumulator.update(data));
        }
        data = self.complete_block(data);
        while data.len() >= self.block_size {
            let room = self.pool.batch_size() - self.chunk.data.len();
            if data.len() >= room && self.pool.submit_now(&mut self.chunk, &data[..room]) {
                data = &data[room..];
                continue;
            }
            let (block, rest) = data.split_at(self.block_size);
            if is_zero(block) {
                self.chunk.push_zeros(block.len() as u64);
            } else {
                self.copy(block);
            }
            data = rest;
        }
        self.copy(data);
    }

    /// Takes the next bytes without copying them: `buffer` is hashed where it is, by other threads,
    /// and dropped as soon as that is done. Only what lies before the first whole block of the
    /// content in it and behind the last is copied.
    ///
    /// Nothing bounds how many buffers wait to be hashed: who has many hands in as many as were
    /// dropped.
    ///
    /// # Panics
    ///
    /// If the content grows beyond 2^64 - 1 bytes.
    pub fn update_owned(&mut self, buffer: impl AsRef<[u8]> + Send + Sync + 'static) {
        let buffer: Buffer = Arc::new(buffer);
        let data = (*buffer).as_ref();
        self.grow(data.len() as u64);
        let (start, end) = if self.pool.has_blocks() {
            let rest = self.complete_block(data).len();
            (data.len() - rest, data.len() - rest % self.block_size)
        } else {
            (0, data.len())
        };
        if start < end {
            let before = (!self.chunk.is_empty()).then(|| self.take_chunk());
            self.pool.lend(before, &buffer, start..end);
        }
        self.copy(&data[end..]);
    }

    /// Takes `length` zero bytes next. Only the bytes of blocks that are not zeros altogether are
    /// hashed, except where the construction is [`Construction::Linear`](crate::Construction).
    ///
    /// # Panics
    ///
    /// If the content grows beyond 2^64 - 1 bytes.
    pub fn zero(&mut self, length: u64) {
        self.grow(length);
        if !self.pool.has_blocks() {
            return self.pool.in_turn(|accumulator| accumulator.zero(length));
        }
        let head = length.min(self.missing() as u64);
        self.pad(head as usize);
        let tail = (length - head) % self.block_size as u64;
        self.chunk.push_zeros(length - head - tail);
        self.pad(tail as usize);
    }

    /// Takes everything that `reader` has, and returns how many bytes that was.
    ///
    /// # Errors
    ///
    /// Whatever reading returned. The bytes read before have been taken.
    pub fn update_reader(&mut self, mut reader: impl Read) -> io::Result<u64> {
        let before = self.length;
        if !self.pool.has_blocks() {
            let size = self.pool.batch_size();
            io::copy(&mut io::BufReader::with_capacity(size, reader), self)?;
            return Ok(self.length - before);
        }
        loop {
            let filled = self.chunk.data.len();
            let room = self.pool.batch_size() - filled;
            self.chunk.data.reserve_exact(room);
            let read = reader.by_ref().take(room as u64).read_to_end(&mut self.chunk.data);
            // What came before an error counts as taken.
            self.length += (self.chunk.data.len() - filled) as u64;
            self.submit_if_full();
            if read? == 0 {
                return Ok(self.length - before);
            }
        }
    }

    /// Bytes taken.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The checksum of everything taken.
    pub fn finalize(mut self) -> Digest {
        if !self.chunk.is_empty() {
            self.pool.submit_last(self.chunk);
        }
        self.pool.finish()
    }

    fn grow(&mut self, length: u64) {
        self.length = self.length.checked_add(length).expect("at most 2^64 - 1 bytes of content");
    }

    /// Bytes that the last block lacks.
    fn missing(&self) -> usize {
        self.chunk.data.len().wrapping_neg() % self.block_size
    }

    /// Appends what the last block lacks, and returns the rest.
    fn complete_block<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        let (head, rest) = data.split_at(data.len().min(self.missing()));
        self.copy(head);
        rest
    }

    /// Appends bytes of one block.
    fn copy(&mut self, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        self.make_room();
        self.chunk.data.extend_from_slice(data);
        self.submit_if_full();
    }

    /// Appends zeros of one block that is not zeros altogether, or not yet.
    fn pad(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        self.make_room();
        self.chunk.data.resize(self.chunk.data.len() + length, 0);
        self.submit_if_full();
    }

    fn make_room(&mut self) {
        let room = self.pool.batch_size() - self.chunk.data.len();
        self.chunk.data.reserve_exact(room);
    }

    fn submit_if_full(&mut self) {
        if self.chunk.data.len() == self.pool.batch_size() {
            let chunk = self.take_chunk();
            self.pool.submit(chunk);
        }
    }

    fn take_chunk(&mut self) -> Chunk {
        std::mem::replace(&mut self.chunk, self.pool.empty_chunk())
    }
}

impl Clone for Hasher {
    /// A hasher that has taken the same and goes its own way: `hasher.clone().finalize()` is the
    /// checksum up to here. Waits until everything taken is hashed.
    ///
    /// # Panics
    ///
    /// If a thread of this hasher has panicked.
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), chunk: self.chunk.clone(), ..*self }
    }
}

impl Write for Hasher {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.update(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
