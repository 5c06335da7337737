//! Everything that a checksum's value depends on beside the content.

use crate::{Algorithm, BlockSize, Construction, Digester, Error, Leaf, Strength};

/// What a checksum is computed with: the same parameters and content give the same checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    algorithm: Algorithm,
    construction: Construction,
    block_size: BlockSize,
}

impl Parameters {
    /// Parameters for blocks of `block_size`. [`Construction::Linear`] has no blocks: its value does
    /// not depend on it.
    ///
    /// # Errors
    ///
    /// The algorithm is a keyed one, which makes no checksum.
    pub fn new(
        algorithm: Algorithm,
        construction: Construction,
        block_size: BlockSize,
    ) -> Result<Self, Error> {
        if algorithm.properties().strength == Strength::Keyed {
            return Err(Error::KeyedAlgorithm);
        }
        Ok(Self { algorithm, construction, block_size })
    }

    /// The digest algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// How digests of blocks become one checksum.
    pub fn construction(&self) -> Construction {
        self.construction
    }

    /// What the digest of a block is, hashed by `digester`.
    ///
    /// # Panics
    ///
    /// If the digester is of another algorithm.
    pub fn leaf(&self, digester: &Digester) -> Leaf {
        assert_eq!(digester.algorithm(), self.algorithm);
        Leaf::new(digester, self.block_size)
    }

    /// Length of a block in bytes.
    pub fn block_size(&self) -> usize {
        self.block_size.get()
    }
}

impl Default for Parameters {
    /// sha256, `streams:4`, blocks of 64 KiB.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Sha256,
            construction: Construction::default(),
            block_size: BlockSize::DEFAULT,
        }
    }
}
