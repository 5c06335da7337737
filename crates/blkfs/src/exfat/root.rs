//! The entries of the root directory that describe the volume: label, allocation bitmap, up-case table.

use std::ops::ControlFlow;

use super::boot::BootSector;
use super::entry_set::entries_checksum;
use crate::bytes::{le16_at, le32_at, le64_at};
use crate::error::Result;
use crate::fat::append_utf8;
use crate::fat::clusters::{Entry, Place, Report, Runs, Structure, entries};
use crate::volume::Volume;

const BITMAP: u8 = 0x81;
const UPCASE: u8 = 0x82;
const LABEL: u8 = 0x83;
const GUID: u8 = 0xa0;

/// The structures that the root directory leads to.
#[derive(Debug, Default)]
pub(super) struct Special {
    /// The allocation bitmaps, of which two exist if there are two tables, and their flags.
    pub bitmaps: Vec<(u8, Located)>,
    /// The up-case table and its checksum.
    pub upcase: Option<(u32, Located)>,
}

/// A structure in clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// Offset of its directory entry.
    pub entry: u64,
    pub first: u32,
    pub length: u64,
}

impl Located {
    fn parse(entry: &Entry, offset: u64) -> Self {
        let (first, length) = (le32_at(entry, 20), le64_at(entry, 24));
        Self { entry: offset, first: first.unwrap_or_default(), length: length.unwrap_or_default() }
    }
}

/// Reads the root directory for its special entries. Verifies the entry of a GUID.
///
/// # Errors
///
/// Fails if the visitor stops the walk.
pub(super) fn read(
    volume: &Volume,
    boot: &BootSector,
    runs: &Runs,
    clusters: u64,
    report: &mut Report<'_>,
) -> Result<Special> {
    let mut special = Special::default();
    let place = Place::Chain { first: boot.root, clusters };
    let directory = Structure::new("directory", 0).of(crate::fat::ROOT);
    let mut buffer = Vec::new();
    entries(volume, runs, place, directory, &mut buffer, report, |report, offset, entry| {
        match entry[0] {
            0 => return ControlFlow::Break(()),
            BITMAP if special.bitmaps.len() < 2 => {
                special.bitmaps.push((entry[1], Located::parse(entry, offset)));
            }
            UPCASE if special.upcase.is_none() => {
                let sum = le32_at(entry, 4).unwrap_or_default();
                special.upcase = Some((sum, Located::parse(entry, offset)));
            }
            GUID => check_guid(entry, offset, report),
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(special)
}

fn check_guid(entry: &Entry, offset: u64, report: &mut Report<'_>) {
    let (computed, stored) = (entries_checksum(&[*entry]), le16_at(entry, 2).unwrap_or_default());
    let structure = Structure::new("volume GUID", offset);
    if computed == stored {
        return report.matched(structure.name, 1, 32);
    }
    report.mismatch(structure, 32, format!("checksum {computed:#06x}, stored {stored:#06x}"));
}

/// Returns the label among the first entries of a root directory.
pub(super) fn label(bytes: &[u8]) -> Option<Vec<u8>> {
    let entries: &[Entry] = bytes.as_chunks().0;
    let mut entries = entries.iter().take_while(|entry| entry[0] != 0);
    let entry = entries.find(|entry| entry[0] == LABEL)?;
    let length = usize::from(entry[1]).min(11);
    let units = entry[2..].as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let mut label = Vec::new();
    append_utf8(units.take(length), &mut label);
    Some(label).filter(|label| !label.is_empty())
}
