//! What the blocks that an update replaced are used for in the source.

use std::sync::Arc;

use blkcopy::Copied;

use super::args::Args;
use super::source::Opened;
use crate::image::contents::Used;

/// The blocks that an update replaced.
pub struct Replaced {
    /// Their number.
    blocks: u64,
    pub used: Used,
}

impl Replaced {
    /// Looks the blocks up, if that is to be printed. `None` if all was written, or if the source has no file system.
    pub fn of(args: &Args, done: &Copied, opened: &Opened) -> Option<Self> {
        let (Opened::Image(_, selected), true) =
            (opened, args.update && (args.verbose || args.json))
        else {
            return None;
        };
        // The destination was new, or there were too many places.
        let ranges = done.replaced.as_ref()?;
        let runs: Vec<_> = ranges
            .iter()
            .map(|range| {
                let first = range.start / BLOCK;
                (first, range.end.div_ceil(BLOCK) - first)
            })
            .collect();
        let used = Used::of(Arc::new(selected.source().clone()), &runs, BLOCK);
        let blocks = runs.iter().map(|(_, count)| count).sum();
        Some(Self { blocks, used })
    }

    /// Returns a sentence about them. Empty if nothing is known.
    pub fn text(&self) -> String {
        let Self { blocks, used } = self;
        match used.text() {
            used if used.is_empty() => used,
            used => {
                let were = if *blocks == 1 { "block of 4 KiB was" } else { "blocks of 4 KiB were" };
                format!("{blocks} {were} replaced: in the source, {used}")
            }
        }
    }
}

/// The unit in which an update compares.
const BLOCK: u64 = 4096;
