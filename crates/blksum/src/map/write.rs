//! Writes the map of an image.

use std::ops::{Bound, RangeBounds};

use blkhash::{Digest, Parameters};
use blkimage::{Slice, Source};
use blkmap::{Commit, Output, Writer};

use super::{Info, of_map, offset_of_page, padded_last};
use crate::{Error, Pass, Progress, Tuning, block_digests};

/// Writes the digests of all blocks of `source` to a map, and ends the map with `info`.
///
/// `pages` are those to write: a shard, or `..`. Pages that a map that is
/// continued already has are not written again. The others are unknown to the map.
///
/// Zeros that the image does not store cost nothing, so that [`Tuning::max_zeros`] is only a limit if it is set.
///
/// # Errors
///
/// Fails like [`block_digests`](crate::block_digests()), and with [`Error::Map`] if the map cannot be written. The map
/// is not finished then.
pub fn write<O: Output + Send>(
    writer: Writer<O>,
    source: &dyn Source,
    pages: impl RangeBounds<u64>,
    info: &Info,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Commit, Error> {
    let mut writer = prepared(writer, source)?;
    let header = *writer.header();
    let start = match pages.start_bound() {
        Bound::Included(page) => *page,
        Bound::Excluded(page) => page.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match pages.end_bound() {
        Bound::Included(page) => page.saturating_add(1),
        Bound::Excluded(page) => *page,
        Bound::Unbounded => u64::MAX,
    };
    let first = writer.page().max(start);
    writer.skip_to(first)?;
    let at = |page| offset_of_page(&header, page, source.size());
    let (offset, end) = (at(first), at(end).max(at(first)));
    let part = Slice::new(source, offset, end - offset).expect("a part of the image");
    let tuning = tuning.with_default_limit(u64::MAX);
    block_digests(&part, &header.leaf(), &mut writer, &tuning, progress).map_err(of_map)?;
    Ok(writer.finish(&info.to_string())?.1)
}

/// Writes a map like [`write()`], and returns checksums of the image, for which it is read once. Blocks that the map and a
/// checksum have in common are hashed once.
///
/// # Errors
///
/// Fails like [`write()`] and [`checksums`](crate::checksums).
pub fn write_with_checksums<O: Output + Send>(
    writer: Writer<O>,
    source: &dyn Source,
    parameters: &[Parameters],
    info: &Info,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Vec<Digest>, Error> {
    let mut writer = prepared(writer, source)?;
    let leaf = writer.header().leaf();
    let pass = Pass::new(parameters).blocks(&leaf, &mut writer);
    let digests = pass.run(source, tuning, progress).map_err(of_map)?;
    writer.finish(&info.to_string())?;
    Ok(digests)
}

/// Gives a writer what it needs to know of an image before the digests of its blocks: the digest of the last block
/// padded with zeros. For a pass of the caller.
///
/// # Errors
///
/// Fails if the last block cannot be read.
pub fn prepared<O: Output>(mut writer: Writer<O>, source: &dyn Source) -> Result<Writer<O>, Error> {
    let header = *writer.header();
    writer.set_padded_last(padded_last(source, &header.leaf(), header.block_size)?);
    Ok(writer)
}
