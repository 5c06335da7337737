//! The directory entries in an area or a chain of clusters.

use std::ops::ControlFlow;

use super::heap::Heap;
use super::report::{Report, Structure};
use super::runs::Runs;
use crate::error::Result;
use crate::volume::Volume;

/// An entry of a directory.
pub(crate) type Entry = [u8; 32];

/// The place of a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// An area outside of the clusters.
    Area { start: u64, length: u64 },
    /// A chain of clusters.
    Chain { first: u32, clusters: u64 },
    /// Clusters in a row.
    Row { first: u32, clusters: u64 },
}

impl Place {
    /// Returns the offsets and lengths of its parts in bytes.
    fn parts<'a>(self, runs: &'a Runs) -> Box<dyn Iterator<Item = (u64, u64)> + 'a> {
        let heap: &Heap = runs.heap();
        match self {
            Self::Area { start, length } => Box::new(std::iter::once((start, length))),
            Self::Row { first, clusters } => {
                Box::new(std::iter::once((heap.offset(first), heap.size(clusters))))
            }
            Self::Chain { first, clusters } => Box::new(
                runs.parts(first, clusters)
                    .map(|(first, count)| (heap.offset(first), heap.size(count.into()))),
            ),
        }
    }
}

/// Calls `each` with the entries of a directory and their offsets, until it breaks. Parts that cannot be read are reported.
///
/// # Errors
///
/// Fails if the visitor stops the walk.
pub(crate) fn entries(
    volume: &Volume,
    runs: &Runs,
    place: Place,
    directory: Structure,
    buffer: &mut Vec<u8>,
    report: &mut Report<'_>,
    mut each: impl FnMut(&mut Report<'_>, u64, &Entry) -> ControlFlow<()>,
) -> Result<()> {
    for (start, length) in place.parts(runs) {
        let mut done = 0;
        while done < length {
            let offset = start.saturating_add(done);
            let size = (length - done).min(CHUNK);
            done += size;
            buffer.resize(size as usize, 0);
            if let Err(error) = volume.read_into(buffer, offset) {
                report.failed(Structure { offset, ..directory }, &error);
                continue;
            }
            report.advance(size)?;
            for (entry, at) in buffer.as_chunks::<32>().0.iter().zip((offset..).step_by(32)) {
                if each(report, at, entry).is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Number of bytes of a directory that are read at once.
const CHUNK: u64 = 256 << 10;
