//! Writes the next state of a map, for the price of what changed.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use blkhash::{BlockDigests, BlockSize, Run, Sink, SinkError};
use blkimage::{Slice, Source};
use blkmap::{Commit, Lookup, Map, Output};

use super::suspects::suspects;
use super::{Info, Made, UpdateInfo, of_map, padded_last};
use crate::changes::Changes;
use crate::{Error, Progress, Tuning, block_digests};

/// The state of a map after an update.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Updated {
    /// The new commit.
    pub commit: Commit,
    /// Number of blocks that were read because they may have changed.
    pub read: u64,
    /// Number of bytes in these blocks.
    pub bytes: u64,
    /// Number of blocks that were read although nothing called them changed.
    pub sampled: u64,
}

/// The share of the blocks that are read although nothing calls them changed, in parts of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample(u32);

impl Sample {
    /// No block.
    pub const NONE: Self = Self(0);

    /// Every block.
    pub const ALL: Self = Self(1_000_000);

    /// Returns a share in parts of a million, at most all.
    pub fn parts_per_million(parts: u32) -> Self {
        Self(parts.min(Self::ALL.0))
    }

    /// Returns the share that is read where time and inode of an image say that it is the one of before: one block of a
    /// thousand, and at least 64 blocks.
    pub fn of_same(blocks: u64) -> Self {
        let parts = (64 * u64::from(Self::ALL.0)).div_ceil(blocks.max(1));
        Self::parts_per_million(u32::try_from(parts).unwrap_or(u32::MAX).max(1000))
    }

    /// Returns how many of `count` blocks are read: at least one, unless the share is 0.
    fn of(self, count: u64) -> u64 {
        let sampled = (u128::from(count) * u128::from(self.0)).div_ceil(u128::from(Self::ALL.0));
        let sampled = sampled as u64;
        if self == Self::ALL { sampled } else { sampled.min(MAX_SAMPLES) }
    }
}

impl Default for Sample {
    /// One block of a thousand.
    fn default() -> Self {
        Self(1000)
    }
}

/// What may have changed since a map was made.
#[derive(Clone, Copy, Debug)]
pub struct Tracked<'a> {
    /// The extents, in an image that has the content of the map.
    pub changes: &'a Changes,
    /// The origin of the changes, for the info of the map, such as `bitmap backup-1`.
    pub by: &'a str,
    /// The share of the other blocks that is compared with the map.
    pub sample: Sample,
}

/// Writes the next state of `base`: hashes the blocks of `source` that the changes touch, and keeps the digests of all
/// others.
///
/// A larger image has changed past its old end. Of the blocks without changes, a random sample is read and compared
/// with the base, unless it is [`Sample::NONE`]. Preferred are up to 256 blocks that were zeros and are stored now, or
/// were not zeros and are no longer stored.
///
/// # Errors
///
/// Fails with [`Error::Missed`] if a block of the sample differs, so that `changes` are not complete. Fails like
/// [`block_digests`](crate::block_digests()), and with [`Error::Map`] if the base cannot be read, or the new state cannot
/// be written. Then the output ends with a state that is not finished.
pub fn update<O: Output + Send>(
    mut update: blkmap::Update<'_, O>,
    base: &Map,
    source: &dyn Source,
    tracked: &Tracked<'_>,
    mut info: Info,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Updated, Error> {
    let header = base.header();
    let suspects = match tracked.sample {
        Sample::NONE => Vec::new(),
        _ => {
            let old_blocks = base.commit().blocks();
            let blocks = source.size().div_ceil(header.block_size.into()).min(old_blocks);
            suspects(base, source, blocks)?
        }
    };
    let plan = Plan::new(base, source.size(), tracked.changes, &suspects, tracked.sample);
    let [read, sampled] = [false, true].map(|kind| plan.count(kind));
    let extents = plan.bytes(header.block_size, source.size()).zip(&plan.0);
    let bytes =
        extents.filter(|(_, piece)| !piece.is_sample).map(|(it, _)| it.end - it.start).sum();
    let last = source.size().div_ceil(header.block_size.into()).checked_sub(1);
    if base.commit().image_size() != source.size() || last.is_some_and(|last| plan.writes(last)) {
        update.set_padded_last(padded_last(source, &header.leaf(), header.block_size)?);
    }
    let gather = Slice::of_ranges(source, plan.bytes(header.block_size, source.size()));
    let gather = gather.expect("blocks of the image, in order");
    let tuning = tuning.with_default_limit(u64::MAX);
    let lookup = Lookup::new(base)?;
    let mut sink = Pieces { update, lookup, pieces: plan.0.iter(), left: None };
    block_digests(&gather, &header.leaf(), &mut sink, &tuning, progress)
        .map_err(|error| of_missed(error, header.block_size, source.size()))?;
    info.made = Some(Made::Update(UpdateInfo {
        base: base.commit().content_id(header).map(|id| hex(&id)).unwrap_or_default(),
        by: tracked.by.to_owned(),
        read,
        sampled,
        ..UpdateInfo::default()
    }));
    let (_, commit) = sink.update.finish(&info.to_string())?;
    Ok(Updated { commit, read, bytes, sampled })
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// Blocks that are read: those that may have changed, and samples of the others. In order.
#[derive(Debug)]
struct Plan(Vec<Piece>);

/// Adjacent blocks of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    blocks: Range<u64>,
    is_sample: bool,
}

impl Plan {
    /// Blocks of `suspects`, which are in order, are read in any case, up to [`MAX_SUSPECTS`].
    fn new(
        base: &Map,
        size: u64,
        changes: &Changes,
        suspects: &[Range<u64>],
        sample: Sample,
    ) -> Self {
        let block_size = u64::from(base.header().block_size);
        let old_size = base.commit().image_size();
        let blocks = size.div_ceil(block_size);
        let old_blocks = base.commit().blocks();
        let mut changed = changes.blocks(base.header().block_size);
        if size != old_size {
            // The blocks at the old and at the new end have another length, unless they are whole.
            changed.push(size.min(old_size) / block_size..blocks.max(old_blocks));
        }
        let changed: Changes = changed.into_iter().map(|it| it.start..it.end.min(blocks)).collect();
        let known = with_suspects(changed.extents(), suspects, &mut random);
        Self::sampled(&known, blocks.min(old_blocks), sample, &mut random)
    }

    /// Adds samples from the first `blocks` blocks to `known` pieces: each of equal parts of the others has one.
    fn sampled(
        known: &[Piece],
        blocks: u64,
        sample: Sample,
        random: &mut dyn FnMut(u64) -> u64,
    ) -> Self {
        let clean = |end: u64, start: u64| end.min(blocks).saturating_sub(start);
        let mut starts: Vec<u64> = vec![0];
        starts.extend(known.iter().map(|it| it.blocks.end));
        let ends = known.iter().map(|it| it.blocks.start).chain([blocks]);
        let gaps: Vec<_> = starts.iter().zip(ends).map(|(start, end)| clean(end, *start)).collect();
        let total: u64 = gaps.iter().sum();
        let count = sample.of(total);
        let part = |index: u64| (u128::from(index) * u128::from(total) / u128::from(count)) as u64;
        let mut plan = Self(Vec::new());
        // Number of the next sample, and of the first clean block of the gap.
        let (mut index, mut before) = (0, 0);
        let mut next = (count > 0).then(|| random(part(1)));
        for (gap, (start, length)) in starts.into_iter().zip(gaps).enumerate() {
            if count == total {
                plan.push(start..start + length, true);
            } else {
                while let Some(chosen) = next.filter(|chosen| *chosen < before + length) {
                    let block = start + (chosen - before);
                    plan.push(block..block + 1, true);
                    index += 1;
                    let range = part(index)..part((index + 1).min(count));
                    next = (index < count).then(|| range.start + random(range.end - range.start));
                }
            }
            before += length;
            if let Some(Piece { blocks, is_sample }) = known.get(gap) {
                plan.push(blocks.clone(), *is_sample);
            }
        }
        plan
    }

    fn push(&mut self, blocks: Range<u64>, is_sample: bool) {
        if blocks.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.is_sample == is_sample && last.blocks.end == blocks.start => {
                last.blocks.end = blocks.end;
            }
            _ => self.0.push(Piece { blocks, is_sample }),
        }
    }

    fn count(&self, is_sample: bool) -> u64 {
        let pieces = self.0.iter().filter(|piece| piece.is_sample == is_sample);
        pieces.map(|piece| piece.blocks.end - piece.blocks.start).sum()
    }

    /// Returns whether a block gets a new digest.
    fn writes(&self, block: u64) -> bool {
        self.0.iter().any(|piece| !piece.is_sample && piece.blocks.contains(&block))
    }

    /// Returns the extents of an image of `size` bytes that are read.
    fn bytes(&self, block_size: BlockSize, size: u64) -> impl Iterator<Item = Range<u64>> {
        let block_size = u64::from(block_size);
        let at = move |block: u64| block.saturating_mul(block_size).min(size);
        self.0.iter().map(move |piece| at(piece.blocks.start)..at(piece.blocks.end))
    }
}

/// Adds samples of `suspects` to what changed. Each of equal parts of the suspects has one.
fn with_suspects(
    changed: &[Range<u64>],
    suspects: &[Range<u64>],
    random: &mut dyn FnMut(u64) -> u64,
) -> Vec<Piece> {
    let total: u64 = suspects.iter().map(|it| it.end - it.start).sum();
    let count = total.min(MAX_SUSPECTS);
    let part = |index: u64| (u128::from(index) * u128::from(total) / u128::from(count)) as u64;
    let mut chosen = (0..count).map(|index| part(index) + random(part(index + 1) - part(index)));
    let mut known: Vec<_> =
        changed.iter().map(|it| Piece { blocks: it.clone(), is_sample: false }).collect();
    let (mut before, mut next) = (0, chosen.next());
    for range in suspects {
        let length = range.end - range.start;
        while let Some(index) = next.filter(|index| *index < before + length) {
            let block = range.start + (index - before);
            let after = changed.partition_point(|it| it.start <= block);
            if !after.checked_sub(1).is_some_and(|at| changed[at].contains(&block)) {
                known.push(Piece { blocks: block..block + 1, is_sample: true });
            }
            next = chosen.next();
        }
        before += length;
    }
    known.sort_by_key(|piece| piece.blocks.start);
    known
}

/// Returns a random number below `limit`, which is not 0.
fn random(limit: u64) -> u64 {
    RandomState::new().hash_one(limit) % limit
}

/// A sink for the digests of all pieces, one after the other.
struct Pieces<'a, 'p, O> {
    update: blkmap::Update<'a, O>,
    lookup: Lookup<'a>,
    pieces: std::slice::Iter<'p, Piece>,
    /// What is left of a piece.
    left: Option<Piece>,
}

impl<O: Output> Pieces<'_, '_, O> {
    /// Takes the digests of adjacent blocks of one piece.
    fn run(&mut self, run: Run<'_>, first: u64, is_sample: bool) -> Result<(), SinkError> {
        if !is_sample {
            return Ok(self.update.write(first, run)?);
        }
        match self.lookup.find_difference(first, run)? {
            Some(block) => Err(Box::new(MissedBlock(block))),
            None => Ok(()),
        }
    }
}

impl<O: Output> Sink<BlockDigests> for Pieces<'_, '_, O> {
    fn take(&mut self, digests: &BlockDigests) -> Result<(), SinkError> {
        for run in digests.runs() {
            let (Run::Digests { count, .. } | Run::Zeros { count }) = run;
            let mut done = 0;
            while done < count {
                let left = self.left.take().filter(|left| !left.blocks.is_empty());
                let next = left.or_else(|| self.pieces.next().cloned());
                let mut piece = next.expect("a piece for each block that was read");
                let first = piece.blocks.start;
                let length = (count - done).min(piece.blocks.end - first);
                self.run(part_of(run, done, length), first, piece.is_sample)?;
                piece.blocks.start += length;
                self.left = Some(piece);
                done += length;
            }
        }
        Ok(())
    }
}

/// Returns the blocks of a random sample of `blocks`, in order.
pub(super) fn samples(blocks: u64, sample: Sample) -> Vec<Range<u64>> {
    let plan = Plan::sampled(&[], blocks, sample, &mut random);
    plan.0.into_iter().map(|piece| piece.blocks).collect()
}

/// Returns `length` blocks of a run, from the one with the index `first` on.
pub(super) fn part_of(run: Run<'_>, first: u64, length: u64) -> Run<'_> {
    match run {
        Run::Zeros { .. } => Run::Zeros { count: length },
        Run::Digests { count, digests } => {
            let size = digests.len() / count as usize;
            let digests = &digests[first as usize * size..][..length as usize * size];
            Run::Digests { count: length, digests }
        }
    }
}

/// A block that nothing calls changed, and that differs.
#[derive(Debug, thiserror::Error)]
#[error("block {0} changed")]
struct MissedBlock(u64);

fn of_missed(error: Error, block_size: BlockSize, size: u64) -> Error {
    match error {
        Error::Sink(error) => match error.downcast::<MissedBlock>() {
            Ok(missed) => {
                let offset = missed.0 * u64::from(block_size);
                Error::Missed { offset, length: u64::from(block_size).min(size - offset) }
            }
            Err(error) => of_map(Error::Sink(error)),
        },
        error => error,
    }
}

/// Maximum number of blocks in a sample of an update that is not all, which take 160 MiB.
/// Limit in blocks.
const MAX_SAMPLES: u64 = 4 << 20;

/// Maximum number of blocks that an update compares because their place contradicts the map.
/// Limit in blocks.
const MAX_SUSPECTS: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(changed: &[Range<u64>], blocks: u64, sample: Sample) -> Vec<(u64, u64, bool)> {
        let known = with_suspects(changed, &[], &mut random);
        let plan = Plan::sampled(&known, blocks, sample, &mut |limit| limit - 1);
        plan.0.into_iter().map(|it| (it.blocks.start, it.blocks.end, it.is_sample)).collect()
    }

    #[test]
    fn samples_are_blocks_that_are_not_called_changed() {
        assert_eq!(plan(&[2..4, 7..8], 10, Sample::NONE), [(2, 4, false), (7, 8, false)]);
        let all = [(0, 2, true), (2, 4, false), (4, 7, true), (7, 8, false), (8, 10, true)];
        assert_eq!(plan(&[2..4, 7..8], 10, Sample::ALL), all);
        // Two of seven blocks: the last ones of 0, 1, 4 and of 5, 6, 8, 9.
        let two = Sample::parts_per_million(200_000);
        assert_eq!(
            plan(&[2..4, 7..8], 10, two),
            [(2, 4, false), (4, 5, true), (7, 8, false), (9, 10, true)]
        );
        // Blocks that the base has not are read in any case.
        assert_eq!(
            plan(&[2..4, 8..20], 10, two),
            [(2, 4, false), (4, 5, true), (7, 8, true), (8, 20, false)]
        );
        assert_eq!(plan(&[], 0, Sample::default()), []);
        assert_eq!(plan(&[0..4, 4..10], 10, Sample::ALL), [(0, 10, false)]);
    }

    #[test]
    fn suspects_are_samples_unless_they_are_read_anyway() {
        let plan = |blocks: &[Range<u64>]| {
            let known = with_suspects(&[2..3, 3..4], blocks, &mut |limit| limit - 1);
            let plan = Plan::sampled(&known, 1000, Sample::NONE, &mut random);
            plan.0.into_iter().map(|it| (it.blocks.start, it.blocks.end, it.is_sample)).collect()
        };
        let none: Vec<_> = plan(&[]);
        assert_eq!(none, [(2, 4, false)]);
        assert_eq!(plan(&[0..3, 5..7]), [(0, 2, true), (2, 4, false), (5, 7, true)]);
        let many: Vec<(u64, u64, bool)> = plan(&[4..500, 500..1000]);
        let sampled = many.iter().filter(|it| it.2).map(|it| it.1 - it.0).sum::<u64>();
        assert_eq!((many[0], sampled), ((2, 4, false), 256));
        assert_eq!(many.last(), Some(&(999, 1000, true)));
    }

    #[test]
    fn a_sample_has_its_size_and_no_block_twice() {
        for (blocks, parts) in [(1000, 1), (1000, 999_999), (7, 500_000), (100_000, 1000)] {
            let sample = Sample::parts_per_million(parts);
            let known = with_suspects(&[3..5, 6..7], &[], &mut random);
            let plan = Plan::sampled(&known, blocks, sample, &mut random);
            assert_eq!(plan.count(true), sample.of(blocks - 3));
            assert_eq!(plan.count(false), 3);
            let sorted = plan.0.windows(2).all(|pair| pair[0].blocks.end <= pair[1].blocks.start);
            assert!(sorted, "{plan:?}");
        }
    }
}
