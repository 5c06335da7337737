//! What the volume says of itself: label, version, and whether it was unmounted.

use super::attribute::{FileName, is_name, kind, push_utf8};
use super::content::Content;
use super::index::{DIRECTORY, Index, entries_of_block, entries_of_root};
use super::log::Log;
use super::mft::{Disk, number};
use super::record::restore;
use crate::bytes::{le16_at, u8_at};

/// The state of a volume.
#[derive(Debug, Default)]
pub(super) struct State {
    pub label: Option<Vec<u8>>,
    /// Whether the volume asks for a check.
    is_dirty: bool,
    is_hibernated: bool,
    pub log: Log,
}

impl State {
    pub fn read(disk: &Disk) -> Self {
        let mut state = Self { log: Log::read(disk), ..Self::default() };
        let resident = |kind| match disk.content(number::VOLUME, kind, |_| true) {
            Some(Content::Resident(bytes)) => bytes,
            _ => vec![],
        };
        let mut label = vec![];
        push_utf8(&resident(kind::VOLUME_NAME), &mut label);
        state.label = (!label.is_empty()).then_some(label);
        let information = resident(kind::VOLUME_INFORMATION);
        state.is_dirty = le16_at(&information, 10).unwrap_or_default() & 1 != 0;
        state.is_hibernated = is_hibernated(disk).unwrap_or_default();
        state
    }

    /// Returns whether all structures are on the disk, so that those that contradict each other are damaged.
    pub fn is_clean(&self) -> bool {
        !self.is_dirty && !self.is_hibernated && !self.log.is_open()
    }

    /// Returns whether the volume was unmounted, and not merely copied while a program without a log changed it.
    pub fn is_unmounted(&self) -> bool {
        self.is_clean() && self.log.is_closed()
    }

    pub fn remarks(&self) -> Vec<String> {
        let remarks = [
            (
                self.is_dirty,
                "the volume is marked as dirty: it was not unmounted, or is to be checked",
            ),
            (self.log.is_open(), "the log file holds changes that were not made yet"),
            (
                self.is_hibernated,
                "Windows is hibernated, and holds changes that are not on the disk",
            ),
        ];
        remarks.iter().filter(|(applies, _)| *applies).map(|(_, text)| (*text).to_owned()).collect()
    }
}

/// Returns whether a system hibernated on this volume.
fn is_hibernated(disk: &Disk) -> Option<bool> {
    let file = find_in_root(disk, "hiberfil.sys")?;
    let content = disk.content(file, kind::DATA, <[u8]>::is_empty)?;
    let start = content.read(&disk.volume, 4).ok()?;
    Some(start.eq_ignore_ascii_case(b"hibr"))
}

/// Returns the file with a name in ASCII in the top directory.
fn find_in_root(disk: &Disk, name: &str) -> Option<u64> {
    let matches = |key: &[u8]| {
        FileName::parse(key).is_some_and(|it| is_name(&it.name.to_ascii_lowercase(), name))
    };
    let records = disk.file(number::ROOT)?;
    let root =
        Content::find(&records.slices(), kind::INDEX_ROOT, is_directory, &disk.boot).ok()??;
    let root = root.read(&disk.volume, u64::from(u16::MAX)).ok()?;
    if let Some((file, _)) = entries_of_root(&root).find(|(_, key)| matches(key)) {
        return Some(file.number);
    }
    let index = Index::find(&records.slices(), DIRECTORY, &disk.boot).ok()??;
    let bitmap = index.bitmap.read(&disk.volume, MAX_ROOT / 4096).ok()?;
    let mut block = vec![0; index.block];
    let count = index.blocks.size().min(MAX_ROOT) / index.block as u64;
    for number in 0..count {
        let is_used = u8_at(&bitmap, (number / 8) as usize)? >> (number % 8) & 1 != 0;
        let offset = number * index.block as u64;
        if !is_used || index.blocks.read_into(&disk.volume, &mut block, offset).is_err() {
            continue;
        }
        if restore(&mut block, b"INDX").is_err() {
            continue;
        }
        if let Some((file, _)) = entries_of_block(&block).find(|(_, key)| matches(key)) {
            return Some(file.number);
        }
    }
    None
}

/// Returns whether an index belongs to a directory.
pub(super) fn is_directory(name: &[u8]) -> bool {
    name == DIRECTORY
}

/// Maximum part of the top directory that is searched for the file of a hibernation.
/// Limit in bytes.
const MAX_ROOT: u64 = 4 << 20;
