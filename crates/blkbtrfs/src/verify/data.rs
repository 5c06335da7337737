//! Data against the checksums in a leaf, in the order of the device.
//!
//! Neighbouring checksums make spans, which are read at once; what lies between them and has no
//! checksum is read with them where that is cheaper than another read.

use super::finding::{Finding, Place, Problem, Subject};
use super::{Job, add};
use crate::backref::Owners;
use crate::checksum::{Checksum, LANES};
use crate::chunk::Chunk;
use crate::filesystem::ReadError;
use crate::tree::key::kind;
use crate::tree::{TreeBlock, object};

/// Whether leaves of a tree may hold checksums of data.
pub(super) fn may_have_checksums(tree: u64) -> bool {
    matches!(tree, object::CHECKSUM_TREE | object::TREE_LOG)
}

/// What data is read into.
#[derive(Default)]
pub(super) struct DataBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl DataBuffer {
    /// `length` bytes, aligned for direct I/O.
    fn get(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; READ_SIZE + ALIGNMENT];
            // A platform that cannot tell gets by with copies.
            self.start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        }
        &mut self.bytes[self.start..][..length]
    }
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

impl Job<'_> {
    /// Verifies all mirrors of the data that a leaf has checksums of.
    pub(super) fn verify_data(&self, leaf: &TreeBlock, buffer: &mut DataBuffer) {
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
        buffer: &mut DataBuffer,
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

    fn verify_span(&self, span: &Span<'_>, buffer: &mut DataBuffer) {
        let start = span.start();
        let bytes = buffer.get((span.end() - start) as usize);
        for mirror in 0..span.chunk.mirrors() {
            let whole = self.filesystem.read(span.chunk, start, mirror, bytes);
            for run in &span.runs {
                let bytes = &mut bytes[(run.logical - start) as usize..][..run.length as usize];
                match whole {
                    Ok(()) => self.verify_run(span.chunk, mirror, run, bytes),
                    Err(_) => self.verify_sectors(span.chunk, mirror, run, bytes),
                }
            }
        }
    }

    /// Compares sectors that were read.
    fn verify_run(&self, chunk: &Chunk, mirror: u32, run: &Run<'_>, bytes: &[u8]) {
        let (sector, summer) = (self.filesystem.sector_size(), self.filesystem.summer());
        let mut computed = [0; LANES * 32];
        let mut inputs: [&[u8]; LANES] = [&[]; LANES];
        let parts = bytes.chunks(LANES * sector).zip(run.sums.chunks(LANES * summer.size()));
        for (part, (bytes, expected)) in parts.enumerate() {
            let count = bytes.len() / sector;
            for (input, sector) in inputs.iter_mut().zip(bytes.chunks_exact(sector)) {
                *input = sector;
            }
            let computed = &mut computed[..expected.len()];
            summer.sum_many(&inputs[..count], computed);
            if computed == expected {
                continue;
            }
            let sums =
                expected.chunks_exact(summer.size()).zip(computed.chunks_exact(summer.size()));
            for (index, (expected, computed)) in sums.enumerate() {
                if expected != computed {
                    let logical = run.logical + ((part * LANES + index) * sector) as u64;
                    let (expected, computed) = (Checksum::new(expected), Checksum::new(computed));
                    let problem = Problem::Checksum { expected, computed };
                    self.report_sector(chunk, mirror, logical, &expected, problem);
                }
            }
        }
        add(&self.counters.data_bytes, run.length);
        add(&self.counters.checksums, run.length / sector as u64);
        self.progress.advance(run.length);
    }

    /// Reads and compares sector by sector, where not all can be read.
    fn verify_sectors(&self, chunk: &Chunk, mirror: u32, run: &Run<'_>, bytes: &mut [u8]) {
        let (sector, size) = (self.filesystem.sector_size(), self.filesystem.summer().size());
        let sums = run.sums.chunks_exact(size);
        for (index, (bytes, sums)) in bytes.chunks_exact_mut(sector).zip(sums).enumerate() {
            let logical = run.logical + (index * sector) as u64;
            match self.filesystem.read(chunk, logical, mirror, bytes) {
                Ok(()) => {
                    let run = Run { logical, length: sector as u64, sums };
                    self.verify_run(chunk, mirror, &run, bytes);
                }
                Err(ReadError::Missing(_)) => add(&self.counters.missing_bytes, sector as u64),
                Err(error) => {
                    let problem = Problem::Unreadable(error.to_string());
                    self.report_sector(chunk, mirror, logical, &Checksum::new(sums), problem);
                }
            }
        }
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

/// The logical block size of every disk in use is this or less.
const ALIGNMENT: usize = 4096;
