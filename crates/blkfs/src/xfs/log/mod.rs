//! The log: where it is, and whether it holds changes that were not written in place yet.
//!
//! A log is a ring of blocks of 512 bytes. Each begins with the number of the cycle in which it was written, so the head is
//! where the number falls. An unmount writes a last record that says so. After any other, changes have to be replayed
//! from the tail to the head, and until then blocks in place may be older than others that refer to them.

mod items;
mod record;
mod verify;

use std::sync::OnceLock;

use super::superblock::Superblock;
use crate::bytes::u8_at;
use crate::error::Result;
use crate::volume::Volume;
use items::Items;
use record::{BLOCK, Header, cycle};

/// The log of a file system.
#[derive(Debug)]
pub struct Log {
    place: Option<Place>,
    state: State,
}

/// The bytes of an internal log.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Offset in the file system in bytes.
    pub offset: u64,
    /// Number of blocks of 512 bytes.
    pub blocks: u64,
}

#[derive(Debug)]
enum State {
    /// The file system was unmounted.
    Clean,
    /// Changes were not replayed. Blocks that they concern are in `items`.
    Dirty { range: Option<Range>, items: OnceLock<Items> },
    /// The log is on another device, or cannot be read.
    Unknown,
}

/// The part of the log that would be replayed.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// The first record, as a cycle and a block.
    tail: u64,
    /// The block after the last record.
    head: u64,
}

impl Log {
    /// Finds the state of the log.
    pub fn open(volume: &Volume, superblock: &Superblock) -> Self {
        let place = Self::locate(superblock);
        let state = match place {
            Some(place) => Self::state(volume, place).unwrap_or(State::Unknown),
            None => State::Unknown,
        };
        Self { place, state }
    }

    fn locate(superblock: &Superblock) -> Option<Place> {
        let log = superblock.log;
        if log.start == 0 || log.blocks == 0 {
            return None;
        }
        let first = superblock.run(log.start, log.blocks.into())?;
        let (offset, length) = (superblock.offset(first), superblock.bytes(log.blocks.into()));
        Some(Place { offset, blocks: length / BLOCK as u64 })
    }

    fn state(volume: &Volume, place: Place) -> Result<State> {
        let Some(head) = find_head(volume, place)? else { return Ok(State::Clean) };
        let dirty = |range| State::Dirty { range, items: OnceLock::new() };
        let Some((at, last)) = last_record(volume, place, head)? else { return Ok(dirty(None)) };
        let end = (at + last.blocks()) % place.blocks;
        if end == head % place.blocks && last.operations == 1 {
            let data = (at + last.header_blocks()) % place.blocks;
            let first = volume.read(place.offset + data * BLOCK as u64, BLOCK)?;
            if u8_at(&first, 9).is_some_and(|flags| flags & UNMOUNT != 0) {
                return Ok(State::Clean);
            }
        }
        Ok(dirty(Some(Range { tail: last.tail_lsn, head: head % place.blocks })))
    }

    /// Returns the bytes of an internal log.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// Returns whether blocks in place may be older or newer than others.
    pub fn may_be_newer(&self) -> bool {
        !matches!(self.state, State::Clean)
    }

    /// Returns whether a block whose CRC does not match may have been half written, or copied while it was written.
    pub fn is_in_motion(&self, offset: u64, length: u64, lsn: u64) -> bool {
        match &self.state {
            State::Clean | State::Unknown => false,
            State::Dirty { range: None, .. } => true,
            State::Dirty { range: Some(range), items } => {
                // Blocks that are not logged have the largest number.
                (lsn >= range.tail && lsn != u64::MAX)
                    || length > ATOMIC
                    || items.get().is_some_and(|items| items.contains(offset, length))
            }
        }
    }

    /// Returns what a user should know.
    pub fn remark(&self) -> Option<&'static str> {
        match (&self.state, self.place) {
            (State::Clean, _) => None,
            (State::Dirty { .. }, _) => Some(
                "the log was not replayed: the newest changes are only there, and parts may not fit together",
            ),
            (State::Unknown, None) => Some(
                "the log is on another device: if it was not replayed, parts may not fit together",
            ),
            (State::Unknown, Some(_)) => Some("the log cannot be read"),
        }
    }
}

/// Returns the block after the newest one, or `None` if nothing was ever written.
fn find_head(volume: &Volume, place: Place) -> Result<Option<u64>> {
    let mut block = [0; BLOCK];
    let mut cycle_at = |number: u64| -> Result<u32> {
        volume.read_into(&mut block, place.offset + number * BLOCK as u64)?;
        Ok(cycle(&block))
    };
    let (first, last) = (cycle_at(0)?, cycle_at(place.blocks - 1)?);
    if first == 0 {
        return Ok(None);
    }
    if first == last {
        return Ok(Some(place.blocks));
    }
    // The first block is of the newest cycle, the last of the one before.
    let (mut low, mut high) = (0, place.blocks - 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if cycle_at(middle)? == first { low = middle } else { high = middle }
    }
    Ok(Some(high))
}

/// Returns the last record before the head, and its block.
fn last_record(volume: &Volume, place: Place, head: u64) -> Result<Option<(u64, Header)>> {
    let window = place.blocks.min(WINDOW);
    let mut bytes = vec![0; window as usize * BLOCK];
    read_ring(volume, place, (head + place.blocks - window) % place.blocks, &mut bytes)?;
    for (index, block) in bytes.chunks_exact(BLOCK).enumerate().rev() {
        let number = (head + place.blocks - window + index as u64) % place.blocks;
        if let Some(header) = Header::parse(block)
            && header.lsn & 0xffff_ffff == number
            && header.lsn >> 32 == u64::from(header.cycle)
        {
            return Ok(Some((number, header)));
        }
    }
    Ok(None)
}

/// Reads blocks of the ring from `first` on.
fn read_ring(volume: &Volume, place: Place, first: u64, bytes: &mut [u8]) -> Result<()> {
    let before_end = (place.blocks - first).saturating_mul(BLOCK as u64);
    let split = usize::try_from(before_end).unwrap_or(usize::MAX).min(bytes.len());
    let (start, rest) = bytes.split_at_mut(split);
    volume.read_into(start, place.offset + first * BLOCK as u64)?;
    volume.read_into(rest, place.offset)
}

/// Flag of an operation: the file system was unmounted.
const UNMOUNT: u8 = 0x20;

/// Maximum distance of the last record from the head: eight buffers of 256 KiB with their headers.
/// Limit in sectors.
const WINDOW: u64 = 4160;

/// Size of a write that a copy of a live file system cannot catch half done, in bytes.
const ATOMIC: u64 = 4096;
