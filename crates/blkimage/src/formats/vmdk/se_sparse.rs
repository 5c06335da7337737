//! Sparse files of ESXi, as of version 6.5. There is no specification. The rules are taken from QEMU,
//! which refuses everything that it has not seen.

use std::sync::Arc;

use super::header::SECTOR;
use super::sparse::{Layout, MAX_TABLES, SE_GRAIN, SE_TABLE_SECTORS, Shape, Sparse, impossible};
use crate::chain::Chain;
use crate::error::{ErrorKind, Result};
use crate::formats::fields::Head;
use crate::storage::HostFile;

/// Opens a sparse file of ESXi.
pub(super) fn open(chain: &Chain<'_>, file: &Arc<HostFile>) -> Result<Sparse> {
    let head = Head::read(file, 0, SIZE)?;
    if head.le64(0) != MAGIC {
        return Err(file.error(ErrorKind::Format, "is not a sparse file of ESXi"));
    }
    let unsupported = |what: &str, at: u64| {
        let reason = format!("is a sparse file of ESXi with an unknown {what}");
        Err(file.error(ErrorKind::Unsupported, reason).at(at))
    };
    for (at, value, what) in [
        (8, VERSION, "version"),
        (24, SE_GRAIN, "grain size"),
        (32, SE_TABLE_SECTORS, "size of grain tables"),
        (40, 0, "flag"),
        (48, 0, "feature"),
        (56, 0, "feature"),
        (64, 0, "feature"),
        (72, 0, "feature"),
    ] {
        if head.le64(at) != value {
            return unsupported(what, at as u64);
        }
    }
    if head.bytes()[PADDING..].iter().any(|byte| *byte != 0) {
        return unsupported("feature", PADDING as u64);
    }
    check_volatile(file, head.le64(80))?;
    let (capacity, directory_sectors) = (head.le64(16), head.le64(136));
    let entries = SE_TABLE_SECTORS * SECTOR / 8;
    let span = SE_GRAIN * entries;
    let tables = directory_sectors.saturating_mul(SECTOR / 8);
    if capacity > MAX_CAPACITY || tables > MAX_TABLES {
        return Err(impossible(file));
    }
    if capacity.div_ceil(span) > tables {
        let reason = "has a grain directory that is too small for its size";
        return Err(file.corrupt(reason).at(136));
    }
    let layout = Layout::SeSparse { tables: head.le64(144), grains: head.le64(192) };
    let directory = head.le64(128);
    let shape = Shape { capacity, grain: SE_GRAIN, entries, directory, redundant: None };
    Sparse::new(chain, file, layout, &shape)
}

/// Checks the header that changes while the disk is in use.
fn check_volatile(file: &HostFile, sector: u64) -> Result<()> {
    let offset = sector.saturating_mul(SECTOR);
    let head = Head::read(file, offset, SIZE)?;
    if head.le64(0) != VOLATILE_MAGIC {
        return Err(file.corrupt("lacks the second header of a sparse file of ESXi").at(offset));
    }
    if head.le64(24) != 0 {
        let reason = "has a journal that was not replayed: open the disk in ESXi first";
        return Err(file.error(ErrorKind::Unsupported, reason).at(offset + 24));
    }
    if head.bytes()[32..].iter().any(|byte| *byte != 0) {
        let reason = "is a sparse file of ESXi with an unknown feature";
        return Err(file.error(ErrorKind::Unsupported, reason).at(offset + 32));
    }
    Ok(())
}

const SIZE: usize = SECTOR as usize;
const MAGIC: u64 = 0xcafe_babe;
const VOLATILE_MAGIC: u64 = 0xcafe_cafe;
const VERSION: u64 = 0x2_0000_0001;

/// Offset of the bytes after the last field.
const PADDING: usize = 208;

/// Sectors of 64 TiB, which is more than ESXi allows.
const MAX_CAPACITY: u64 = 1 << 37;
