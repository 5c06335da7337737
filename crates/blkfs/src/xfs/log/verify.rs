//! Reads the records that would be replayed: verifies their CRCs, and collects the blocks that they concern.

use super::items::Items;
use super::record::{BLOCK, Header, check, is_complete, unpack};
use super::{Log, Place, Range, State, read_ring};
use crate::error::Result;
use crate::volume::Volume;
use crate::xfs::structure::Structure;
use crate::xfs::superblock::Superblock;
use crate::xfs::walk::{self, Walk};

/// What a walk over records does with each.
type Each<'f> = dyn FnMut(u64, &Header, &mut [u8]) -> Result<()> + 'f;

impl Log {
    /// Calls `each` with the records from the tail to the head. Returns whether it reached the head.
    fn records(volume: &Volume, place: Place, range: Range, each: &mut Each<'_>) -> Result<bool> {
        let (mut at, mut left) = (range.tail & 0xffff_ffff, place.blocks);
        let mut record = Vec::new();
        let mut block = [0; BLOCK];
        while at != range.head {
            if at >= place.blocks {
                return Ok(false);
            }
            read_ring(volume, place, at, &mut block)?;
            let Some(header) = Header::parse(&block).filter(|it| it.blocks() <= left) else {
                return Ok(false);
            };
            left -= header.blocks();
            record.resize(header.blocks() as usize * BLOCK, 0);
            read_ring(volume, place, at, &mut record)?;
            each(at, &header, &mut record)?;
            at = (at + header.blocks()) % place.blocks;
        }
        Ok(true)
    }

    /// Reads the blocks that the records concern, unless they are known.
    pub fn collect(&self, volume: &Volume, superblock: &Superblock) {
        if let (Some(place), State::Dirty { range: Some(range), items }) = (self.place, &self.state)
        {
            items.get_or_init(|| Self::items(volume, place, *range, superblock));
        }
    }

    fn items(volume: &Volume, place: Place, range: Range, superblock: &Superblock) -> Items {
        let mut items = Items::default();
        let is_whole = Self::records(volume, place, range, &mut |_, header, record| {
            unpack(record, header);
            let data = record.get(header.header_blocks() as usize * BLOCK..).unwrap_or_default();
            let data = &data[..data.len().min(header.length as usize)];
            items.scan(data, header.is_big_endian, superblock);
            Ok(())
        });
        if !matches!(is_whole, Ok(true)) {
            items.set_partial();
        }
        items
    }
}

impl Walk<'_> {
    /// Verifies the records that recovery would judge.
    pub fn log_records(&mut self) -> Result<()> {
        let (log, volume) = (self.log(), &self.fs.volume);
        let (Some(place), State::Dirty { range: Some(range), .. }) = (log.place, &log.state) else {
            return Ok(());
        };
        let mut bad = Vec::new();
        let mut count = 0;
        let result = Log::records(volume, place, *range, &mut |at, header, record| {
            count += 1;
            let before_end = place.blocks - at;
            if let Err(reason) = check(record, header) {
                // Others are of a copy that was made while they were written.
                if is_complete(record, header, before_end) && bad.len() < MAX_BAD {
                    bad.push((count, at, record.len() as u64, reason));
                }
            } else {
                self.matched(Structure::LogRecord, record.len() as u64);
            }
            self.count_read(record.len() as u64)
        });
        if let Err(crate::Error::Cancelled) = result {
            return result.map(drop);
        }
        for (number, at, length, reason) in bad {
            // Recovery takes the last records for ones that were not completely written.
            if number + IN_FLIGHT <= count {
                let offset = place.offset + at * BLOCK as u64;
                let structure = Structure::LogRecord.name();
                self.mismatch(walk::Place { structure, offset, object: None }, length, reason);
            }
        }
        Ok(())
    }
}

/// Number of records before the head that may be incomplete.
const IN_FLIGHT: u64 = 8;

/// Maximum number of damaged records that are reported.
/// Limit in records.
const MAX_BAD: usize = 256;
