//! Compares data with the checksums in a leaf, in the order of the device.
//!
//! Adjacent checksums form spans, which are read at once. A gap without checksums is read as well
//! if that is cheaper than another read.

use std::ops::Range;

use blkimage::{Buffer, Lent};

use super::finding::{Finding, Place, Problem, Subject};
use super::job::Job;
use super::summary::add;
use crate::checksum::{Checksum, LANES};
use crate::chunk::Chunk;
use crate::devices::ReadError;
use crate::tree::key::kind;
use crate::tree::{TreeBlock, object};

/// Returns whether leaves of a tree may contain checksums of data.
pub(super) fn may_have_checksums(tree: u64) -> bool {
    matches!(tree, object::CHECKSUM_TREE | object::TREE_LOG)
}

/// Contiguous sectors with their checksums.
#[derive(Clone, Copy)]
struct Run<'a> {
    logical: u64,
    length: u64,
    sums: &'a [u8],
}

/// Runs of one chunk that are read at once.
struct Span<'a> {
    chunk: &'a Chunk,
    runs: Vec<Run<'a>>,
}

impl Span<'_> {
    fn start(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.logical)
    }

    fn end(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.logical + run.length)
    }

    /// Returns the logical address and the checksum of each sector, in order.
    fn sectors(&self, sector: usize, size: usize) -> impl Iterator<Item = (u64, &[u8])> {
        self.runs.iter().flat_map(move |run| {
            let logical = (run.logical..).step_by(sector);
            logical.zip(run.sums.chunks_exact(size))
        })
    }
}

/// Memory of a thread for data.
#[derive(Default)]
pub(super) struct Memory {
    buffer: Buffer,
    /// Data lent last, for each mirror.
    lent: Vec<Option<Lent>>,
}

impl Memory {
    /// Keeps the data lent last and drops the data lent before, because adjacent data is likely to
    /// follow.
    fn keep(&mut self, mirror: u32, lent: Lent) {
        let mirror = mirror as usize;
        if self.lent.len() <= mirror {
            self.lent.resize_with(mirror + 1, || None);
        }
        self.lent[mirror] = Some(lent);
    }
}

impl Job<'_> {
    /// Verifies all mirrors of the data whose checksums are in a leaf.
    pub(super) fn verify_data(&self, leaf: &TreeBlock, memory: &mut Memory) {
        let mut span: Option<Span<'_>> = None;
        for (key, sums) in leaf.items() {
            if (key.object, key.kind) == (object::CHECKSUMS, kind::CHECKSUM) {
                self.take_item(key.offset, sums, &mut span, memory);
            }
        }
        if let Some(span) = span {
            self.verify_span(&span, memory);
        }
    }

    /// Adds the sectors of an item to the span, and verifies the span when it is long enough.
    fn take_item<'a>(
        &'a self,
        mut logical: u64,
        mut sums: &'a [u8],
        span: &mut Option<Span<'a>>,
        memory: &mut Memory,
    ) {
        let (sector, size) =
            (self.filesystem.sector_size() as u64, self.filesystem.summer().size());
        let length = (sums.len() / size) as u64 * sector;
        let is_whole = sums.len().is_multiple_of(size) && logical.is_multiple_of(sector);
        if !is_whole || logical.checked_add(length).is_none() {
            return self.report_unmapped(logical, length);
        }
        while !sums.is_empty() {
            let left = (sums.len() / size) as u64 * sector;
            let Some(chunk) = self.filesystem.chunks().find(logical) else {
                return self.report_unmapped(logical, left);
            };
            let fits = |span: &Span<'_>| {
                std::ptr::eq(span.chunk, chunk)
                    && logical >= span.end()
                    && logical - span.end() <= MAX_GAP
                    && logical - span.start() < READ_SIZE as u64
            };
            let current = match span.take_if(|span| !fits(span)) {
                Some(full) => {
                    self.verify_span(&full, memory);
                    span.insert(Span { chunk, runs: Vec::new() })
                }
                None => span.get_or_insert(Span { chunk, runs: Vec::new() }),
            };
            let start = current.runs.first().map_or(logical, |run| run.logical);
            let length = left.min(chunk.end() - logical).min(start + READ_SIZE as u64 - logical);
            let (these, rest) = sums.split_at((length / sector) as usize * size);
            current.runs.push(Run { logical, length, sums: these });
            logical += length;
            sums = rest;
        }
    }

    fn verify_span(&self, span: &Span<'_>, memory: &mut Memory) {
        let length = (span.end() - span.start()) as usize;
        for mirror in 0..span.chunk.mirrors() {
            if self.verify_lent(span, mirror, length, memory) {
                continue;
            }
            memory.buffer.grow(READ_SIZE);
            let bytes = &mut memory.buffer.as_mut()[..length];
            match self.filesystem.read(span.chunk, span.start(), mirror, bytes) {
                Ok(()) => self.compare(span, mirror, &self.sum(span, bytes)),
                Err(_) => self.verify_pieces(span, mirror, bytes),
            }
        }
    }

    /// Verifies a span in place in memory. Returns false if it is not in memory or was lost
    /// meanwhile.
    fn verify_lent(
        &self,
        span: &Span<'_>,
        mirror: u32,
        length: usize,
        memory: &mut Memory,
    ) -> bool {
        if !self.filesystem.summer().hides_latency() {
            return false;
        }
        let Some(lent) = self.filesystem.lend(span.chunk, span.start(), mirror, length) else {
            return false;
        };
        let computed = self.sum(span, lent.as_ref());
        let is_intact = lent.is_intact();
        memory.keep(mirror, lent);
        if is_intact {
            self.compare(span, mirror, &computed);
        }
        is_intact
    }

    /// Returns the concatenated checksums of a span's sectors. Sectors of several runs share the
    /// lanes of a kernel.
    fn sum(&self, span: &Span<'_>, bytes: &[u8]) -> Vec<u8> {
        let summer = self.filesystem.summer();
        let (sector, size, start) = (self.filesystem.sector_size(), summer.size(), span.start());
        let mut inputs = span
            .sectors(sector, size)
            .map(|(logical, _)| &bytes[(logical - start) as usize..][..sector]);
        let mut computed = vec![0; READ_SIZE / sector * size];
        let mut count = 0;
        loop {
            let mut batch: [&[u8]; LANES] = [&[]; LANES];
            let mut filled = 0;
            for (lane, input) in batch.iter_mut().zip(&mut inputs) {
                *lane = input;
                filled += 1;
            }
            if filled == 0 {
                computed.truncate(count * size);
                return computed;
            }
            summer.sum_many(&batch[..filled], &mut computed[count * size..][..filled * size]);
            count += filled;
        }
    }

    /// Compares the computed checksums of a span's sectors with those in the leaf.
    fn compare(&self, span: &Span<'_>, mirror: u32, computed: &[u8]) {
        let (sector, size) = (self.filesystem.sector_size(), self.filesystem.summer().size());
        let sums = span.sectors(sector, size).zip(computed.chunks_exact(size));
        for ((logical, expected), computed) in sums {
            if *expected != *computed {
                let (expected, computed) = (Checksum::new(expected), Checksum::new(computed));
                let problem = Problem::Checksum { expected, computed };
                self.report_sector(span.chunk, mirror, logical, &expected, problem);
            }
        }
        self.count(computed.len() / size);
    }

    /// Reads and compares contiguous parts of a span separately, because reading it at once failed.
    fn verify_pieces(&self, span: &Span<'_>, mirror: u32, buffer: &mut [u8]) {
        for run in &span.runs {
            let mut rest = Some(*run);
            while let Some(run) = rest {
                let together = span.chunk.map(run.logical, mirror).length;
                let (piece, behind) = self.split(run, together);
                self.verify_piece(span.chunk, mirror, piece, buffer);
                rest = behind;
            }
        }
    }

    fn verify_piece(&self, chunk: &Chunk, mirror: u32, piece: Run<'_>, buffer: &mut [u8]) {
        let sector = self.filesystem.sector_size() as u64;
        let bytes = &mut buffer[..piece.length as usize];
        match self.filesystem.read(chunk, piece.logical, mirror, bytes) {
            Ok(()) => {}
            Err(ReadError::Missing(_)) => {
                let computed = self.filesystem.rebuild(chunk, piece.logical, bytes, |_| {
                    // If a sector is wrong, `report_sector` tries the other ways.
                    Ok::<_, ()>(())
                });
                if computed.is_none() {
                    return add(&self.counters.missing_bytes, piece.length);
                }
                add(&self.counters.rebuilt_bytes, piece.length);
            }
            Err(_) if piece.length > sector => {
                let mut rest = Some(piece);
                while let Some(piece) = rest {
                    let (first, behind) = self.split(piece, sector);
                    self.verify_piece(chunk, mirror, first, buffer);
                    rest = behind;
                }
                return;
            }
            Err(error) => {
                let problem = Problem::Unreadable(error.to_string());
                let expected = Checksum::new(piece.sums);
                return self.report_sector(chunk, mirror, piece.logical, &expected, problem);
            }
        }
        let span = Span { chunk, runs: vec![piece] };
        self.compare(&span, mirror, &self.sum(&span, bytes));
    }

    /// Splits a run after `length` bytes. The second part is `None` if the run is not longer.
    fn split<'a>(&self, run: Run<'a>, length: u64) -> (Run<'a>, Option<Run<'a>>) {
        let Run { logical, length: all, sums } = run;
        if length >= all {
            return (run, None);
        }
        let sectors = length as usize / self.filesystem.sector_size();
        let (first, rest) = sums.split_at(sectors * self.filesystem.summer().size());
        let behind = Run { logical: logical + length, length: all - length, sums: rest };
        (Run { logical, length, sums: first }, Some(behind))
    }

    /// Counts compared sectors.
    fn count(&self, sectors: usize) {
        let bytes = (sectors * self.filesystem.sector_size()) as u64;
        add(&self.counters.data_bytes, bytes);
        add(&self.counters.checksums, sectors as u64);
        self.advance(bytes);
    }

    fn report_sector(
        &self,
        chunk: &Chunk,
        mirror: u32,
        logical: u64,
        expected: &Checksum,
        problem: Problem,
    ) {
        let mut sector = vec![0; self.filesystem.sector_size()];
        let others = (0..chunk.mirrors()).filter(|other| *other != mirror);
        let good = others.filter(|other| {
            self.filesystem.read(chunk, logical, *other, &mut sector).is_ok()
                && self.filesystem.summer().sum(&sector) == *expected
        });
        let good_mirrors = good.map(|other| other + 1).collect();
        let run = chunk.map(logical, mirror);
        let rebuilt = self.filesystem.rebuild(chunk, logical, &mut sector, |sector| {
            let is_good = self.filesystem.summer().sum(sector) == *expected;
            is_good.then_some(()).ok_or(())
        });
        let rebuildable = rebuilt.map(|rebuilt| rebuilt.is_ok());
        if rebuildable == Some(true) && !self.filesystem.devices().contains_key(&run.device) {
            // The sector was never read. The first way to compute it was wrong.
            return;
        }
        self.report(Finding {
            logical: Some(logical),
            place: Some(Place { mirror: mirror + 1, device: run.device, physical: run.physical }),
            mirrors: chunk.mirrors(),
            good_mirrors,
            rebuildable,
            owners: self.owners(|resolver| resolver.data(logical)),
            ..Finding::new(Subject::Data, problem, self.filesystem.sector_size() as u64)
        });
    }

    /// Reports data without a checksum in a file that requires checksums.
    pub(super) fn report_uncovered(&self, range: Range<u64>) {
        let length = range.end - range.start;
        let chunk = self.filesystem.chunks().find(range.start);
        self.report(Finding {
            logical: Some(range.start),
            mirrors: chunk.map_or(0, Chunk::mirrors),
            blocks: length / self.filesystem.sector_size() as u64,
            owners: self.owners(|resolver| resolver.data(range.start)),
            ..Finding::new(Subject::Data, Problem::NoChecksum, length)
        });
    }

    fn report_unmapped(&self, logical: u64, length: u64) {
        self.report(Finding {
            logical: Some(logical),
            ..Finding::new(Subject::Data, Problem::Unmapped, length)
        });
    }
}

/// Bytes to read at once. Large enough for any device, and small enough for a core's own cache.
const READ_SIZE: usize = 512 << 10;

/// Maximum gap without checksums that is read rather than skipped, in bytes.
const MAX_GAP: u64 = 32 << 10;
