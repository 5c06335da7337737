//! The digests of all blocks, also of zeros, for formats that have no other form for zeros.

use std::io::Write;

use blkmap::{BlockRun, Error, Map, Result};

/// Fails if a map lacks blocks, or has digests with a salt, which `reader` does not know.
pub(crate) fn check(map: &Map, reader: &str) -> Result<()> {
    let commit = map.commit();
    if !map.is_complete() {
        return Err(Error::Incomplete { known: commit.known(), blocks: commit.blocks() });
    }
    if !map.header().salt.is_empty() {
        let reason = format!("has salted digests, which {reader} does not know");
        return Err(Error::Unsupported(reason));
    }
    Ok(())
}

/// Passes the digest of each block to `take`, in order.
pub(crate) fn each(map: &Map, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (entry_size, size) = (map.header().entry_size(), map.header().algorithm.digest_size());
    let mut blocks = map.blocks()?;
    while let Some(run) = blocks.next(u64::MAX)? {
        match run {
            BlockRun::Digests { entries, .. } => {
                entries.chunks_exact(entry_size).try_for_each(|entry| take(&entry[..size]))?;
            }
            BlockRun::Zeros { count, .. } => {
                (0..count).try_for_each(|_| take(map.zero_block().as_bytes()))?;
            }
            BlockRun::Unknown { .. } => unreachable!("the map is complete"),
        }
    }
    Ok(())
}

/// Writes the digests of all blocks, one after the other.
pub(crate) fn write(map: &Map, output: &mut impl Write) -> Result<()> {
    each(map, |digest| Ok(output.write_all(digest)?))
}
