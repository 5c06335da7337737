//! The parameters that determine the value of a checksum, together with the content.

use crate::{Algorithm, BlockSize, Construction, Digester, Error, Leaf, Strength};

/// Algorithm, construction and block size of a checksum. The same parameters and content give the
/// same checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    algorithm: Algorithm,
    construction: Construction,
    block_size: BlockSize,
}

impl Parameters {
    /// Creates parameters for blocks of `block_size`. [`Construction::Linear`] has no blocks, so
    /// its value does not depend on the block size.
    ///
    /// # Errors
    ///
    /// Returns [`Error::KeyedAlgorithm`] if the algorithm needs a secret key.
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

    /// Returns the digest algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the construction that makes one checksum from the digests of blocks.
    pub fn construction(&self) -> Construction {
        self.construction
    }

    /// Returns the [`Leaf`] that computes digests of blocks with `digester`.
    ///
    /// # Panics
    ///
    /// Panics if the digester is for another algorithm.
    pub fn leaf(&self, digester: &Digester) -> Leaf {
        assert_eq!(digester.algorithm(), self.algorithm);
        Leaf::new(digester, self.block_size)
    }

    /// Returns the length of a block in bytes.
    pub fn block_size(&self) -> usize {
        self.block_size.get()
    }
}

impl Default for Parameters {
    /// Returns the parameters sha256, `streams:4` and blocks of 64 KiB.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Sha256,
            construction: Construction::default(),
            block_size: BlockSize::DEFAULT,
        }
    }
}
