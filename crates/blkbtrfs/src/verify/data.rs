//! Data against the checksums in a leaf, in the order of the device.
//!
//! Neighbouring checksums make spans, which are read at once; what lies between them and has no
//! checksum is read with them where that is cheaper than another read.

use blkimage::Buffer;

use super::finding::{Finding, Place, Problem, Subject};
use super::{Job, add};
use crate::backref::Owners;
use crate::checksum::{Checksum, LANES, MAX_SIZE};
use crate::chunk::Chunk;
use crate::filesystem::ReadError;
use crate::tree::key::kind;
use crate::tree::{TreeBlock, object};

/// Whether leaves of a tree may hold checksums of data.
pub(super) fn may_have_checksums(tree: u64) -> bool {
    matches!(tree, object::CHECKSUM_TREE | object::TREE_LOG)
}

/// Sectors with their checksums.
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
}

/// Sectors that are summed side by side.
struct Batch<'a> {
    count: usize,
    logical: [u64; LANES],
    inputs: [&'a [u8]; LANES],
    expected: [&'a [u8]; LANES],
}

impl Default for Batch<'_> {
    fn default() -> Self {
        let none: [&[u8]; LANES] = [&[]; LANES];
        Self { count: 0, logical: [0; LANES], inputs: none, expected: none }
    }
}

impl<'a> Batch<'a> {
    fn push(&mut self, logical: u64, input: &'a [u8], expected: &'a [u8]) {
        self.logical[self.count] = logical;
        self.inputs[self.count] = input;
        self.expected[self.count] = expected;
        self.count += 1;
    }
}

impl Job<'_> {
    /// Verifies all mirrors of the data that a leaf has checksums of.
    pub(super) fn verify_data(&self, leaf: &TreeBlock, buffer: &mut Buffer) {
        let mut span: Option<Span<'_>> = None;
        for (key, sums) in leaf.items() {
            if (key.object, key.kind) == (object::CHECKSUMS, kind::CHECKSUM) {
                self.take_item(key.offset, sums, &mut span, buffer);
            }
        }
        if let Some(span) = span {
            self.verify_span(&span, buffer);
        }
    }

    /// Adds the sectors of an item to the span, and verifies the span whenever it is long enough.
    fn take_item<'a>(
        &'a self,
        mut logical: u64,
        mut sums: &'a [u8],
        span: &mut Option<Span<'a>>,
        buffer: &mut Buffer,
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
                    self.verify_span(&full, buffer);
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

    fn verify_span(&self, span: &Span<'_>, buffer: &mut Buffer) {
        let start = span.start();
        buffer.grow(READ_SIZE);
        let bytes = &mut buffer.as_mut()[..(span.end() - start) as usize];
        for mirror in 0..span.chunk.mirrors() {
            match self.filesystem.read(span.chunk, start, mirror, bytes) {
                Ok(()) => self.verify_read(span, mirror, bytes),
                Err(_) => self.verify_sectors(span, mirror, bytes),
            }
        }
    }

    /// Compares a span that was read. Sectors of several runs share the lanes of a kernel.
    fn verify_read(&self, span: &Span<'_>, mirror: u32, bytes: &[u8]) {
        let (sector, size) = (self.filesystem.sector_size(), self.filesystem.summer().size());
        let start = span.start();
        let mut batch = Batch::default();
        for run in &span.runs {
            let bytes = &bytes[(run.logical - start) as usize..][..run.length as usize];
            let sectors = bytes.chunks_exact(sector).zip(run.sums.chunks_exact(size));
            for (index, (input, expected)) in sectors.enumerate() {
                if batch.count == LANES {
                    self.compare(span.chunk, mirror, &batch);
                    batch.count = 0;
                }
                batch.push(run.logical + (index * sector) as u64, input, expected);
            }
        }
        self.compare(span.chunk, mirror, &batch);
    }

    /// Reads and compares sector by sector, where not all can be read.
    fn verify_sectors(&self, span: &Span<'_>, mirror: u32, buffer: &mut [u8]) {
        let (sector, size) = (self.filesystem.sector_size(), self.filesystem.summer().size());
        let buffer = &mut buffer[..sector];
        for run in &span.runs {
            for (index, expected) in run.sums.chunks_exact(size).enumerate() {
                let logical = run.logical + (index * sector) as u64;
                match self.filesystem.read(span.chunk, logical, mirror, buffer) {
                    Ok(()) => {
                        let mut batch = Batch::default();
                        batch.push(logical, buffer, expected);
                        self.compare(span.chunk, mirror, &batch);
                    }
                    Err(ReadError::Missing(_)) => {
                        add(&self.counters.missing_bytes, sector as u64);
                    }
                    Err(error) => {
                        let problem = Problem::Unreadable(error.to_string());
                        let expected = Checksum::new(expected);
                        self.report_sector(span.chunk, mirror, logical, &expected, problem);
                    }
                }
            }
        }
    }

    fn compare(&self, chunk: &Chunk, mirror: u32, batch: &Batch<'_>) {
        let (summer, count) = (self.filesystem.summer(), batch.count);
        let mut computed = [0; LANES * MAX_SIZE];
        let computed = &mut computed[..count * summer.size()];
        summer.sum_many(&batch.inputs[..count], computed);
        let sums = batch.expected[..count].iter().zip(computed.chunks_exact(summer.size()));
        for (logical, (expected, computed)) in batch.logical.iter().zip(sums) {
            if *expected != computed {
                let (expected, computed) = (Checksum::new(expected), Checksum::new(computed));
                let problem = Problem::Checksum { expected, computed };
                self.report_sector(chunk, mirror, *logical, &expected, problem);
            }
        }
        let bytes = (count * self.filesystem.sector_size()) as u64;
        add(&self.counters.data_bytes, bytes);
        add(&self.counters.checksums, count as u64);
        self.progress.advance(bytes);
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
        self.report(&Finding {
            subject: Subject::Data,
            problem,
            logical: Some(logical),
            length: self.filesystem.sector_size() as u64,
            place: Some(Place { mirror: mirror + 1, device: run.device, physical: run.physical }),
            mirrors: chunk.mirrors(),
            good_mirrors,
            owners: self.resolver.data(logical),
        });
    }

    fn report_unmapped(&self, logical: u64, length: u64) {
        self.report(&Finding {
            subject: Subject::Data,
            problem: Problem::Unmapped,
            logical: Some(logical),
            length,
            place: None,
            mirrors: 0,
            good_mirrors: Vec::new(),
            owners: Owners::default(),
        });
    }
}

/// Bytes that are read at once: large enough for any device, small enough for a core's own cache.
const READ_SIZE: usize = 512 << 10;

/// Bytes without checksums that are read rather than jumped over.
const MAX_GAP: u64 = 32 << 10;
