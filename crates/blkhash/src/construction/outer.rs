//! Outer hashes over the digests of blocks, which are dealt to them in turn.

use std::sync::{Mutex, PoisonError};

use super::{Crew, Fold};
use crate::block::Leaf;
use crate::{Digest, State};

/// The outer hashes. A zero run only costs hashing its digests, not its bytes.
#[derive(Clone, Debug)]
pub(super) struct Outer {
    leaf: Leaf,
    end: End,
    streams: Vec<State>,
    /// Index of the stream that gets the next block.
    next: usize,
    /// The digest of a zero block, repeated to fill [`REPEATED_SIZE`]. Empty until the first one.
    repeated_zero: Vec<u8>,
}

/// Makes the checksum from the outer hashes of all blocks and the length of the content in bytes.
pub(super) type End = fn(&Leaf, Vec<State>, u64) -> Digest;

impl Fold for Outer {
    fn digests(&mut self, digests: &[u8]) {
        if let [stream] = self.streams.as_mut_slice() {
            return stream.update(digests);
        }
        let size = self.leaf.digest_size();
        if size == 0 {
            return;
        }
        debug_assert_eq!(digests.len() % size, 0);
        for digest in digests.chunks_exact(size) {
            self.streams[self.next].update(digest);
            self.next = (self.next + 1) % self.streams.len();
        }
    }

    fn zero_blocks(&mut self, count: u64, crew: &dyn Crew) {
        let size = self.leaf.digest_size();
        if count == 0 || size == 0 {
            return;
        }
        if self.repeated_zero.is_empty() {
            // Hashes a block of zeros, but only once.
            self.repeated_zero = self.leaf.zero_block().as_bytes().repeat(REPEATED_SIZE / size);
        }
        let streams = self.streams.len();
        let first = self.next;
        self.next = ((first as u64 + count) % streams as u64) as usize;

        // All streams take the same number of blocks, except that the next `more` take one more.
        let share = count / streams as u64 * size as u64;
        let more = (count % streams as u64) as usize;
        self.repeat_zero(share, crew);
        for turn in 0..more {
            self.streams[(first + turn) % streams].update(&self.repeated_zero[..size]);
        }
    }

    fn finalize(self: Box<Self>, length: u64) -> Digest {
        (self.end)(&self.leaf, self.streams, length)
    }

    fn boxed_clone(&self) -> Box<dyn Fold> {
        Box::new(self.clone())
    }
}

impl Outer {
    /// Creates `streams` outer hashes without blocks.
    pub(super) fn new(leaf: &Leaf, streams: usize, end: End) -> Self {
        let streams = vec![leaf.digester().start(); streams];
        Self { leaf: leaf.clone(), end, streams, next: 0, repeated_zero: Vec::new() }
    }

    /// Feeds `length` bytes of digests of zero blocks to every stream.
    fn repeat_zero(&mut self, length: u64, crew: &dyn Crew) {
        let streams = self.streams.len();
        let threads = if length * streams as u64 > PARALLEL_RUN { crew.size() } else { 1 };
        let group = streams.div_ceil(threads);
        if group == streams {
            return repeat(&self.leaf, &mut self.streams, &self.repeated_zero, length);
        }
        let (leaf, repeated) = (&self.leaf, self.repeated_zero.as_slice());
        // Each thread takes groups until none is left, so any number of threads is enough.
        let groups = Mutex::new(self.streams.chunks_mut(group));
        let next = || groups.lock().unwrap_or_else(PoisonError::into_inner).next();
        crew.run(streams.div_ceil(group), &|| {
            while let Some(streams) = next() {
                repeat(leaf, streams, repeated, length);
            }
        });
    }
}

/// Feeds `length` bytes of digests of zero blocks to all streams side by side. `repeated` holds a
/// whole number of these digests.
fn repeat(leaf: &Leaf, streams: &mut [State], repeated: &[u8], mut length: u64) {
    let mut inputs = vec![repeated; streams.len()];
    while length > 0 {
        let part = length.min(repeated.len() as u64);
        inputs.fill(&repeated[..part as usize]);
        leaf.digester().update_many(streams, &inputs);
        length -= part;
    }
}

/// Bytes of repeated digests fed at once. They fit in the L1 cache.
const REPEATED_SIZE: usize = 8 << 10;

/// Bytes of digests that are worth starting threads for, about a millisecond of work.
const PARALLEL_RUN: u64 = 1 << 20;
