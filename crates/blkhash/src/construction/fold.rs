//! The outer hash over the digests of blocks, in the order of the blocks.

use std::thread;

use super::Construction;
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
    /// If the construction is [`Construction::Linear`], which has no blocks.
    pub fn new(parameters: &Parameters, threads: usize) -> Self {
        let streams = match parameters.construction() {
            Construction::Streams(streams) => streams.count(),
            Construction::Flat | Construction::Concat => 1,
            Construction::Linear => panic!("the linear construction has no blocks to fold"),
        };
        let digester = Digester::new(parameters.algorithm());
        Self {
            digester,
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

        // Stream `first` takes the first block of the run, the one after it the second, ...
        let share = |stream: usize| {
            let turn = (stream + streams - first) % streams;
            (count + streams as u64 - 1 - turn as u64) / streams as u64
        };
        let repeated = self.repeated_zero.as_slice();
        let threads = self.threads.min(streams);
        if threads == 1 || count < PARALLEL_RUN / size as u64 {
            for (index, stream) in self.streams.iter_mut().enumerate() {
                repeat(stream, repeated, share(index) * size as u64);
            }
            return;
        }
        let group = streams.div_ceil(threads);
        thread::scope(|scope| {
            for (start, states) in self.streams.chunks_mut(group).enumerate() {
                scope.spawn(move || {
                    for (offset, stream) in states.iter_mut().enumerate() {
                        repeat(stream, repeated, share(start * group + offset) * size as u64);
                    }
                });
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

/// Feeds `length` bytes of the pattern that `repeated` holds whole times.
fn repeat(stream: &mut State, repeated: &[u8], mut length: u64) {
    while length > 0 {
        let part = length.min(repeated.len() as u64);
        stream.update(&repeated[..part as usize]);
        length -= part;
    }
}

/// Bytes of repeated digests fed at once: they stay in the first cache.
const REPEATED_SIZE: usize = 8 << 10;

/// Bytes of digests from which a zero run is worth starting threads: about a millisecond.
const PARALLEL_RUN: u64 = 1 << 20;
