//! The parameters that determine the value of a checksum, together with the content.

use crate::construction::Fold;
use crate::{Algorithm, BlockSize, Construction, Digester, Error, Leaf, Salt, Strength};

/// Algorithm, construction, block size and salt of a checksum. The same parameters and content give
/// the same checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    algorithm: Algorithm,
    construction: Construction,
    block_size: BlockSize,
    salt: Salt,
}

impl Parameters {
    /// Creates parameters for blocks of `block_size`. [`Construction::Linear`] has no blocks, so
    /// its value does not depend on the block size.
    ///
    /// # Errors
    ///
    /// Returns [`Error::KeyedAlgorithm`] if the algorithm needs a secret key, and
    /// [`Error::UnsuitableAlgorithm`] if the construction is not defined for it.
    pub fn new(
        algorithm: Algorithm,
        construction: Construction,
        block_size: BlockSize,
    ) -> Result<Self, Error> {
        if algorithm.properties().strength == Strength::Keyed {
            return Err(Error::KeyedAlgorithm);
        }
        construction.check_algorithm(algorithm)?;
        Ok(Self { algorithm, construction, block_size, salt: Salt::EMPTY })
    }

    /// Sets the salt.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NoSalt`] or [`Error::LongSalt`] if the salt is longer than
    /// [`Construction::max_salt`].
    pub fn with_salt(mut self, salt: Salt) -> Result<Self, Error> {
        let max = self.construction.max_salt();
        if salt.as_bytes().len() > max {
            let construction = self.construction.to_string();
            return Err(match max {
                0 => Error::NoSalt(construction),
                _ => Error::LongSalt { construction, max },
            });
        }
        self.salt = salt;
        Ok(self)
    }

    /// Returns the digest algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the construction that makes one checksum from the digests of blocks.
    pub fn construction(&self) -> Construction {
        self.construction
    }

    /// Returns the salt.
    pub fn salt(&self) -> &Salt {
        &self.salt
    }

    /// Checks whether the checksum of content of `length` bytes is defined. dm-verity is defined for
    /// one whole block or more. The checksum of other content is defined as of the content padded with zeros, and no
    /// other program computes it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnsuitableLength`] if it is not.
    pub fn check_length(&self, length: u64) -> Result<(), Error> {
        self.construction.check_length(length, self.block_size)
    }

    /// Returns the computation over the digests of blocks, or `None` if there are no blocks.
    pub(crate) fn fold(&self, leaf: &Leaf) -> Option<Box<dyn Fold>> {
        self.construction.fold(leaf, self.block_size, &self.salt)
    }

    /// Returns the [`Leaf`] that computes digests of blocks with `digester`.
    ///
    /// # Panics
    ///
    /// Panics if the digester is for another algorithm.
    pub fn leaf(&self, digester: &Digester) -> Leaf {
        assert_eq!(digester.algorithm(), self.algorithm);
        self.construction.leaf(digester, self.block_size, &self.salt)
    }

    /// Returns the length of a block.
    pub fn block_size(&self) -> BlockSize {
        self.block_size
    }
}

impl Default for Parameters {
    /// Returns the parameters sha256, `streams:4` and blocks of 64 KiB.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Sha256,
            construction: Construction::default(),
            block_size: BlockSize::DEFAULT,
            salt: Salt::EMPTY,
        }
    }
}
