//! Compares an image with what a map knows that was interrupted, before the map is continued.

use std::iter;
use std::ops::Range;

use blkhash::{BlockDigests, Run, Sink, SinkError};
use blkimage::{Slice, Source};
use blkmap::{Commit, Lookup, Map, Recovered};

use super::{Sample, of_map, update::samples};
use crate::{Error, Progress, Tuning, block_digests};

/// Returns the number of bytes from the start of the image of which the map has every digest, whether it is finished or not.
///
/// # Errors
///
/// Fails with [`Error::Map`] if the map cannot be read or is damaged, and if it lacks blocks before others,
/// because it is of a part of an image.
pub fn known_bytes(old: &Recovered) -> Result<u64, Error> {
    let mut page = 0;
    for map in old.maps()? {
        page = end_of(&map?, page)?;
    }
    let header = old.header();
    let bytes = page.saturating_mul(header.blocks_per_page() * u64::from(header.block_size));
    Ok(bytes.min(old.commit().map_or(0, Commit::image_size)))
}

/// Compares a sample of the blocks that the map knows with the blocks of `source`, in order. Returns the first block
/// that differs, as a range of bytes, or what `source` lacks if it is shorter.
///
/// # Errors
///
/// Fails like [`known_bytes`] and [`block_digests`](crate::block_digests()).
pub fn first_unlike(
    old: &Recovered,
    source: &dyn Source,
    sample: Sample,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Option<Range<u64>>, Error> {
    let known = known_bytes(old)?;
    if source.size() < known {
        return Ok(Some(source.size()..known));
    }
    let (block_size, leaf) = (u64::from(old.header().block_size), old.header().leaf());
    let at = |block: u64| block.saturating_mul(block_size).min(known);
    let tuning = tuning.with_default_limit(u64::MAX);
    let mut wanted = samples(known.div_ceil(block_size), sample).into_iter().peekable();
    let mut page = 0;
    for map in old.maps()? {
        let map = map?;
        page = end_of(&map, page)?;
        let end = page.saturating_mul(old.header().blocks_per_page());
        let parts: Vec<_> = iter::from_fn(|| {
            let next = wanted.peek_mut().filter(|it| it.start < end)?;
            let part = next.start..next.end.min(end);
            next.start = part.end;
            wanted.next_if(Range::is_empty);
            Some(part)
        })
        .collect();
        let extents = parts.iter().map(|part| at(part.start)..at(part.end));
        let gather = Slice::of_ranges(source, extents).expect("blocks of the image, in order");
        let mut sink = Parts { lookup: Lookup::new(&map)?, parts: parts.into_iter().peekable() };
        match block_digests(&gather, &leaf, &mut sink, &tuning, progress) {
            Ok(()) => {}
            Err(Error::Sink(error)) => match error.downcast::<Unlike>() {
                Ok(unlike) => return Ok(Some(at(unlike.0)..at(unlike.0 + 1))),
                Err(error) => return Err(of_map(Error::Sink(error))),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns the page after the last one that a map knows, which follow `page`.
fn end_of(map: &Map, mut page: u64) -> Result<u64, Error> {
    for run in map.page_runs() {
        let run = run?;
        if run.first != page {
            let reason = "is of a part of an image";
            return Err(blkmap::Error::Unsupported(reason.into()).into());
        }
        page = run.end();
    }
    Ok(page)
}

/// A sink for the digests of parts, one after the other.
struct Parts<'a, I: Iterator<Item = Range<u64>>> {
    lookup: Lookup<'a>,
    parts: iter::Peekable<I>,
}

impl<I: Iterator<Item = Range<u64>>> Sink<BlockDigests> for Parts<'_, I> {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        for run in digests.runs() {
            let (Run::Digests { count, .. } | Run::Zeros { count }) = run;
            let mut done = 0;
            while done < count {
                let part = self.parts.peek_mut().expect("a part for each block that was read");
                let length = (count - done).min(part.end - part.start);
                let run = super::update::part_of(run, done, length);
                if let Some(block) = self.lookup.find_difference(part.start, run)? {
                    return Err(Box::new(Unlike(block)));
                }
                part.start += length;
                done += length;
                self.parts.next_if(Range::is_empty);
            }
        }
        Ok(())
    }
}

/// A block that differs from the map.
#[derive(Debug, thiserror::Error)]
#[error("block {0} is another one")]
struct Unlike(u64);
