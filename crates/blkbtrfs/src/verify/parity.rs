//! The parities of RAID5 and RAID6.
//!
//! A column, that is the sectors at the same place of all stripes of a row, is judged only if one of
//! its sectors is in use: others may hold what was written before and never updated. Where one of
//! the sectors is known to be bad, its parity cannot be right, and says nothing new.

use super::finding::{Finding, Place, Problem, Subject};
use super::{Job, add};
use crate::backref::Owners;
use crate::backref::refs::ExtentItem;
use crate::chunk::{Chunk, Run, STRIPE};
use crate::error::Result;
use crate::filesystem::ReadError;
use crate::tree::key::kind;
use crate::tree::{Cursor, Key, object};

/// Compares the parities of all rows in use.
pub(super) fn verify(job: &Job<'_>) {
    let mut buffers = RowBuffers::default();
    for chunk in job.filesystem.chunks().iter().filter(|chunk| chunk.profile.parities() > 0) {
        let is_present = |device| job.filesystem.devices().contains_key(&device);
        if chunk.stripes.iter().all(|stripe| is_present(stripe.device)) {
            // What cannot be read of the extent tree was reported already.
            let _ = verify_chunk(job, chunk, &mut buffers);
        }
    }
}

/// A row, in the numbers of its chunk, and the columns of it that are in use, a bit each.
#[derive(Clone, Copy, Default)]
struct Row {
    number: u64,
    columns: u64,
}

/// What a row is read into.
#[derive(Default)]
struct RowBuffers {
    data: Vec<u8>,
    p: Vec<u8>,
    q: Vec<u8>,
}

fn verify_chunk(job: &Job<'_>, chunk: &Chunk, buffers: &mut RowBuffers) -> Result<()> {
    let (filesystem, tree) = (job.filesystem, object::EXTENT_TREE);
    let sector = filesystem.sector_size() as u64;
    let row_length = chunk.data_stripes() * STRIPE;
    let Some(root) = filesystem.tree_root(tree)? else { return Ok(()) };
    let mut cursor = Cursor::seek(filesystem, tree, root, Key::new(chunk.logical, 0, 0))?;
    let mut row = Row::default();
    let mut position = chunk.logical;
    while let Some((key, bytes)) = cursor.item() {
        if key.object >= chunk.end() {
            break;
        }
        let length = match key.kind {
            kind::EXTENT if ExtentItem::parse(key, bytes).is_some() => key.offset,
            kind::METADATA => filesystem.node_size() as u64,
            _ => 0,
        };
        let end = key.object.saturating_add(length).min(chunk.end());
        // Extents do not overlap: each row has its turn once.
        position = position.max(key.object);
        while position < end {
            let offset = position - chunk.logical;
            if offset / row_length != row.number {
                if !verify_row(job, chunk, row, buffers) {
                    return Ok(());
                }
                row = Row { number: offset / row_length, columns: 0 };
            }
            let left = STRIPE - offset % STRIPE;
            let length = left.min(end - position);
            let first = offset % STRIPE / sector;
            let count = length.div_ceil(sector);
            row.columns |= ((1 << count) - 1) << first;
            position += length;
        }
        cursor.advance()?;
    }
    verify_row(job, chunk, row, buffers);
    Ok(())
}

/// Reads a row and compares what is in use of it. False if the device has no more rows.
fn verify_row(job: &Job<'_>, chunk: &Chunk, row: Row, buffers: &mut RowBuffers) -> bool {
    if row.columns == 0 {
        return true;
    }
    let stripe = STRIPE as usize;
    buffers.p.clear();
    buffers.p.resize(stripe, 0);
    buffers.q.clear();
    buffers.q.resize(stripe, 0);
    buffers.data.resize(stripe, 0);
    let data_stripes = chunk.data_stripes();
    let places: Vec<_> = (0..chunk.stripes.len() as u64)
        .map(|column| chunk.place_in_row(row.number, column))
        .collect();
    // Backwards, so that each doubling of Q raises the power of all before it.
    for place in places[..data_stripes as usize].iter().rev() {
        match job.filesystem.read_device(place.device, place.physical, &mut buffers.data) {
            Ok(()) => {}
            Err(ReadError::PastEnd { .. }) => return false,
            Err(_) => return true,
        }
        for (p, data) in buffers.p.iter_mut().zip(&buffers.data) {
            *p ^= data;
        }
        if chunk.profile.parities() > 1 {
            for (q, data) in buffers.q.iter_mut().zip(&buffers.data) {
                *q = double(*q) ^ data;
            }
        }
    }
    add(&job.counters.parity_bytes, STRIPE * data_stripes);
    for (index, place) in places[data_stripes as usize..].iter().enumerate() {
        let read = job.filesystem.read_device(place.device, place.physical, &mut buffers.data);
        match read {
            Ok(()) => {
                let computed = if index == 0 { &buffers.p } else { &buffers.q };
                compare(
                    job,
                    row,
                    &places[..data_stripes as usize],
                    *place,
                    computed,
                    &buffers.data,
                );
            }
            Err(error) => {
                let problem = Problem::Unreadable(error.to_string());
                report(job, place.device, place.physical, STRIPE, problem);
            }
        }
    }
    true
}

fn compare(job: &Job<'_>, row: Row, data: &[Run], parity: Run, computed: &[u8], stored: &[u8]) {
    if computed == stored {
        return;
    }
    let sector = job.filesystem.sector_size();
    for (column, (computed, stored)) in
        computed.chunks_exact(sector).zip(stored.chunks_exact(sector)).enumerate()
    {
        let offset = (column * sector) as u64;
        let is_known =
            || data.iter().any(|place| job.is_known_bad(place.device, place.physical + offset));
        if row.columns >> column & 1 == 1 && computed != stored && !is_known() {
            let physical = parity.physical + offset;
            report(job, parity.device, physical, sector as u64, Problem::Parity);
        }
    }
}

fn report(job: &Job<'_>, device: u64, physical: u64, length: u64, problem: Problem) {
    job.report(&Finding {
        subject: Subject::Parity,
        problem,
        logical: None,
        length,
        place: Some(Place { mirror: 1, device, physical }),
        mirrors: 1,
        good_mirrors: Vec::new(),
        owners: Owners::default(),
    });
}

/// Twice a number, in the field that RAID6 computes in.
fn double(value: u8) -> u8 {
    value << 1 ^ if value & 0x80 != 0 { 0x1d } else { 0 }
}
