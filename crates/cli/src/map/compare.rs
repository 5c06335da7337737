//! Compares an image with a map.

use std::ops::Range;

use blkhash::{BlockDigests, Leaf, Sink};
use blkimage::{Slice, Source};
use blkmap::{Against, ImageEnd, Map, Report, Side};

use super::padded_last;

/// The reason why an image could not be compared.
pub enum Stopped<E> {
    Image(blkimage::Error),
    Map(blkmap::Error),
    /// The error of the pass over the image.
    Pass(E),
}

/// Compares these pages of a map with an image. `pass` passes the digests of all blocks of its source, which is a part of
/// the image, to the sink. Blocks behind the end of the map are not compared.
pub fn compare<E>(
    map: &Map,
    side: Side,
    image: &dyn Source,
    pages: Range<u64>,
    report: Report<'_>,
    pass: impl FnOnce(&dyn Source, &Leaf, &mut (dyn Sink<BlockDigests> + Send)) -> Result<(), E>,
) -> Result<(), Stopped<E>> {
    let header = map.header();
    let leaf = header.leaf();
    let padded_last = padded_last(image, &leaf, header.block_size).map_err(Stopped::Image)?;
    let block_size = u64::from(header.block_size);
    let page = header.blocks_per_page().saturating_mul(block_size);
    let size = image.size().min(map.commit().blocks.saturating_mul(block_size));
    let at = |number: u64| number.saturating_mul(page).min(size);
    let (from, to) = (at(pages.start), at(pages.end));
    let part = Slice::new(image, from, to - from).expect("a part of the image");
    let blocks = map.blocks_of(pages).map_err(Stopped::Map)?;
    let end = ImageEnd { size: image.size(), padded_last };
    let mut against = Against::new(map, side, blocks, end, report);
    let passed = pass(&part, &leaf, &mut against);
    if passed.is_ok() {
        against.end();
    }
    passed.map_err(Stopped::Pass)
}
