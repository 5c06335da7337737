//! Pages: the entries of consecutive blocks.

use blkhash::engine::Batch;
use blkhash::{Algorithm, BlockDigests, BlockSize, Digest, Digester, Leaf, Run};

use crate::bytes::put;
use crate::{Header, PAGE};

/// A SHA-256 of an area of a map.
pub(crate) type Hash = [u8; 32];

pub(crate) fn sha256(bytes: &[u8]) -> Hash {
    to_hash(&Digester::new(Algorithm::Sha256).digest(bytes))
}

pub(crate) fn to_hash(digest: &Digest) -> Hash {
    digest.as_bytes().try_into().expect("sha256 has 32 bytes")
}

/// Hashes pages.
#[derive(Clone, Debug)]
pub(crate) struct PageHasher(Leaf);

impl PageHasher {
    pub(crate) fn new() -> Self {
        Self(Leaf::new(&Digester::new(Algorithm::Sha256), BlockSize::PAGE))
    }

    /// Returns the definition of the hash of a page.
    pub(crate) fn leaf(&self) -> &Leaf {
        &self.0
    }

    pub(crate) fn hash(&self, page: &[u8]) -> Hash {
        to_hash(&self.0.hash(page))
    }

    /// Returns the hash of a page that begins with `count` zero blocks with this digest.
    pub(crate) fn zero_blocks(&self, header: &Header, digest: &Digest, count: usize) -> Hash {
        let mut page = Page::new(header);
        page.push_zeros(digest, count);
        self.hash(page.bytes())
    }

    /// Returns the hashes of pages, one after the other.
    pub(crate) fn hash_all(&self, pages: &[u8]) -> Vec<u8> {
        let mut digests = BlockDigests::default();
        let mut batch = Batch::new(&self.0, &mut digests);
        batch.update(pages);
        batch.finish();
        let mut hashes = Vec::with_capacity(pages.len() / PAGE * 32);
        for run in digests.runs() {
            match run {
                Run::Digests { digests, .. } => hashes.extend_from_slice(digests),
                Run::Zeros { count } => {
                    let zero = self.0.zero_block();
                    (0..count).for_each(|_| hashes.extend_from_slice(zero.as_bytes()));
                }
            }
        }
        hashes
    }
}

/// The page in progress.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    bytes: Box<[u8; PAGE]>,
    entry_size: usize,
    digest_size: usize,
    filled: usize,
    /// Number of entries of zero blocks.
    zeros: usize,
}

impl Page {
    pub(crate) fn new(header: &Header) -> Self {
        let (entry_size, digest_size) = (header.entry_size(), header.algorithm.digest_size());
        Self { bytes: Box::new([0; PAGE]), entry_size, digest_size, filled: 0, zeros: 0 }
    }

    /// Appends the digest of a block.
    fn push(&mut self, digest: &[u8]) {
        debug_assert_eq!(digest.len(), self.digest_size);
        put(&mut self.bytes[..], self.filled * self.entry_size, digest);
        self.filled += 1;
    }

    /// Appends as many of `digests`, which follow each other, as there is room for. Returns how many.
    pub(crate) fn push_many(&mut self, digests: &[u8]) -> usize {
        let count = (digests.len() / self.digest_size).min(self.room());
        if self.entry_size == self.digest_size {
            let bytes = &digests[..count * self.digest_size];
            put(&mut self.bytes[..], self.filled * self.entry_size, bytes);
            self.filled += count;
        } else {
            digests.chunks_exact(self.digest_size).take(count).for_each(|digest| self.push(digest));
        }
        count
    }

    /// Appends `count` zero blocks with this digest.
    pub(crate) fn push_zeros(&mut self, digest: &Digest, count: usize) {
        for _ in 0..count {
            self.push(digest.as_bytes());
        }
        self.zeros += count;
    }

    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Returns the number of entries that are free.
    pub(crate) fn room(&self) -> usize {
        PAGE / self.entry_size - self.filled
    }

    /// Returns whether all blocks are whole blocks of zeros.
    pub(crate) fn is_zero(&self) -> bool {
        self.zeros == self.filled
    }

    /// Returns whether all entries are `digest`.
    pub(crate) fn has_only(&self, digest: &Digest) -> bool {
        let entries = self.bytes[..self.filled * self.entry_size].chunks_exact(self.entry_size);
        entries.into_iter().all(|entry| entry[..self.digest_size] == *digest.as_bytes())
    }

    pub(crate) fn bytes(&self) -> &[u8; PAGE] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.fill(0);
        self.filled = 0;
        self.zeros = 0;
    }
}
