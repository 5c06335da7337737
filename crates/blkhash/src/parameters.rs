//! Everything that a checksum's value depends on beside the content.

use crate::{Algorithm, Construction, Error, Strength};

/// What a checksum is computed with: the same parameters and content give the same checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    algorithm: Algorithm,
    construction: Construction,
    block_size: usize,
}

impl Parameters {
    /// Parameters with a `block_size` in bytes, a power of two from [`MIN_BLOCK_SIZE`] to
    /// [`MAX_BLOCK_SIZE`]. [`Construction::Linear`] has no blocks: its value does not depend on it.
    pub fn new(
        algorithm: Algorithm,
        construction: Construction,
        block_size: u64,
    ) -> Result<Self, Error> {
        if algorithm.properties().strength == Strength::Keyed {
            return Err(Error::KeyedAlgorithm);
        }
        let invalid = Error::InvalidBlockSize(block_size);
        let block_size = usize::try_from(block_size).map_err(|_| invalid.clone())?;
        if !block_size.is_power_of_two() || !(MIN_BLOCK_SIZE..=MAX_BLOCK_SIZE).contains(&block_size)
        {
            return Err(invalid);
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

    /// Length of a block in bytes.
    pub fn block_size(&self) -> usize {
        self.block_size
    }
}

impl Default for Parameters {
    /// sha256, `streams:4`, blocks of 64 KiB.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Sha256,
            construction: Construction::default(),
            block_size: DEFAULT_BLOCK_SIZE,
        }
    }
}

/// The block size unless told: 64 KiB.
pub const DEFAULT_BLOCK_SIZE: usize = 64 << 10;

/// The smallest block size: a sector.
pub const MIN_BLOCK_SIZE: usize = 512;

/// The largest block size.
pub const MAX_BLOCK_SIZE: usize = 64 << 20;
