//! The push hasher: content goes in, its checksum comes out.

use std::io::{self, Read, Write};

use crate::construction::Accumulator;
use crate::engine::{Chunk, Pool};
use crate::{Construction, Digest, Digester, Parameters};

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
    engine: Engine,
    block_size: usize,
    length: u64,
}

#[derive(Debug)]
enum Engine {
    /// Blocks are collected and hashed many at a time.
    Parallel { pool: Pool, chunk: Chunk, chunk_size: usize },
    /// What has no blocks, or blocks too large to collect, is hashed as it comes.
    Serial(Box<Accumulator>),
}

impl Hasher {
    /// A hasher that has taken nothing yet. It hashes on up to `threads` threads of its own, which
    /// start when there is work for them; with 1, on the caller's.
    pub fn new(parameters: Parameters, threads: usize) -> Self {
        Self::with_digester(parameters, &Digester::new(parameters.algorithm()), threads)
    }

    /// The same with a choice of implementations.
    ///
    /// # Panics
    ///
    /// If the digester is of another algorithm than the parameters.
    pub fn with_digester(parameters: Parameters, digester: &Digester, threads: usize) -> Self {
        let block_size = parameters.block_size();
        let serial =
            parameters.construction() == Construction::Linear || block_size > MAX_COLLECTED;
        let engine = if serial {
            let accumulator = Accumulator::with_digester(&parameters, digester, threads);
            Engine::Serial(Box::new(accumulator))
        } else {
            let chunk_size = CHUNK_SIZE.max(block_size);
            let mut pool = Pool::new(&parameters, digester, threads, chunk_size);
            Engine::Parallel { chunk: pool.empty_chunk(), pool, chunk_size }
        };
        Self { engine, block_size, length: 0 }
    }

    /// Takes the next bytes.
    ///
    /// # Panics
    ///
    /// If the content grows beyond 2^64 - 1 bytes.
    pub fn update(&mut self, mut data: &[u8]) {
        self.grow(data.len() as u64);
        match &mut self.engine {
            Engine::Serial(accumulator) => accumulator.data(data),
            Engine::Parallel { pool, chunk, chunk_size } => {
                while !data.is_empty() {
                    let room = *chunk_size - chunk.data.len();
                    let (part, rest) = data.split_at(data.len().min(room));
                    chunk.data.extend_from_slice(part);
                    submit_if_full(pool, chunk, *chunk_size);
                    data = rest;
                }
            }
        }
    }

    /// Takes `length` zero bytes next. Only the bytes of blocks that are not zeros altogether are
    /// hashed, except where the construction is [`Construction::Linear`].
    ///
    /// # Panics
    ///
    /// If the content grows beyond 2^64 - 1 bytes.
    pub fn zero(&mut self, length: u64) {
        self.grow(length);
        match &mut self.engine {
            Engine::Serial(accumulator) => accumulator.zeros(length),
            Engine::Parallel { pool, chunk, chunk_size } => {
                let block_size = self.block_size as u64;
                let missing = (block_size - chunk.data.len() as u64 % block_size) % block_size;
                let head = length.min(missing);
                push_zeros(pool, chunk, *chunk_size, head);
                let blocks = (length - head) / block_size;
                if blocks > 0 {
                    chunk.push_zero_blocks(blocks);
                }
                push_zeros(pool, chunk, *chunk_size, (length - head) % block_size);
            }
        }
    }

    /// Takes everything that `reader` has, and returns how many bytes that was.
    ///
    /// # Errors
    ///
    /// Whatever reading returned. The bytes read before have been taken.
    pub fn update_reader(&mut self, mut reader: impl Read) -> io::Result<u64> {
        let before = self.length;
        match &mut self.engine {
            Engine::Serial(_) => {
                io::copy(&mut io::BufReader::with_capacity(CHUNK_SIZE, reader), self)?;
            }
            Engine::Parallel { pool, chunk, chunk_size } => loop {
                let filled = chunk.data.len();
                let room = (*chunk_size - filled) as u64;
                let read = reader.by_ref().take(room).read_to_end(&mut chunk.data);
                // What came before an error counts as taken.
                self.length += (chunk.data.len() - filled) as u64;
                submit_if_full(pool, chunk, *chunk_size);
                if read? == 0 {
                    break;
                }
            },
        }
        Ok(self.length - before)
    }

    /// Bytes taken.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The checksum of everything taken.
    pub fn finalize(self) -> Digest {
        match self.engine {
            Engine::Serial(accumulator) => accumulator.finalize(),
            Engine::Parallel { mut pool, chunk, .. } => {
                if !chunk.is_empty() {
                    pool.submit(chunk);
                }
                pool.finish()
            }
        }
    }

    fn grow(&mut self, length: u64) {
        self.length = self.length.checked_add(length).expect("at most 2^64 - 1 bytes of content");
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

/// Appends `count` zero bytes, less than a block.
fn push_zeros(pool: &mut Pool, chunk: &mut Chunk, chunk_size: usize, count: u64) {
    chunk.data.resize(chunk.data.len() + count as usize, 0);
    submit_if_full(pool, chunk, chunk_size);
}

fn submit_if_full(pool: &mut Pool, chunk: &mut Chunk, chunk_size: usize) {
    if chunk.data.len() == chunk_size {
        let empty = pool.empty_chunk();
        pool.submit(std::mem::replace(chunk, empty));
    }
}

/// Bytes that one thread hashes at a time: they stay in its cache.
const CHUNK_SIZE: usize = 256 << 10;

/// Blocks above this size are hashed as they come: collecting them for several threads would cost
/// more memory than it is worth.
const MAX_COLLECTED: usize = 4 << 20;
