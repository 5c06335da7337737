//! Real disks with changes, as sources. Only the bytes that are not zero are kept, so that large disks cost little.

#![allow(dead_code, reason = "each target uses a part of it")]

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use blkimage::{Error, ErrorKind, Extent, ExtentKind, Result, Source};
use flate2::read::ZlibDecoder;

/// Disks, decoded when the first one is used.
pub type Disks = LazyLock<Vec<Disk>>;

type Sector = [u8; SECTOR];

/// A disk that fuzz/images.py wrote.
pub struct Disk {
    size: u64,
    sectors: Arc<BTreeMap<u64, Sector>>,
    /// Numbers of the sectors that have structures.
    structures: Vec<u64>,
}

/// A disk as a source, and how much of it was read.
pub struct Changed {
    size: u64,
    sectors: Arc<BTreeMap<u64, Sector>>,
    changes: BTreeMap<u64, Sector>,
    read: AtomicU64,
}

impl Disk {
    pub fn new(encoded: &[u8]) -> Self {
        let mut bytes = Vec::new();
        ZlibDecoder::new(encoded).read_to_end(&mut bytes).unwrap();
        for at in 2..bytes.len() {
            bytes[at] = bytes[at].wrapping_add(bytes[at - 2]);
        }
        let mut rest = &bytes[..];
        let size = number(&mut rest);
        let mut sectors = BTreeMap::new();
        while !rest.is_empty() {
            let (first, count) = (number(&mut rest), number(&mut rest));
            for index in first..first + count {
                let (sector, next) = rest.split_first_chunk().unwrap();
                sectors.insert(index, *sector);
                rest = next;
            }
        }
        // Data has the same value in all bytes of a sector, structures do not.
        let has_structure = |sector: &Sector| sector.iter().any(|byte| *byte != sector[0]);
        let structures = sectors.iter().filter(|it| has_structure(it.1)).map(|it| *it.0).collect();
        Self { size, sectors: Arc::new(sectors), structures }
    }

    /// Returns the disk with the changes that the input lists. Each has the sector, the place in it, the kind, the width and byte
    /// order, and a value.
    pub fn changed(&self, changes: &[u8]) -> Changed {
        let (size, sectors) = (self.size, self.sectors.clone());
        let mut disk = Changed { size, sectors, changes: BTreeMap::new(), read: AtomicU64::new(0) };
        for change in changes.chunks_exact(CHANGE).take(MAX_CHANGES) {
            self.change(&mut disk, change);
        }
        disk
    }

    fn change(&self, disk: &mut Changed, change: &[u8]) {
        let half = |at: usize| u16::from_le_bytes([change[at], change[at + 1]]);
        let structure = |index: u64| self.structures[index as usize % self.structures.len()];
        let index = structure(half(0).into());
        let (place, value) = (usize::from(half(2)) % SECTOR, &mut [0; 8]);
        value.copy_from_slice(&change[5..]);
        let number = u64::from_le_bytes(*value);
        let width = (1_usize << (change[4] & 3)).min(SECTOR - place);
        let is_big = change[4] & 4 != 0;
        let mut sector = disk.sector(index);
        match change[4] >> 3 {
            0 => disk.size = disk.size.min(index * SECTOR as u64 + place as u64).max(1),
            1 => sector[place] ^= 1 << (number & 7),
            2 => sector = disk.sector(structure(number)),
            3 => add(&mut sector[place..place + width], value[0] as i8, is_big),
            4 => {
                sector.copy_within(number as usize % SECTOR.., place.min(number as usize % SECTOR))
            }
            _ => {
                if is_big {
                    value[..width].reverse();
                }
                sector[place..place + width].copy_from_slice(&value[..width]);
            }
        }
        disk.changes.insert(index, sector);
    }
}

impl Changed {
    /// Returns a disk of any bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut changes = BTreeMap::new();
        for (index, bytes) in bytes.chunks(SECTOR).enumerate() {
            let mut sector = [0; SECTOR];
            sector[..bytes.len()].copy_from_slice(bytes);
            changes.insert(index as u64, sector);
        }
        let size = bytes.len() as u64;
        Self { size, sectors: Arc::default(), changes, read: AtomicU64::new(0) }
    }

    /// Returns the number of bytes that were read since the last call.
    pub fn take_read(&self) -> u64 {
        self.read.swap(0, Ordering::Relaxed)
    }

    fn sector(&self, index: u64) -> Sector {
        self.changes
            .get(&index)
            .or_else(|| self.sectors.get(&index))
            .copied()
            .unwrap_or([0; SECTOR])
    }

    /// Returns the number of the first sector from `index` on that may not be zero.
    fn next(&self, index: u64) -> Option<u64> {
        let keys = [self.changes.range(index..).next(), self.sectors.range(index..).next()];
        keys.into_iter().flatten().map(|(index, _)| *index).min()
    }
}

impl Source for Changed {
    fn size(&self) -> u64 {
        self.size
    }

    fn extent(&self, offset: u64, limit: u64) -> Result<Extent> {
        let (index, end) = (offset / SECTOR as u64, self.size.min(offset.saturating_add(limit)));
        let next = self.next(index).map_or(u64::MAX, |next| next * SECTOR as u64);
        let (kind, end) = match next <= offset {
            true => (ExtentKind::Data, end.min((index + 1) * SECTOR as u64)),
            false => (ExtentKind::Zero, end.min(next)),
        };
        Ok(Extent { offset, length: end - offset, kind })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= self.size);
        let end = end.ok_or_else(|| Error::new(ErrorKind::Io, "fuzz", "past the end"))?;
        self.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        buf.fill(0);
        let mut at = offset;
        while at < end {
            let Some(next) = self.next(at / SECTOR as u64) else { break };
            at = at.max(next * SECTOR as u64);
            if at >= end {
                break;
            }
            let within = at as usize % SECTOR;
            let length = (SECTOR - within).min((end - at) as usize);
            let place = (at - offset) as usize;
            let sector = self.sector(next);
            buf[place..place + length].copy_from_slice(&sector[within..within + length]);
            at += length as u64;
        }
        Ok(())
    }
}

/// Returns the disk that an input names with its first byte: one of `disks` with the changes that follow, or the bytes that follow.
pub fn of_input(disks: &[Disk], data: &[u8]) -> Option<Changed> {
    let (choice, rest) = data.split_first()?;
    Some(match disks.get(usize::from(*choice) % (disks.len() + 1)) {
        Some(disk) => disk.changed(rest),
        None => Changed::of(rest),
    })
}

/// Returns whether an input has no changes.
pub fn is_whole(disks: &[Disk], data: &[u8]) -> bool {
    usize::from(data[0]) % (disks.len() + 1) < disks.len() && data.len() <= CHANGE
}

/// Asserts that a message is one line.
pub fn assert_one_line(message: &str) {
    assert!(!message.chars().any(char::is_control), "{message:?}");
}

fn number(rest: &mut &[u8]) -> u64 {
    let (number, next) = rest.split_first_chunk().unwrap();
    *rest = next;
    u64::from_le_bytes(*number)
}

/// Adds to a number of up to 8 bytes.
fn add(bytes: &mut [u8], summand: i8, is_big: bool) {
    let mut number = [0; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    if is_big {
        number[..bytes.len()].reverse();
    }
    number = u64::from_le_bytes(number).wrapping_add_signed(summand.into()).to_le_bytes();
    if is_big {
        number[..bytes.len()].reverse();
    }
    bytes.copy_from_slice(&number[..bytes.len()]);
}

const SECTOR: usize = 512;

/// Length of a change in the input.
const CHANGE: usize = 13;

/// Maximum number of changes that are made.
const MAX_CHANGES: usize = 64;
