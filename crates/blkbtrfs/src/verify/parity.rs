//! Verifies the parities of RAID5 and RAID6.
//!
//! A column consists of the sectors at the same offset in all stripes of a row. It is compared only
//! if one of its sectors is in use, because others may hold old data whose parity was never
//! updated. If one of its sectors is known to be bad, its parity cannot match and is not reported.
//! Rows with missing data are not compared.

use std::sync::Mutex;

use super::finding::{Finding, Place, Problem, Subject};
use super::job::Job;
use super::summary::add;
use crate::backref::refs::ExtentItem;
use crate::chunk::{Chunk, Run, STRIPE};
use crate::error::Result;
use crate::filesystem::FileSystem;
use crate::raid6::Sums;
use crate::tree::key::kind;
use crate::tree::{Cursor, Key, object};

/// Compares the parities of rows in use until none are left.
pub(super) fn verify(job: &Job<'_>, rows: &Mutex<Rows<'_>>) {
    let mut buffers = RowBuffers::default();
    let mut batch = Vec::new();
    while !job.is_cancelled() {
        batch.clear();
        batch.extend(rows.lock().expect("no thread panicked").by_ref().take(BATCH));
        if batch.is_empty() {
            return;
        }
        for row in &batch {
            verify_row(job, row, &mut buffers);
            job.advance(row.used);
        }
    }
}

/// Iterates over the rows in use of all chunks with parities.
pub(super) struct Rows<'a> {
    filesystem: &'a FileSystem,
    chunks: Box<dyn Iterator<Item = &'a Chunk> + Send + 'a>,
    current: Option<ChunkRows<'a>>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(filesystem: &'a FileSystem) -> Self {
        let chunks = filesystem.chunks().iter().filter(|chunk| chunk.profile.parities() > 0);
        Self { filesystem, chunks: Box::new(chunks), current: None }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        loop {
            if let Some(row) = self.current.as_mut().and_then(ChunkRows::next) {
                return Some(row);
            }
            // Unreadable blocks of the extent tree were already reported.
            self.current = ChunkRows::new(self.filesystem, self.chunks.next()?).ok().flatten();
        }
    }
}

/// A row of a chunk.
pub(super) struct Row<'a> {
    chunk: &'a Chunk,
    number: u64,
    /// Bit mask of the columns in use.
    columns: u64,
    /// Bytes of extents in the row.
    used: u64,
}

/// Iterates over the rows in use of one chunk, from the extents in it.
struct ChunkRows<'a> {
    /// `None` after a lost block of the extent tree.
    cursor: Option<Cursor<'a>>,
    row: Row<'a>,
    /// Number of rows that fit on all devices that are present.
    rows: u64,
    /// Rest of the extent before the cursor.
    position: u64,
    end: u64,
    node_size: u64,
    sector_size: u64,
}

impl<'a> ChunkRows<'a> {
    /// Returns `None` if there is no extent tree.
    fn new(filesystem: &'a FileSystem, chunk: &'a Chunk) -> Result<Option<Self>> {
        let tree = object::EXTENT_TREE;
        let Some(root) = filesystem.tree_root(tree)? else { return Ok(None) };
        let rows = chunk.stripes.iter().filter_map(|stripe| {
            let device = filesystem.devices().get(&stripe.device)?;
            Some(device.source.size().saturating_sub(stripe.offset) / STRIPE)
        });
        Ok(Some(Self {
            cursor: Some(Cursor::seek(filesystem, tree, root, Key::new(chunk.logical, 0, 0))?),
            row: Row { chunk, number: 0, columns: 0, used: 0 },
            rows: rows.min().unwrap_or(0),
            position: chunk.logical,
            end: chunk.logical,
            node_size: filesystem.node_size() as u64,
            sector_size: filesystem.sector_size() as u64,
        }))
    }

    fn next(&mut self) -> Option<Row<'a>> {
        let chunk = self.row.chunk;
        let row_length = chunk.data_stripes() * STRIPE;
        loop {
            while self.position < self.end {
                let offset = self.position - chunk.logical;
                let number = offset / row_length;
                if number >= self.rows {
                    // Extents there cannot be read, which was already reported.
                    return self.take_row(self.rows);
                }
                if number != self.row.number && self.row.columns != 0 {
                    return self.take_row(number);
                }
                self.row.number = number;
                let length = (STRIPE - offset % STRIPE).min(self.end - self.position);
                let first = offset % STRIPE / self.sector_size;
                let count = length.div_ceil(self.sector_size);
                self.row.columns |= (u64::MAX >> (64 - count)) << first;
                self.row.used += length;
                self.position += length;
            }
            if !self.next_extent() {
                return self.take_row(self.rows);
            }
        }
    }

    /// Returns the completed row, if any, and begins row `next`.
    fn take_row(&mut self, next: u64) -> Option<Row<'a>> {
        let next = Row { number: next, columns: 0, used: 0, ..self.row };
        let row = std::mem::replace(&mut self.row, next);
        (row.columns != 0).then_some(row)
    }

    /// Moves to the next extent. Returns false if the chunk has no more.
    fn next_extent(&mut self) -> bool {
        let Some(cursor) = &mut self.cursor else { return false };
        let Some((key, bytes)) = cursor.item() else { return false };
        let chunk = self.row.chunk;
        if key.object >= chunk.end() {
            return false;
        }
        let length = match key.kind {
            kind::EXTENT if ExtentItem::parse(key, bytes).is_some() => key.offset,
            kind::METADATA => self.node_size,
            _ => 0,
        };
        // Overlapping extents must not visit a row twice.
        self.position = self.position.max(key.object);
        self.end = key.object.saturating_add(length).min(chunk.end());
        if cursor.advance().is_err() {
            self.cursor = None;
        }
        true
    }
}

/// Read buffers for a row.
#[derive(Default)]
struct RowBuffers {
    part: Vec<u8>,
    sums: Sums,
}

/// Reads a row and compares the columns in use.
fn verify_row(job: &Job<'_>, row: &Row<'_>, buffers: &mut RowBuffers) {
    let RowBuffers { part, sums } = buffers;
    let (chunk, parities) = (row.chunk, row.chunk.profile.parities());
    let data_stripes = chunk.data_stripes();
    let place = |column| chunk.place_in_row(row.number, column);
    let is_present = |column| job.filesystem.devices().contains_key(&place(column).device);
    let stored: Vec<u64> =
        (0..parities).filter(|number| is_present(data_stripes + number)).collect();
    if stored.is_empty() || !(0..data_stripes).all(is_present) {
        return;
    }
    part.resize(STRIPE as usize, 0);
    sums.start(STRIPE as usize, parities);
    for column in (0..data_stripes).rev() {
        let Run { device, physical, .. } = place(column);
        if job.filesystem.read_device(device, physical, part).is_err() {
            return;
        }
        sums.take(part);
    }
    add(&job.counters.parity_bytes, STRIPE * data_stripes);
    for number in stored {
        let parity = place(data_stripes + number);
        match job.filesystem.read_device(parity.device, parity.physical, part) {
            Ok(()) => compare(job, row, parity, sums.parity(number as usize), part),
            Err(error) => {
                let problem = Problem::Unreadable(error.to_string());
                report(job, parity.device, parity.physical, STRIPE, problem);
            }
        }
    }
}

fn compare(job: &Job<'_>, row: &Row<'_>, parity: Run, computed: &[u8], stored: &[u8]) {
    if computed == stored {
        return;
    }
    let sector = job.filesystem.sector_size();
    for (column, (computed, stored)) in
        computed.chunks_exact(sector).zip(stored.chunks_exact(sector)).enumerate()
    {
        let offset = (column * sector) as u64;
        let is_known = || {
            (0..row.chunk.data_stripes()).any(|stripe| {
                let Run { device, physical, .. } = row.chunk.place_in_row(row.number, stripe);
                job.is_known_bad(device, physical + offset)
            })
        };
        if row.columns >> column & 1 == 1 && computed != stored && !is_known() {
            let physical = parity.physical + offset;
            report(job, parity.device, physical, sector as u64, Problem::Parity);
        }
    }
}

fn report(job: &Job<'_>, device: u64, physical: u64, length: u64, problem: Problem) {
    job.report(Finding {
        place: Some(Place { mirror: 1, device, physical }),
        mirrors: 1,
        ..Finding::new(Subject::Parity, problem, length)
    });
}

/// Number of rows that a thread takes at a time.
const BATCH: usize = 16;
