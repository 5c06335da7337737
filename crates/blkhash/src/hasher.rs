//! The push hasher, which computes the checksum of content that is pushed into it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::engine::{Buffer, Chunk, Pool};
use crate::zero::is_zero;
use crate::{Digest, Digester, Parameters, borrowed};

/// Computes the checksum of content that is pushed into it, in pieces of any size.
///
/// The value depends only on the content and the [`Parameters`]. It does not depend on how the
/// content is split, whether zeros come as bytes or as counts, or the number of threads.
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
    /// Copied bytes and zero runs that wait for more content. May end inside a block.
    chunk: Chunk,
    block_size: usize,
    length: u64,
}

impl Hasher {
    /// Creates a hasher without content. It hashes on up to `threads` threads, including the
    /// caller's. The others start when there is work for them.
    pub fn new(parameters: Parameters, threads: usize) -> Self {
        Self::with_digester(parameters, &Digester::new(parameters.algorithm()), threads)
    }

    /// Like [`new`](Self::new), with an explicit choice of implementations.
    ///
    /// # Panics
    ///
    /// Panics if the digester is for another algorithm than the parameters.
    pub fn with_digester(parameters: Parameters, digester: &Digester, threads: usize) -> Self {
        let pool = Pool::new(&parameters, digester, threads);
        let chunk = pool.empty_chunk();
        Self { pool, chunk, block_size: parameters.block_size().get(), length: 0 }
    }

    /// Appends `data` to the content. Bytes that cannot be hashed at once are copied, unless they
    /// are zeros, and hashed together with the bytes that follow.
    ///
    /// # Panics
    ///
    /// Panics if the content grows beyond 2^64 - 1 bytes.
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

    /// Appends `buffer` to the content without copying it. Other threads hash it in place and drop
    /// it as soon as that is done. Only the bytes before its first whole block and after its last
    /// one are copied.
    ///
    /// The number of waiting buffers is not bounded. To limit memory, append a new buffer only when
    /// an earlier one was dropped.
    ///
    /// # Panics
    ///
    /// Panics if the content grows beyond 2^64 - 1 bytes.
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

    /// Appends `data` like [`update`](Self::update), without copying it: other threads hash it in place, and
    /// this blocks until they are done. Only the bytes before its first whole block and after its last one
    /// are copied.
    ///
    /// This is faster than `update` if there are several threads and `data` is much larger than a megabyte
    /// for each of them.
    ///
    /// # Panics
    ///
    /// Panics if the content grows beyond 2^64 - 1 bytes.
    pub fn update_in_place(&mut self, data: &[u8]) {
        borrowed::lend(data, |buffer| self.update_owned(buffer));
    }

    /// Appends `length` zero bytes to the content. Zero blocks are not hashed.
    /// [`Construction::Linear`](crate::Construction) has no blocks and hashes all zeros, unless the
    /// algorithm is a CRC.
    ///
    /// # Panics
    ///
    /// Panics if the content grows beyond 2^64 - 1 bytes.
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

    /// Appends everything that `reader` returns to the content, and returns its length in bytes.
    ///
    /// # Errors
    ///
    /// Returns the error of `reader`. Bytes read before the error are part of the content.
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
            // Bytes read before an error are part of the content.
            self.length += (self.chunk.data.len() - filled) as u64;
            self.submit_if_full();
            if read? == 0 {
                return Ok(self.length - before);
            }
        }
    }

    /// Returns the length of the content so far, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the checksum of the content.
    pub fn finalize(mut self) -> Digest {
        if !self.chunk.is_empty() {
            self.pool.submit_last(self.chunk);
        }
        self.pool.finish()
    }

    fn grow(&mut self, length: u64) {
        self.length = self.length.checked_add(length).expect("at most 2^64 - 1 bytes of content");
    }

    /// Returns the number of bytes that complete the last block.
    fn missing(&self) -> usize {
        self.chunk.data.len().wrapping_neg() % self.block_size
    }

    /// Appends the bytes that complete the last block, and returns the rest.
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

    /// Appends zeros to a block that has other bytes or may still get some.
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
    /// Returns an independent hasher with the same content. `hasher.clone().finalize()` is the
    /// checksum of the content so far. Blocks until the other threads have hashed it.
    ///
    /// # Panics
    ///
    /// Panics if a thread of this hasher has panicked.
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
