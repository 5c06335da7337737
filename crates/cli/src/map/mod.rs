//! Block maps, for the commands that write or read them.
//!
//! [`output`] is the map to write, [`info`] describes an image in its map, [`open`] opens maps, and [`compare`] compares
//! an image with one.

pub mod compare;
pub mod info;
pub mod open;
pub mod output;

use std::time::Duration;

use blkhash::{BlockSize, Digest, Leaf};
use blkimage::Source;

/// Allows this process as many open files as possible.
pub fn raise_limit_on_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Returns the digest of the last block padded with zeros to a whole one, if it is short.
pub fn padded_last(
    source: &dyn Source,
    leaf: &Leaf,
    block_size: BlockSize,
) -> Result<Option<Digest>, blkimage::Error> {
    let size = source.size();
    let length = (size % u64::from(block_size)) as usize;
    if length == 0 {
        return Ok(None);
    }
    let mut block = vec![0; block_size.get()];
    source.read_exact_at(&mut block[..length], size - length as u64)?;
    Ok(Some(leaf.hash(&block)))
}

/// Time between checkpoints.
pub const CHECKPOINT: Duration = Duration::from_secs(30);
