//! Maps guest offsets to runs of host bytes through the BAT and the sector bitmaps.
//!
//! One call reads one window of the BAT, and one of a sector bitmap if its block is partially present.

use std::sync::Arc;

use super::bat::{BITMAP_SIZE, Geometry, Payload, decode_bitmap};
use super::bitmap;
use super::region::Taken;
use crate::caches::LayerCaches;
use crate::error::{Error, Result};
use crate::formats::fields::Entry;
use crate::formats::table_cache::Table;
use crate::layer::GuestRange;
use crate::storage::HostFile;

/// Where a run of guest bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapKind {
    Below,
    Zero,
    /// In the file, from this offset on.
    Data(u64),
}

/// The blocks of an image.
pub(super) struct Blocks {
    /// The file with the changes of its log, if there are any.
    pub file: Arc<HostFile>,
    pub geometry: Geometry,
    pub has_parent: bool,
    /// Offset of the BAT.
    pub bat: u64,
    pub taken: Taken,
    pub caches: LayerCaches,
}

impl Blocks {
    /// Returns the kind and length of the run that begins at the start of `range`.
    pub fn look_up(&self, range: GuestRange) -> Result<(MapKind, u64)> {
        let geometry = &self.geometry;
        let GuestRange { offset: guest, limit, far, is_lowest } = range;
        let mut block = guest / geometry.block_size;
        let within = guest % geometry.block_size;
        let index = geometry.payload_index(block);
        let (window, first) = self.caches.table_entry(&self.file, self.bat_table(), index)?;
        let kind = match self.payload(window[first], block)? {
            Payload::NotPresent => MapKind::Below,
            Payload::Zero if is_lowest => MapKind::Below,
            Payload::Zero => MapKind::Zero,
            Payload::Present(host) => MapKind::Data(host + within),
            Payload::Partial(host) => return self.map_partial(block, host, range),
        };
        let limit = if kind == MapKind::Below { far } else { limit };
        let mut length = geometry.block_size - within;
        while length < limit {
            block += 1;
            let next = geometry.payload_index(block) - index;
            let Some(entry) = window.get(first + next as usize) else { break };
            // An invalid entry ends the run. Looking up its own offset returns the error.
            match self.payload(*entry, block) {
                Ok(next) if continues(kind, length, next, is_lowest) => {
                    length += geometry.block_size;
                }
                _ => break,
            }
        }
        Ok((kind, length.min(limit)))
    }

    /// Maps a part of a block of which only some sectors are present.
    fn map_partial(&self, block: u64, host: u64, range: GuestRange) -> Result<(MapKind, u64)> {
        let geometry = &self.geometry;
        let GuestRange { offset: guest, limit, far, .. } = range;
        let index = geometry.bitmap_index(block);
        let (window, at) = self.caches.table_entry(&self.file, self.bat_table(), index)?;
        let Some(bitmap) = decode_bitmap(window[at]) else {
            let reason = format!("block of guest offset {guest} has no sector bitmap");
            return Err(self.bad_entry(index, &reason));
        };
        self.check_block(bitmap, BITMAP_SIZE)
            .map_err(|reason| self.bad_entry(index, &format!("sector bitmap {reason}")))?;

        let within = guest % geometry.block_size;
        let sector = within / geometry.sector_size;
        let bit = block % geometry.ratio * (geometry.block_size / geometry.sector_size) + sector;
        let table = Table { offset: bitmap, length: BITMAP_SIZE, entry: Entry::Le64 };
        let (words, first) = self.caches.table_entry(&self.file, table, bit / 64)?;
        let left = (geometry.block_size / geometry.sector_size) - sector;
        let (is_present, sectors) = bitmap::run(&words[first..], bit % 64, left);
        let length = sectors * geometry.sector_size - within % geometry.sector_size;
        if is_present {
            Ok((MapKind::Data(host + within), length.min(limit)))
        } else {
            Ok((MapKind::Below, length.min(far)))
        }
    }

    /// Decodes the entry of a payload block. Fails unless the file holds the whole block.
    fn payload(&self, entry: u64, block: u64) -> Result<Payload> {
        let geometry = &self.geometry;
        let error = |reason: &str| {
            let guest = block * geometry.block_size;
            let reason = format!("block of guest offset {guest} {reason}");
            self.bad_entry(geometry.payload_index(block), &reason)
        };
        let Some(payload) = Payload::decode(entry) else {
            return Err(error(&format!("has the unknown state {}", entry & 7)));
        };
        match payload {
            Payload::Partial(_) if !self.has_parent => {
                return Err(error("is partially present, and the image has no parent"));
            }
            Payload::Present(host) | Payload::Partial(host) => {
                self.check_block(host, geometry.bytes_in(block)).map_err(error)?;
            }
            Payload::NotPresent | Payload::Zero => {}
        }
        Ok(payload)
    }

    /// Fails unless a block of `length` bytes is in the file and overlaps no region.
    fn check_block(&self, offset: u64, length: u64) -> Result<(), &'static str> {
        let Some(end) = offset.checked_add(length).filter(|end| *end <= self.file.size()) else {
            return Err("lies past the end of the file");
        };
        if self.taken.overlaps(&(offset..end)) {
            return Err("overlaps another structure of the file");
        }
        Ok(())
    }

    fn bat_table(&self) -> Table {
        Table { offset: self.bat, length: self.geometry.entries * 8, entry: Entry::Le64 }
    }

    /// Creates the error for a BAT entry.
    fn bad_entry(&self, index: u64, reason: &str) -> Error {
        self.file.corrupt(reason).at(self.bat + index * 8)
    }
}

/// Returns whether `next` extends a run of `length` bytes.
fn continues(run: MapKind, length: u64, next: Payload, is_lowest: bool) -> bool {
    match (run, next) {
        (MapKind::Below, Payload::Zero) => is_lowest,
        (MapKind::Below, Payload::NotPresent) | (MapKind::Zero, Payload::Zero) => true,
        (MapKind::Data(host), Payload::Present(next)) => host + length == next,
        _ => false,
    }
}
