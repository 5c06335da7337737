//! Derives the checksum of an image from its map.

use blkhash::engine::{Accumulator, Join};
use blkhash::{BlockDigests, BlockSize, Construction, Digest, Parameters, Salt, Sink};

use crate::{BlockRun, Error, Map, Result};

/// Returns the checksum of the image with this construction. Long zero runs are spread over up to `threads`
/// threads.
///
/// # Errors
///
/// Fails if the map does not know every block, if the construction needs other digests than the map's, or the map
/// cannot be read or is damaged.
pub fn checksum(map: &Map, construction: Construction, threads: usize) -> Result<Digest> {
    let commit = map.commit();
    if !map.is_complete() {
        return Err(Error::Incomplete { known: commit.known, blocks: commit.blocks });
    }
    let parameters = parameters(map, construction)?;
    let linear = linear(map).filter(|_| construction == Construction::Linear);
    if linear.is_none() && !construction.skips_zero_runs() && commit.zero_blocks > MAX_ZERO_BLOCKS {
        let reason =
            format!("has more than {MAX_ZERO_BLOCKS} zero blocks, too many for {construction}");
        return Err(Error::Unsupported(reason));
    }
    let mut fold = match linear {
        Some(join) => Fold::Linear(join),
        None => Fold::Blocks(Accumulator::new(&parameters, threads)),
    };
    let mut blocks = map.blocks()?;
    let block_size = map.header().block_size;
    let entry_size = map.header().entry_size();
    let size = map.header().algorithm.digest_size();
    let is_short = !commit.image_size.is_multiple_of(block_size.into());
    // fs-verity pads the last block.
    let padded = is_short && construction == Construction::FsVerity;
    let padded_last = map.padded_last();
    if padded && padded_last.is_none() {
        return Err(Error::Unsupported("does not have the padded last block of fs-verity".into()));
    }
    let mut digests = BlockDigests::default();
    while let Some(run) = blocks.next(u64::MAX)? {
        digests.clear();
        match run {
            BlockRun::Zeros { count, .. } => digests.push_zero_blocks(count, block_size.get()),
            BlockRun::Unknown { .. } => unreachable!("the map is complete"),
            BlockRun::Digests { first, entries } => {
                let end = first + (entries.len() / entry_size) as u64;
                let has_last = end == commit.blocks;
                let whole = entries.len() - if has_last { entry_size } else { 0 };
                push(&mut digests, &entries[..whole], entry_size, size, block_size);
                if has_last {
                    let start = (commit.blocks - 1) * u64::from(block_size);
                    let own = Digest::try_from(&entries[whole..][..size]).expect("a digest");
                    let last = padded_last.filter(|_| padded).unwrap_or(own);
                    digests.push(&last, commit.image_size - start);
                }
            }
        }
        fold.take(&digests)?;
    }
    Ok(match fold {
        Fold::Blocks(accumulator) => accumulator.finalize(),
        Fold::Linear(join) => join.finalize(),
    })
}

/// What makes one value of the digests of blocks.
enum Fold {
    Blocks(Accumulator),
    Linear(Join),
}

impl Fold {
    fn take(&mut self, digests: &BlockDigests) -> Result<()> {
        match self {
            Self::Blocks(accumulator) => accumulator.blocks(digests),
            Self::Linear(join) => {
                join.take(digests).map_err(|error| Error::Unsupported(error.to_string()))?;
            }
        }
        Ok(())
    }
}

/// Joins the digests of a map to the hash of the content, if they are CRCs.
fn linear(map: &Map) -> Option<Join> {
    Join::of_blocks(map.header().algorithm, map.header().block_size)
}

/// Returns the parameters of the checksum that a map has with this construction.
///
/// # Errors
///
/// Fails if the construction needs other digests than the map's, or another size of the image.
pub fn parameters(map: &Map, construction: Construction) -> Result<Parameters> {
    let header = map.header();
    let unsuitable = |error: blkhash::Error| Error::Unsupported(error.to_string());
    if construction == Construction::Linear && linear(map).is_none() {
        let algorithm = header.algorithm;
        let reason =
            format!("linear of {algorithm} does not follow from digests of blocks: a CRC does");
        return Err(Error::Unsupported(reason));
    }
    let parameters = Parameters::new(header.algorithm, construction, header.block_size);
    let parameters = parameters.map_err(unsuitable)?;
    parameters.check_length(map.commit().image_size).map_err(unsuitable)?;
    match (header.salt == Salt::EMPTY, construction) {
        (true, _) => Ok(parameters),
        (false, Construction::DmVerity) => parameters.with_salt(header.salt).map_err(unsuitable),
        (false, _) => {
            let reason = "has salted digests, which only dm-verity has";
            Err(Error::Unsupported(reason.into()))
        }
    }
}

/// Appends the digests of whole blocks.
fn push(
    digests: &mut BlockDigests,
    entries: &[u8],
    entry_size: usize,
    size: usize,
    block_size: BlockSize,
) {
    if entry_size == size {
        let count = (entries.len() / size) as u64;
        return digests.extend(entries, size, count * u64::from(block_size));
    }
    for entry in entries.chunks_exact(entry_size) {
        digests.extend(&entry[..size], size, block_size.into());
    }
}

/// Maximum number of zero blocks of a map whose checksum is computed, each of which costs a digest. A small map can
/// have any number of them.
/// Limit in blocks.
const MAX_ZERO_BLOCKS: u64 = 1 << 32;
