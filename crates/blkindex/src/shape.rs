//! What an index says about its image, and what the caller says about an index.

use blkhash::{Algorithm, BlockSize, Salt};
use blkmap::{Error, Header, Result};

/// What the caller says about an index.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The digest, if the index does not name it. By default sha256 for digests of 32 bytes.
    pub algorithm: Option<Algorithm>,
    /// The size of a block, if the index does not have it.
    pub block_size: Option<BlockSize>,
    /// The size of the image in bytes, if the index does not have it. By default the last block is a whole one.
    pub image_size: Option<u64>,
}

impl Options {
    /// Fails if the options contradict the index.
    pub(crate) fn check(&self, noun: &str, shape: &Shape) -> Result<()> {
        let contradicts = |what: &str, own: String| {
            Err(Error::Unsupported(format!("is {noun} with {what} {own}")))
        };
        if self.algorithm.is_some_and(|it| it != shape.algorithm) {
            return contradicts("the digest", shape.algorithm.to_string());
        }
        if self.block_size.is_some_and(|it| it != shape.block_size) {
            return contradicts("the block size", shape.block_size.to_string());
        }
        if self.image_size.is_some_and(|it| it != shape.image_size) {
            return contradicts("the image size", shape.image_size.to_string());
        }
        Ok(())
    }
}

/// What an index says about its image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub algorithm: Algorithm,
    pub block_size: BlockSize,
    pub salt: Salt,
    /// In bytes.
    pub image_size: u64,
    /// The content id, which is compared with the map's.
    pub content_id: Option<[u8; 32]>,
}

impl Shape {
    /// Returns the shape of an index with plain digests. `at` is the offset at which the index has the size of the image.
    pub fn new(
        algorithm: Algorithm,
        block_size: BlockSize,
        image_size: u64,
        at: u64,
    ) -> Result<Self> {
        if image_size > MAX_IMAGE {
            return Err(Error::damaged(at, format!("an image of {image_size} bytes")));
        }
        if !Header::accepts(algorithm) {
            return Err(Error::Unsupported(format!(
                "has digests of {algorithm}, which no map has"
            )));
        }
        Ok(Self { algorithm, block_size, salt: Salt::EMPTY, image_size, content_id: None })
    }

    /// Returns the number of blocks of the image.
    pub fn blocks(&self) -> u64 {
        self.image_size.div_ceil(self.block_size.into())
    }
}

/// Reads a block size that is at an offset of an index.
pub(crate) fn block_size(bytes: u64, at: u64) -> Result<BlockSize> {
    BlockSize::try_from(bytes).map_err(|error| Error::damaged(at, error.to_string()))
}

/// Maximum size of an image in bytes, as of a map.
const MAX_IMAGE: u64 = i64::MAX as u64;
