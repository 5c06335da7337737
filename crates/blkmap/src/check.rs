//! Checks every byte that belongs to a map.

use std::ops::ControlFlow;

use blkhash::Strength;

use crate::bytes::is_zero;
use crate::log::Log;
use crate::page_run::PageRun;
use crate::{BlockRun, Commit, Error, Map, PAGE, ReadAt, Result};

/// Compares all commits of a map and everything that they refer to with the hashes and the rules of the format.
/// `watch` receives the number of bytes of pages that were read so far, and can end the check.
///
/// # Errors
///
/// Fails if the map cannot be read or is damaged.
pub fn check(map: &Map, watch: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
    let mut done = 0;
    let mut series = Series::default();
    for commit in Log::before(&**map.bytes(), *map.header(), map.end()) {
        let (at, commit) = commit?;
        series.add(map, at, &commit)?;
        let state = Map::of_commit(map.bytes().clone(), *map.header(), commit, at)?;
        if check_state(&state, &mut done, watch)?.is_break() {
            return Ok(());
        }
    }
    series.end()
}

/// Checks one commit, its tables and its pages.
fn check_state(
    map: &Map,
    done: &mut u64,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let commit = map.commit();
    map.info()?;
    let areas = [(commit.directory, PageRun::SIZE), (commit.page_hashes, 32), (commit.info, 1)];
    for (area, size) in areas {
        let end = area.offset + area.count * size as u64;
        check_padding(&**map.bytes(), end, end.next_multiple_of(PAGE as u64))?;
    }
    let per_page = map.header().blocks_per_page();
    let entry_size = map.header().entry_size();
    let mut last = None;
    let mut blocks = map.blocks()?;
    while let Some(run) = blocks.next(u64::MAX)? {
        let BlockRun::Digests { first, entries } = run else { continue };
        for (page, entries) in (first / per_page..).zip(entries.chunks(PAGE)) {
            let end = page * per_page + (entries.len() / entry_size) as u64;
            let is_whole = map.block_length(end - 1) == map.header().block_size.get();
            if is_whole && entries.chunks_exact(entry_size).all(|entry| map.is_zero(entry)) {
                let reason = format!("page {page} is stored although its blocks are zero");
                return Err(Error::damaged(map.end(), reason));
            }
            if end == commit.blocks {
                last = entries.chunks_exact(entry_size).next_back().map(<[u8]>::to_vec);
            }
        }
        *done += entries.len() as u64;
        if watch(*done).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    check_padded_last(map, last.as_deref())?;
    Ok(ControlFlow::Continue(()))
}

/// Checks the digest of the padded last block, whose entry is `last`, as far as that is possible without the
/// image.
fn check_padded_last(map: &Map, last: Option<&[u8]>) -> Result<()> {
    let at = map.end() + 368;
    let block_size = u64::from(map.header().block_size);
    let is_short = !map.commit().image_size.is_multiple_of(block_size);
    let Some(last) = last.filter(|_| is_short) else {
        return match map.padded_last() {
            Some(_) => Err(Error::damaged(at, "the digest of a padded block that is not there")),
            None => Ok(()),
        };
    };
    // Other digests may be equal although the blocks are not.
    let is_cryptographic = matches!(
        map.header().algorithm.properties().strength,
        Strength::Cryptographic | Strength::Broken
    );
    let is_zero = map.is_zero_block(map.commit().blocks - 1, last);
    if is_cryptographic && is_zero && map.padded_last().as_ref() != Some(map.zero_block()) {
        return Err(Error::damaged(at, "the digest of the padded last block is wrong"));
    }
    Ok(())
}

/// The checkpoints between two final commits, from the last one back.
#[derive(Default)]
struct Series {
    /// Size of the image in the commit after it.
    image_size: Option<u64>,
    /// First page and page after the last one of each entry.
    runs: Vec<(u64, u64)>,
}

impl Series {
    fn add(&mut self, map: &Map, at: u64, commit: &Commit) -> Result<()> {
        if commit.is_final {
            self.end()?;
        } else {
            if self.image_size.is_some_and(|size| size != commit.image_size) {
                return Err(Error::damaged(at, "checkpoints of images of different sizes"));
            }
            for run in crate::directory::Directory::new(&**map.bytes(), map.header(), commit) {
                let run = run?;
                if self.runs.len() == MAX_RUNS {
                    return Err(Error::Unsupported("has too many runs of pages to check".into()));
                }
                self.runs.push((run.first, run.end()));
            }
        }
        self.image_size = Some(commit.image_size);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.runs.sort_unstable();
        if self.runs.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(Error::damaged(0, "two checkpoints have the same page"));
        }
        self.runs.clear();
        Ok(())
    }
}

fn check_padding(bytes: &dyn ReadAt, from: u64, end: u64) -> Result<()> {
    let mut padding = [0; PAGE];
    let padding = &mut padding[..(end - from) as usize];
    bytes.read_exact_at(padding, from)?;
    if !is_zero(padding) {
        return Err(Error::damaged(from, "bytes after a table are not zero"));
    }
    Ok(())
}

/// Maximum number of entries of checkpoints of a series that are compared with each other, 32 MiB of them.
/// Limit in entries.
const MAX_RUNS: usize = 1 << 21;
