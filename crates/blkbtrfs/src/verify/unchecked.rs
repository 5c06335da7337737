//! Verifies data without checksums. Its correctness is unknown, but it must be readable and its
//! mirrors must be equal.

use std::ops::Range;
use std::sync::Mutex;

use super::finding::{Finding, Place, Problem, Subject};
use super::job::Job;
use super::summary::add;
use crate::chunk::Chunk;
use crate::devices::ReadError;

/// Pieces of ranges that are still to be read, and whether their mirrors must be equal.
pub(super) struct Pieces {
    ranges: Vec<(Range<u64>, bool)>,
}

impl Pieces {
    pub(super) fn new(mut ranges: Vec<(Range<u64>, bool)>) -> Self {
        // Pieces are taken from the end.
        ranges.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        Self { ranges }
    }

    fn next(&mut self) -> Option<(Range<u64>, bool)> {
        let (range, is_equal) = self.ranges.last_mut()?;
        let end = range.end.min(range.start.saturating_add(PIECE));
        let piece = (range.start..end, *is_equal);
        range.start = end;
        if range.is_empty() {
            self.ranges.pop();
        }
        Some(piece)
    }
}

/// Reads pieces until none are left.
pub(super) fn verify(job: &Job<'_>, pieces: &Mutex<Pieces>) {
    let mut buffers = (vec![0; PIECE as usize], vec![0; PIECE as usize]);
    while !job.is_cancelled() {
        let piece = pieces.lock().expect("no thread panicked").next();
        let Some((range, is_equal)) = piece else { return };
        let mut start = range.start;
        while start < range.end {
            // Data outside all chunks was already reported with its item.
            let Some(chunk) = job.filesystem.chunks().find(start) else { break };
            let end = range.end.min(chunk.end());
            verify_piece(job, chunk, start..end, is_equal, &mut buffers);
            start = end;
        }
    }
}

fn verify_piece(
    job: &Job<'_>,
    chunk: &Chunk,
    range: Range<u64>,
    is_equal: bool,
    buffers: &mut (Vec<u8>, Vec<u8>),
) {
    let (start, sector) = (range.start, job.filesystem.sector_size() as u64);
    let length = (range.end - start) as usize;
    let mut known: Option<u32> = None;
    let mut read = 0;
    // Reported only after the range is known not to be split.
    let mut failed: Vec<(u32, Problem)> = Vec::new();
    for mirror in 0..chunk.mirrors() {
        let buffer = if known.is_none() { &mut buffers.0 } else { &mut buffers.1 };
        let bytes = &mut buffer[..length];
        match job.filesystem.read(chunk, start, mirror, bytes) {
            Ok(()) => {}
            Err(ReadError::PastEnd { size }) if is_past(chunk, &range, mirror, size) => {
                let error = ReadError::PastEnd { size };
                failed.push((mirror, Problem::Unreadable(error.to_string())));
                continue;
            }
            Err(_) if length as u64 > sector => {
                // Parts of it may be readable.
                let middle = start + length as u64 / sector / 2 * sector;
                verify_piece(job, chunk, start..middle, is_equal, buffers);
                return verify_piece(job, chunk, middle..range.end, is_equal, buffers);
            }
            Err(ReadError::Missing(_)) => {
                let computed = job.filesystem.rebuild(chunk, start, bytes, |_| Ok::<_, ()>(()));
                let counter = match computed {
                    Some(_) => &job.counters.rebuilt_bytes,
                    None => &job.counters.missing_bytes,
                };
                add(counter, sector);
                if computed.is_none() {
                    continue;
                }
            }
            Err(error) => {
                failed.push((mirror, Problem::Unreadable(error.to_string())));
                continue;
            }
        }
        read += length as u64;
        let Some(known) = known else {
            known = Some(mirror);
            continue;
        };
        let (first, other) = (&buffers.0[..length], &buffers.1[..length]);
        if is_equal && first != other {
            report_differing(job, chunk, start, (known, mirror), first, other);
        }
    }
    for (mirror, problem) in failed {
        report(job, chunk, range.clone(), mirror, problem);
    }
    add(&job.counters.unchecked_bytes, read);
    job.advance(read);
}

fn report_differing(
    job: &Job<'_>,
    chunk: &Chunk,
    start: u64,
    (known, mirror): (u32, u32),
    first: &[u8],
    other: &[u8],
) {
    let sector = job.filesystem.sector_size();
    let sectors = first.chunks(sector).zip(other.chunks(sector));
    for (logical, (first, other)) in (start..).step_by(sector).zip(sectors) {
        if first != other {
            let range = logical..logical + sector as u64;
            report(job, chunk, range, mirror, Problem::Mirror { other: known + 1 });
        }
    }
}

fn report(job: &Job<'_>, chunk: &Chunk, range: Range<u64>, mirror: u32, problem: Problem) {
    let (logical, length) = (range.start, range.end - range.start);
    let run = chunk.map(logical, mirror);
    job.report(Finding {
        logical: Some(logical),
        place: Some(Place { mirror: mirror + 1, device: run.device, physical: run.physical }),
        mirrors: chunk.mirrors(),
        owners: job.owners(|resolver| resolver.data(logical)),
        blocks: length / job.filesystem.sector_size() as u64,
        ..Finding::new(Subject::Data, problem, length)
    });
}

/// Returns whether a whole range is contiguous and is after the end of a device of `size` bytes.
fn is_past(chunk: &Chunk, range: &Range<u64>, mirror: u32, size: u64) -> bool {
    let run = chunk.map(range.start, mirror);
    run.physical >= size && run.length >= range.end - range.start
}

/// Bytes to read at once.
const PIECE: u64 = 512 << 10;
