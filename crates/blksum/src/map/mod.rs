//! Maps of images: writes the map of an image, and compares an image with a map.
//!
//! [`write()`] writes a map, [`verify`] returns where an image differs from it, and [`diff`] where two maps differ.
//! [`update()`] writes the next state of a map from what changed, and [`Audit`] tells whether a list of changes is
//! complete. [`History`] tells when a block changed. The format of a map, and all that can be done without its image, is in [`blkmap`].
//!
//! An update reads the blocks that changed and a random sample of the others, as one source ([`Slice::of_ranges`](blkimage::Slice::of_ranges)),
//! in the same pass. The first go to [`blkmap::Update`], which keeps the pages between them, and the others are compared. What changed is a
//! [`Changes`](crate::changes::Changes): a bitmap, the layers of a chain, an older image whose extents are shared, or a list. A checksum and a map
//! of the same block digests share a lane of the pass, so that no block is hashed twice.

mod audit;
mod base;
mod history;
mod info;
mod interrupted;
mod new_file;
mod other_part;
mod pairing;
mod ranges;
mod suspects;
mod update;
mod write;

pub use self::audit::{Audit, AuditSummary, audit, audit_maps};
pub use self::base::{OtherBase, check_bitmap, check_older, overlay_depth};
pub use self::history::{Changed, History, State};
pub use self::info::{
    BitmapInfo, FileInfo, Info, Made, PartitionInfo, SourceInfo, Subject, UpdateInfo,
};
pub use self::interrupted::{first_unlike, known_bytes};
pub use self::new_file::{NewName, new_file};
pub use self::other_part::OtherPart;
pub use self::pairing::{Pairing, check_parts, diff, verify};
pub use self::ranges::RangePairing;
pub use self::update::{Sample, Tracked, Updated, update};
pub use self::write::{prepared, write, write_with_checksums};

use blkhash::{BlockSize, Digest, Leaf};
use blkimage::Source;

use crate::Error;

/// Returns the digest of the last block padded with zeros to a whole one, if it is short.
fn padded_last(
    source: &dyn Source,
    leaf: &Leaf,
    block_size: BlockSize,
) -> blkimage::Result<Option<Digest>> {
    let size = source.size();
    let length = (size % u64::from(block_size)) as usize;
    if length == 0 {
        return Ok(None);
    }
    let mut block = vec![0; block_size.get()];
    source.read_exact_at(&mut block[..length], size - length as u64)?;
    Ok(Some(leaf.hash(&block)))
}

/// Returns the offset of a page of blocks in an image of `size` bytes, or `size` if that is smaller.
fn offset_of_page(header: &blkmap::Header, page: u64, size: u64) -> u64 {
    let bytes = header.blocks_per_page().saturating_mul(header.block_size.into());
    page.saturating_mul(bytes).min(size)
}

/// Tells errors of maps from errors of other sinks.
fn of_map(error: Error) -> Error {
    match error {
        Error::Sink(error) => match error.downcast::<blkmap::Error>() {
            Ok(error) => Error::Map(*error),
            Err(error) => Error::Sink(error),
        },
        error => error,
    }
}
