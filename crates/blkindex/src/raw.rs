//! Digests and nothing else, one after the other.
//!
//! The block hash index of RAUC has the SHA-256 of each 4096 bytes of an image, which is a multiple of them.

use blkhash::{Algorithm, BlockSize};
use blkmap::{Error, Map, ReadAt, Result};

use crate::bytes::each_part;
use crate::codec::{Codec, Sink, boxed};
use crate::digests;
use crate::shape::{Options, Shape};
use crate::target::{Blocks, Target};

pub(crate) const CODEC: Codec = Codec {
    name: "raw",
    noun: "a block hash index",
    suffix: Some(".block-hash-index"),
    is_start: |_| false,
    open: |file, options| open(file, options).map(boxed),
    write: Some(write),
};

pub(crate) struct Raw<'a> {
    file: &'a dyn ReadAt,
    end: u64,
    digest_size: usize,
}

/// Checks that the length of the file equals the length of the digests of the image.
fn open<'a>(file: &'a dyn ReadAt, options: &Options) -> Result<(Shape, Raw<'a>)> {
    let algorithm = options.algorithm.unwrap_or(Algorithm::Sha256);
    let block_size = options.block_size.unwrap_or(BlockSize::PAGE);
    let (end, digest_size) = (file.length()?, algorithm.digest_size());
    let count = end.checked_div(digest_size as u64).unwrap_or(0);
    if !end.is_multiple_of((digest_size as u64).max(1)) {
        let reason = format!("{end} bytes are no whole number of digests of {algorithm}");
        return Err(Error::damaged(end, reason));
    }
    let whole = count.saturating_mul(block_size.into());
    let shape = Shape::new(algorithm, block_size, options.image_size.unwrap_or(whole), end)?;
    if shape.blocks() != count {
        let blocks = shape.blocks();
        let reason = format!("{count} digests do not make an image of {blocks} blocks");
        return Err(Error::damaged(end, reason));
    }
    Ok((shape, Raw { file, end, digest_size }))
}

impl Blocks for Raw<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        each_part(self.file, 0..self.end, self.digest_size, |_, digests| target.digests(digests))
    }
}

fn write(map: &Map, output: &mut Sink<'_>) -> Result<()> {
    digests::check(map, "a list of digests")?;
    digests::write(map, output)
}
