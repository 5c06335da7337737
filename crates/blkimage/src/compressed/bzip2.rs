//! bzip2: streams one after the other, of blocks that begin at any bit.
//!
//! Blocks state no size. They are found by the bits that they begin with, and decoded side by side, each as a stream of its
//! own. These bits may also be within a block, which is then found incomplete and joined with what follows.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bzip2::{Decompress, Status};

use super::input::Input;

/// Decodes streams.
pub(super) struct Bzip2<R> {
    input: Parts<R>,
    /// Takes blocks. The threads end when it is dropped.
    work: Option<SyncSender<Job>>,
    /// The blocks that are being decoded, in order, and what follows them.
    queue: VecDeque<Queued>,
    /// The rest of the block whose content is read.
    chunks: Option<Receiver<Chunk>>,
    decoded: Vec<u8>,
    /// Number of bytes of `decoded` that were read.
    read: usize,
    /// The checksum of the blocks of a stream so far.
    crc: u32,
    /// Number of blocks that are decoded ahead.
    ahead: usize,
    /// Number of chunks of a block that are decoded ahead.
    chunks_ahead: usize,
    is_over: bool,
}

/// A block for a thread.
struct Job {
    block: Arc<Block>,
    chunks: SyncSender<Chunk>,
}

/// What a thread has made of a block. Without an end, the block is damaged.
enum Chunk {
    /// Bytes of the content, at most [`CHUNK`].
    Bytes(Vec<u8>),
    End,
}

enum Queued {
    Block(Arc<Block>, Receiver<Chunk>),
    /// The end of a stream, with its checksum.
    End(u32),
    Failed(io::Error),
}

/// The bits of a block.
struct Block {
    level: u8,
    bits: Bits,
}

impl<R: Read> Bzip2<R> {
    /// Decodes ahead at most `max_memory` bytes, or one block.
    pub fn new(reader: R, max_memory: u64) -> Self {
        let threads = blksys::processors().min(MAX_THREADS);
        let Budget { ahead, chunks_ahead } = Budget::new(threads, max_memory);
        let threads = threads.min(ahead);
        let (work, jobs) = mpsc::sync_channel::<Job>(ahead);
        let jobs = Arc::new(Mutex::new(jobs));
        let started = (0..threads).filter(|_| {
            let jobs = jobs.clone();
            thread::Builder::new().name("bzip2".into()).spawn(move || work_on(&jobs)).is_ok()
        });
        let work = (started.count() > 0).then_some(work);
        let input = Parts::new(reader);
        // Without a thread, no chunk is taken before the last one is there.
        let chunks_ahead = if work.is_some() { chunks_ahead } else { MAX_CHUNKS };
        let (queue, decoded) = Default::default();
        let chunks = None;
        let (read, crc, is_over) = Default::default();
        Self { input, work, queue, chunks, decoded, read, crc, ahead, chunks_ahead, is_over }
    }

    /// Keeps the threads busy.
    fn look_ahead(&mut self) {
        while self.queue.len() < self.ahead && !self.input.is_over {
            let queued = match self.input.next() {
                Ok(Some(Part::Block(block))) => self.start(block),
                Ok(Some(Part::End(crc))) => Queued::End(crc),
                Ok(None) => break,
                Err(error) => Queued::Failed(error),
            };
            self.queue.push_back(queued);
        }
    }

    fn start(&self, block: Block) -> Queued {
        let (chunks, receiver) = mpsc::sync_channel(self.chunks_ahead);
        let block = Arc::new(block);
        let job = Job { block: block.clone(), chunks };
        match &self.work {
            // A thread that is gone leaves the result without a sender.
            Some(work) => drop(work.send(job)),
            None => job.run(),
        }
        Queued::Block(block, receiver)
    }

    /// Takes the next chunk of a block, or continues with the next block or stream.
    fn advance(&mut self) -> io::Result<()> {
        if let Some(chunks) = &self.chunks {
            match chunks.recv() {
                Ok(Chunk::Bytes(decoded)) => (self.decoded, self.read) = (decoded, 0),
                Ok(Chunk::End) => self.chunks = None,
                Err(_) => return Err(self.input.damaged()),
            }
            return Ok(());
        }
        self.look_ahead();
        match self.queue.pop_front() {
            None => self.is_over = true,
            Some(Queued::Failed(error)) => return Err(error),
            Some(Queued::End(crc)) if crc == self.crc => self.crc = 0,
            Some(Queued::End(_)) => return Err(self.input.damaged()),
            Some(Queued::Block(block, receiver)) => {
                self.crc = self.crc.rotate_left(1) ^ block.crc();
                match receiver.recv() {
                    Ok(Chunk::Bytes(decoded)) => {
                        (self.decoded, self.read) = (decoded, 0);
                        self.chunks = Some(receiver);
                    }
                    Ok(Chunk::End) => {}
                    // Nothing was decoded, so that it may be a part of a block.
                    Err(_) => (self.decoded, self.read) = (self.join(&block)?, 0),
                }
            }
        }
        Ok(())
    }

    /// Decodes a block that is not complete without what follows it.
    fn join(&mut self, block: &Block) -> io::Result<Vec<u8>> {
        let mut block = Block { level: block.level, bits: block.bits.clone() };
        for _ in 0..MAX_JOINS {
            self.look_ahead();
            match self.queue.pop_front() {
                Some(Queued::Block(next, _)) => block.bits.append(&next.bits),
                Some(Queued::Failed(error)) => return Err(error),
                Some(Queued::End(_)) | None => break,
            }
            if block.bits.length > MAX_BLOCK_BITS {
                break;
            }
            let mut decoded = Vec::new();
            let is_good = decode(&block.stream(), |chunk| {
                decoded.extend(chunk);
                true
            });
            if is_good {
                return Ok(decoded);
            }
        }
        Err(self.input.damaged())
    }
}

impl<R: Read> Read for Bzip2<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.read == self.decoded.len() && !self.is_over && !buf.is_empty() {
            self.advance()?;
        }
        let rest = &self.decoded[self.read..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

impl Job {
    fn run(self) {
        let is_good =
            decode(&self.block.stream(), |chunk| self.chunks.send(Chunk::Bytes(chunk)).is_ok());
        if is_good {
            // The reader may be gone.
            let _ = self.chunks.send(Chunk::End);
        }
    }
}

fn work_on(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job.run(),
            Err(_) => return,
        }
    }
}

/// Decodes a stream of one block, whose content goes to `take` in chunks until that returns `false`. Returns whether the
/// stream is good and all of it was taken. Content of up to one chunk is known to be good when it is taken.
fn decode(stream: &[u8], mut take: impl FnMut(Vec<u8>) -> bool) -> bool {
    let mut decoder = Decompress::new(false);
    let mut decoded = Vec::with_capacity(CHUNK);
    loop {
        let (taken, length) = (decoder.total_in() as usize, decoded.len());
        let rest = stream.get(taken..).unwrap_or_default();
        match decoder.decompress_vec(rest, &mut decoded) {
            // An end within the block would hide what follows.
            Ok(Status::StreamEnd) => {
                return decoder.total_in() as usize == stream.len() && take(decoded);
            }
            Ok(_) if decoded.len() == decoded.capacity() => {
                let next = Vec::with_capacity(CHUNK);
                if !take(std::mem::replace(&mut decoded, next)) {
                    return false;
                }
            }
            Ok(_) if decoder.total_in() as usize == taken && decoded.len() == length => {
                return false;
            }
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// What is decoded ahead.
struct Budget {
    ahead: usize,
    chunks_ahead: usize,
}

impl Budget {
    fn new(threads: usize, max_memory: u64) -> Self {
        let max_memory = usize::try_from(max_memory).unwrap_or(usize::MAX);
        // One chunk is in use, and one is in the channel.
        let ahead = (threads + 1).min(max_memory / (BLOCK_COST + 2 * CHUNK)).max(1);
        let chunks = (max_memory / ahead).saturating_sub(BLOCK_COST) / CHUNK;
        Self { ahead, chunks_ahead: chunks.saturating_sub(1).clamp(1, MAX_CHUNKS) }
    }
}

impl Block {
    /// Returns the checksum that the block states.
    fn crc(&self) -> u32 {
        self.bits.get(MAGIC_BITS, 32) as u32
    }

    /// Returns a stream of this block only. Its checksum is the block's.
    fn stream(&self) -> Vec<u8> {
        let mut stream = Bits::default();
        stream.bytes.reserve(self.bits.bytes.len() + 16);
        stream.push(HEADER << 8 | u64::from(self.level), 32);
        stream.append(&self.bits);
        stream.push(END, MAGIC_BITS);
        stream.push(self.crc().into(), 32);
        stream.bytes
    }
}

/// Bits of bytes, the first one highest.
#[derive(Clone, Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Offset of the first bit.
    start: usize,
    /// Number of bits.
    length: usize,
}

impl Bits {
    /// Returns up to 56 bits. Bits past the last one are undefined.
    fn get(&self, at: usize, count: usize) -> u64 {
        let at = self.start + at;
        let mut word = [0; 8];
        let bytes = self.bytes.get(at / 8..).unwrap_or_default();
        let length = bytes.len().min(8);
        word[..length].copy_from_slice(&bytes[..length]);
        u64::from_be_bytes(word) << (at % 8) >> (64 - count)
    }

    /// Appends up to 56 bits to bits that begin at a byte.
    fn push(&mut self, bits: u64, count: usize) {
        let used = self.length % 8;
        let word = (bits << (64 - count)) >> used;
        let word = word.to_be_bytes();
        let mut bytes = &word[..(used + count).div_ceil(8)];
        if let Some(last) = self.bytes.last_mut().filter(|_| used > 0) {
            *last |= bytes[0];
            bytes = &bytes[1..];
        }
        self.bytes.extend(bytes);
        self.length += count;
    }

    fn append(&mut self, other: &Self) {
        for at in (0..other.length).step_by(48) {
            let count = (other.length - at).min(48);
            self.push(other.get(at, count), count);
        }
    }

    /// Returns the first bits, which begin at a bit of the first byte.
    fn first(&self, length: usize) -> Self {
        let bytes = self.bytes[..(self.start + length).div_ceil(8)].to_vec();
        Self { bytes, start: self.start, length }
    }

    /// Drops the first bits.
    fn skip(&mut self, count: usize) {
        let start = self.start + count;
        self.bytes.drain(..start / 8);
        self.start = start % 8;
        self.length -= count;
    }

    /// Returns the offset of the next magic from `at` on.
    fn find_magic(&self, at: usize) -> Option<usize> {
        let (first, end) = (self.start + at, self.start + self.length);
        let is_magic = |word: u64, shift: usize| {
            let magic = (word >> (8 - shift)) & ((1 << MAGIC_BITS) - 1);
            magic == BLOCK || magic == END
        };
        let (mut byte, mut from) = (first / 8, first % 8);
        while byte * 8 + from + MAGIC_BITS <= end {
            // 56 bits from a byte on have a magic at each of its bits.
            let mut word = [0; 8];
            let bytes = &self.bytes[byte..self.bytes.len().min(byte + 7)];
            word[1..=bytes.len()].copy_from_slice(bytes);
            let word = u64::from_be_bytes(word);
            if let Some(shift) = (from..8).find(|&shift| is_magic(word, shift)) {
                let place = byte * 8 + shift;
                return (place + MAGIC_BITS <= end).then(|| place - self.start);
            }
            (byte, from) = (byte + 1, 0);
        }
        None
    }
}

/// A part of a file.
enum Part {
    Block(Block),
    /// The end of a stream, with its checksum.
    End(u32),
}

/// Finds blocks.
struct Parts<R> {
    input: Input<R>,
    /// The bits that follow the last part, in the bytes of the file.
    bits: Bits,
    /// The level of the stream. `None` between two streams.
    level: Option<u8>,
    has_begun: bool,
    is_over: bool,
}

impl<R: Read> Parts<R> {
    fn new(reader: R) -> Self {
        let (bits, input) = (Bits::default(), Input::new(reader, 0));
        Self { input, bits, level: None, has_begun: false, is_over: false }
    }

    fn damaged(&self) -> io::Error {
        self.input.damaged("bzip2 stream is damaged")
    }

    /// Reads until there are `count` bits. Returns whether there are.
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        while self.bits.length < count {
            let bytes = self.input.fill()?;
            let length = bytes.len();
            if length == 0 {
                return Ok(false);
            }
            self.bits.bytes.extend(bytes);
            self.bits.length += length * 8;
            self.input.consume(length);
        }
        Ok(true)
    }

    /// Returns the next part. After an error and at the end, nothing follows.
    fn next(&mut self) -> io::Result<Option<Part>> {
        let part = self.find();
        self.is_over = !matches!(part, Ok(Some(_)));
        part
    }

    fn find(&mut self) -> io::Result<Option<Part>> {
        let Some(level) = self.level else { return self.begin() };
        if !self.fill(MAGIC_BITS + 32)? {
            return Err(self.input.truncated("bzip2"));
        }
        match self.bits.get(0, MAGIC_BITS) {
            END => {
                let crc = self.bits.get(MAGIC_BITS, 32) as u32;
                self.bits.skip(self.end_of_stream(0).min(self.bits.length));
                self.level = None;
                Ok(Some(Part::End(crc)))
            }
            BLOCK => {
                let end = self.find_magic()?;
                let bits = self.bits.first(end);
                self.bits.skip(end);
                Ok(Some(Part::Block(Block { level, bits })))
            }
            _ => Err(self.damaged()),
        }
    }

    /// Returns the offset of what follows a stream whose last magic is at `at`: the next byte of the file.
    fn end_of_stream(&self, at: usize) -> usize {
        let end = self.bits.start + at + MAGIC_BITS + 32;
        end.next_multiple_of(8) - self.bits.start
    }

    /// Reads the header of a stream, and returns its first part.
    fn begin(&mut self) -> io::Result<Option<Part>> {
        if !self.fill(32)? {
            return match self.bits.length {
                0 if self.has_begun => Ok(None),
                _ if self.has_begun => Err(self.input.trailing("bzip2")),
                _ => Err(self.input.truncated("bzip2")),
            };
        }
        if !self.has_header(0) {
            return Err(match self.has_begun {
                true => self.input.trailing("bzip2"),
                false => self.damaged(),
            });
        }
        self.has_begun = true;
        self.level = Some(self.bits.get(24, 8) as u8);
        self.bits.skip(32);
        self.find()
    }

    fn has_header(&self, at: usize) -> bool {
        let is_level = (b'1'..=b'9').contains(&(self.bits.get(at + 24, 8) as u8));
        self.bits.get(at, 24) == HEADER && is_level
    }

    /// Returns the offset of the magic of the next part.
    fn find_magic(&mut self) -> io::Result<usize> {
        let (mut at, mut has_end) = (MAGIC_BITS, false);
        loop {
            let is_last = !self.fill(at + 8 * READ)?;
            while let Some(found) = self.bits.find_magic(at) {
                if self.bits.get(found, MAGIC_BITS) == BLOCK || self.is_end(found)? {
                    return Ok(found);
                }
                (at, has_end) = (found + 1, true);
            }
            if is_last {
                return Err(match has_end {
                    true => self.input.trailing("bzip2"),
                    false => self.input.truncated("bzip2"),
                });
            }
            if at > MAX_BLOCK_BITS {
                return Err(self.damaged());
            }
            at = at.max((self.bits.length + 1).saturating_sub(MAGIC_BITS));
        }
    }

    /// Returns whether the magic at `at` marks an end, and not a part of a block: the file ends, or a stream follows.
    fn is_end(&mut self, at: usize) -> io::Result<bool> {
        let next = self.end_of_stream(at);
        Ok((!self.fill(next + 32)? && self.bits.length <= next) || self.has_header(next))
    }
}

/// `BZh`.
const HEADER: u64 = 0x42_5a68;
const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
const MAGIC_BITS: usize = 48;

/// Maximum size of a piece of a decoded block of bzip2: the block without the first run-length coding, which may make
/// it 52 times as large.
/// Limit in bytes.
const CHUNK: usize = 900_000;

/// More chunks than a block has, with its end.
const MAX_CHUNKS: usize = 64;

/// Maximum memory for a block of bzip2 besides its pieces: the state of the decoder, and the block as it is stored,
/// twice.
/// Limit in bytes.
const BLOCK_COST: usize = 6 << 20;

/// Maximum length of a block of bzip2, more than a block that does not compress needs.
/// Limit in bits.
const MAX_BLOCK_BITS: usize = 2 << 20 << 3;

/// Maximum number of parts that are joined to a block of bzip2. At each bit, a magic is found by chance with the
/// probability of 2^-47.
/// Limit in parts.
const MAX_JOINS: usize = 8;

/// Maximum number of threads that decode bzip2. More threads would only cost memory.
/// Limit in threads.
const MAX_THREADS: usize = 32;

/// Number of bytes that are examined at once.
const READ: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_ahead_fit_in_memory() {
        for threads in [1, 2, 8, MAX_THREADS] {
            for max_memory in [0, 1 << 20, 16 << 20, 100 << 20, 256 << 20, 1 << 40] {
                let Budget { ahead, chunks_ahead } = Budget::new(threads, max_memory);
                let total = ahead * (BLOCK_COST + (chunks_ahead + 1) * CHUNK);
                let least = BLOCK_COST + 2 * CHUNK;
                assert!(total as u64 <= max_memory.max(least as u64), "{threads} {max_memory}");
            }
            let usual = Budget::new(threads, 256 << 20);
            assert_eq!(usual.ahead, threads + 1, "each thread has a block by default");
        }
    }

    /// Zeros are the content that a block has most of.
    #[test]
    fn blocks_larger_than_what_is_ahead() {
        let content: Vec<u8> = (0..60_000_000).map(|at| (at >> 24) as u8).collect();
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        std::io::Write::write_all(&mut encoder, &content).unwrap();
        let file = encoder.finish().unwrap();
        for max_memory in [0, 20 << 20, 1 << 30] {
            let mut found = Vec::new();
            Bzip2::new(&file[..], max_memory).read_to_end(&mut found).unwrap();
            assert!(found == content, "{max_memory}");
            let mut damaged = file.clone();
            damaged[file.len() / 2] ^= 1;
            let read = Bzip2::new(&damaged[..], max_memory).read_to_end(&mut found);
            assert!(read.is_err());
            // A reader that stops leaves no waiting thread.
            drop(Bzip2::new(&file[..], max_memory).read(&mut [0; 10]));
        }
    }
}
