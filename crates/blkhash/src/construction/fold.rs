//! The outer hash over the digests of blocks, in the order of the blocks.

use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Construction;
use crate::engine::threads;
use crate::{Digest, Digester, Parameters, State};

/// Takes the digests of an image's blocks in order and makes the checksum of them.
///
/// Every block but the last is a whole one. Runs of zero blocks cost the outer hash alone, nothing
/// for each byte.
#[derive(Clone, Debug)]
pub struct Fold {
    digester: Digester,
    block_size: usize,
    /// The outer hashes: one for each stream, one alone for the others.
    streams: Vec<State>,
    /// The stream that the next block goes to.
    next: usize,
    construction: Construction,
    /// The digest of a zero block, as often as fits [`REPEATED_SIZE`]; empty until the first.
    repeated_zero: Vec<u8>,
    threads: usize,
}

impl Fold {
    /// A fold that has taken no block yet. Long zero runs are spread over at most `threads`
    /// threads.
    ///
    /// # Panics
    ///
    /// If the construction is [`Construction::Linear`], which has no blocks, or the digester is of
    /// another algorithm.
    pub fn new(parameters: &Parameters, digester: &Digester, threads: usize) -> Self {
        assert_eq!(digester.algorithm(), parameters.algorithm());
        let streams = match parameters.construction() {
            Construction::Streams(streams) => streams.count(),
            Construction::Flat | Construction::Concat => 1,
            Construction::Linear => panic!("the linear construction has no blocks to fold"),
        };
        Self {
            digester: digester.clone(),
            block_size: parameters.block_size(),
            streams: vec![digester.start(); streams],
            next: 0,
            construction: parameters.construction(),
            repeated_zero: Vec::new(),
            threads: threads.max(1),
        }
    }

    /// Takes the digests of the next blocks, one after the other.
    pub fn digests(&mut self, digests: &[u8]) {
        if let [stream] = self.streams.as_mut_slice() {
            return stream.update(digests);
        }
        let size = self.digester.algorithm().digest_size();
        if size == 0 {
            return;
        }
        debug_assert_eq!(digests.len() % size, 0);
        for digest in digests.chunks_exact(size) {
            self.streams[self.next].update(digest);
            self.next = (self.next + 1) % self.streams.len();
        }
    }

    /// Takes the next `count` blocks, whole and all zeros.
    pub fn zero_blocks(&mut self, count: u64) {
        let size = self.digester.algorithm().digest_size();
        if count == 0 || size == 0 {
            return;
        }
        self.prepare_repeated_zero(size);
        let streams = self.streams.len();
        let first = self.next;
        self.next = ((first as u64 + count) % streams as u64) as usize;

        // All streams take as many blocks, but for the first ones, which take one more.
        let share = count / streams as u64 * size as u64;
        let more = (count % streams as u64) as usize;
        self.repeat_zero(share);
        for turn in 0..more {
            self.streams[(first + turn) % streams].update(&self.repeated_zero[..size]);
        }
    }

    /// Feeds `length` bytes of zero blocks' digests to every stream.
    fn repeat_zero(&mut self, length: u64) {
        let (digester, repeated) = (&self.digester, self.repeated_zero.as_slice());
        let streams = self.streams.len();
        let threads = if length * streams as u64 > PARALLEL_RUN { self.threads } else { 1 };
        let group = streams.div_ceil(threads);
        if group == streams {
            return repeat(digester, &mut self.streams, repeated, length);
        }
        // Each thread takes groups as long as there are any, so that any number of threads does.
        let groups = Mutex::new(self.streams.chunks_mut(group));
        let next = || groups.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(streams) = next() {
                repeat(digester, streams, repeated, length);
            }
        };
        let count = streams.div_ceil(group);
        thread::scope(|scope| {
            let started = (0..count).filter(|_| threads::spawn_scoped(scope, work).is_ok()).count();
            // A thread that goes on working keeps those it has started from its own processor for
            // milliseconds: this one waits, unless the system has no threads to give.
            if started < count {
                work();
            }
        });
    }

    /// The checksum of the blocks taken; `length` is that of the content in bytes.
    pub fn finalize(mut self, length: u64) -> Digest {
        match self.construction {
            Construction::Flat => self.streams[0].update(&length.to_le_bytes()),
            Construction::Streams(_) => {
                let mut outer = self.digester.start();
                for stream in self.streams {
                    outer.update(stream.finalize().as_bytes());
                }
                return outer.finalize();
            }
            Construction::Concat | Construction::Linear => {}
        }
        self.streams.swap_remove(0).finalize()
    }

    /// Hashes the zero block when the first one comes: it costs as much as any other.
    fn prepare_repeated_zero(&mut self, size: usize) {
        if self.repeated_zero.is_empty() {
            let mut zero = self.digester.start();
            zero.update_zeros(self.block_size as u64);
            self.repeated_zero = zero.finalize().as_bytes().repeat(REPEATED_SIZE / size);
        }
    }
}

/// Feeds `length` bytes of the pattern that `repeated` holds whole times, to all streams side by
/// side.
fn repeat(digester: &Digester, streams: &mut [State], repeated: &[u8], mut length: u64) {
    let mut inputs = vec![repeated; streams.len()];
    while length > 0 {
        let part = length.min(repeated.len() as u64);
        inputs.fill(&repeated[..part as usize]);
        digester.update_many(streams, &inputs);
        length -= part;
    }
}

/// Bytes of repeated digests fed at once: they stay in the first cache.
const REPEATED_SIZE: usize = 8 << 10;

/// Bytes of digests from which a zero run is worth starting threads: about a millisecond.
const PARALLEL_RUN: u64 = 1 << 20;
