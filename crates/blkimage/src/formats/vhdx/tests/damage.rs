//! Random logs, of which a bit is flipped or the newest entry is torn.
//!
//! What is replayed is compared with a model of the disk, which knows what each entry changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::formats::vhdx::guid::Guid;
use crate::formats::vhdx::header::Header;
use crate::formats::vhdx::log::{Content, Log};
use crate::storage::{HostFile, Memory, Storage};

const SECTOR: usize = 4096;
const RING: usize = MIB as usize / SECTOR;

/// The sectors of a disk that are not zero, by number.
type Disk = BTreeMap<u64, Vec<u8>>;

/// The log of a disk that was not closed.
struct Case {
    /// A file with nothing but the log.
    file: Vec<u8>,
    /// The content of the disk.
    disk: Disk,
    /// The entries from the tail of the newest on, each with its first sector in the ring.
    live: Vec<(usize, LogEntry)>,
    /// The ring before the newest entry was written.
    before: Vec<u8>,
}

impl Case {
    /// Writes entries into a new ring, around its end, of which up to 30 are not in place.
    fn new(random: &mut Random) -> Self {
        let limit = random.below(30) + 1;
        let largest = [2, 4, 12][random.below(3)];
        let mut case = Self {
            file: vec![0; 2 * MIB as usize],
            disk: Disk::new(),
            live: vec![],
            before: vec![],
        };
        let mut at = random.below(RING);
        let first = [1, (1 << 32) - 7, 1 << 40][random.below(3)];
        for sequence in first..first + limit as u64 + random.below(80) as u64 {
            let changes: Vec<_> = (0..random.below(largest)).map(|_| change(random)).collect();
            let mut entry = LogEntry::new(sequence, 0, &changes);
            let length = entry.encode().len() / SECTOR;
            // The space of entries that are in place is used again.
            let used = |live: &[(usize, LogEntry)]| {
                live.first().map_or(0, |(tail, _)| (at + RING - tail) % RING + length + 1)
            };
            while case.live.len() >= limit || used(&case.live) > RING {
                let (_, done) = case.live.remove(0);
                apply(&mut case.disk, &done);
            }
            entry.tail = case.live.first().map_or(at, |(tail, _)| *tail) as u32;
            case.before.clone_from(&case.file);
            write(&mut case.file, at, &entry.encode());
            case.live.push((at, entry));
            at = (at + length) % RING;
        }
        case
    }

    /// Returns the disk after the first `count` live entries were replayed.
    fn after(&self, count: usize) -> Disk {
        let mut disk = self.disk.clone();
        for (_, entry) in &self.live[..count] {
            apply(&mut disk, entry);
        }
        disk
    }

    /// Replays a log on what is in place.
    fn replay(&self, file: Vec<u8>) -> crate::Result<Disk> {
        let file = HostFile::new("log".into(), Box::new(Memory(file)), Arc::default());
        let log = Log::new(&file, &HEADER)?;
        let mut disk = self.disk.clone();
        for entry in log.active_sequence()? {
            log.for_each_descriptor(entry, |change| {
                let number = change.offset / SECTOR as u64;
                match change.content {
                    Content::Zeros { length } => zero(&mut disk, number, length),
                    Content::Sector(logged) => {
                        let mut sector = vec![0; SECTOR];
                        file.read_exact_at(&mut sector, logged.log_offset)?;
                        sector[..8].copy_from_slice(&logged.leading);
                        sector[SECTOR - 4..].copy_from_slice(&logged.trailing);
                        disk.insert(number, sector);
                    }
                }
                Ok(())
            })?;
        }
        Ok(disk)
    }

    /// Returns the file with some sectors of 512 bytes of the newest entry as they were before.
    fn torn(&self, is_written: impl Fn(usize, usize) -> bool) -> Vec<u8> {
        let (start, entry) = self.live.last().unwrap();
        let mut file = self.before.clone();
        let bytes = entry.encode();
        let count = bytes.len() / 512;
        for (index, part) in bytes.chunks(512).enumerate() {
            if is_written(index, count) {
                let place = LOG as usize + (start * SECTOR + index * 512) % MIB as usize;
                file[place..place + 512].copy_from_slice(part);
            }
        }
        file
    }
}

fn change(random: &mut Random) -> Change {
    let offset = (4 + random.below(8) as u64) * SECTOR as u64;
    match random.below(4) {
        0 => Change::Zeros(offset, random.below(4) as u64 * SECTOR as u64),
        _ => Change::Data(offset, (0..SECTOR).map(|_| random.next() as u8).collect()),
    }
}

fn apply(disk: &mut Disk, entry: &LogEntry) {
    for change in &entry.changes {
        match change {
            Change::Zeros(offset, length) => zero(disk, offset / SECTOR as u64, *length),
            Change::Data(offset, sector) => {
                disk.insert(offset / SECTOR as u64, sector.clone());
            }
        }
    }
}

fn zero(disk: &mut Disk, number: u64, length: u64) {
    for number in number..number + length / SECTOR as u64 {
        disk.remove(&number);
    }
}

fn write(file: &mut [u8], start: usize, entry: &[u8]) {
    for (index, sector) in entry.chunks(SECTOR).enumerate() {
        let at = LOG as usize + (start + index) % RING * SECTOR;
        file[at..at + SECTOR].copy_from_slice(sector);
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Names the log of a case.
const HEADER: Header =
    Header { data_write: Guid::ZERO, log: Guid(LOG_GUID), log_offset: LOG, log_length: MIB };

/// A file with one flipped bit.
struct Flipped {
    file: Arc<Vec<u8>>,
    byte: usize,
    bit: usize,
}

impl Storage for Flipped {
    fn size(&self) -> u64 {
        self.file.len() as u64
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let offset = offset as usize;
        buf.copy_from_slice(&self.file[offset..offset + buf.len()]);
        if let Some(byte) = self.byte.checked_sub(offset).and_then(|at| buf.get_mut(at)) {
            *byte ^= 1 << self.bit;
        }
        Ok(buf.len())
    }
}

/// Returns the number of logs to try.
fn count(default: u64) -> u64 {
    std::env::var("LOGS").map_or(default, |count| count.parse().unwrap())
}

#[test]
fn flipped_bits() {
    let (mut whole, mut refused) = (0, 0);
    for seed in 0..count(40) {
        let mut random = Random(seed);
        let case = Case::new(&mut random);
        let expected = case.after(case.live.len());
        assert!(case.replay(case.file.clone()).unwrap() == expected, "{seed}");
        // Some bits of everything, and some of what entries and sectors begin and end with.
        for flip in 0..60 {
            let (start, entry) = &case.live[random.below(case.live.len())];
            let length = entry.encode().len();
            let byte = match flip % 3 {
                0 => random.below(length),
                1 => random.below(64 + entry.changes.len() * 32),
                _ => {
                    (random.below(length / SECTOR + 1) * SECTOR + length + random.below(16) - 8)
                        % length
                }
            };
            let mut file = case.file.clone();
            let place = LOG as usize + (start * SECTOR + byte) % MIB as usize;
            file[place] ^= 1 << random.below(8);
            match case.replay(file) {
                Ok(disk) => {
                    assert!(disk == expected, "{seed}: byte {byte} of {}", entry.sequence);
                    whole += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    refused += 1;
                }
            }
        }
    }
    println!("{whole} flips left the content as it is, {refused} were refused");
    assert!(refused > 0 && whole == 0);
}

#[test]
fn flipped_bits_of_the_only_entry() {
    // All bits of what the sectors begin with, and some of the others. `LOGS` has all of them tried.
    let step = if count(1) > 1 { 1 } else { 509 };
    let sectors = |count: u64| (0..count).map(|index| 4 * MIB + index * SECTOR as u64);
    let zeros = sectors(126).map(|offset| Change::Zeros(offset, SECTOR as u64));
    let data = sectors(2).map(|offset| Change::Data(offset, vec![7; SECTOR]));
    let changes: Vec<_> = zeros.chain(data).collect();
    for (start, changes) in [(9, &changes[126..]), (254, &changes)] {
        let mut file = vec![0; 2 * MIB as usize];
        let entry = LogEntry::new(1, start as u32, changes).encode();
        write(&mut file, start, &entry);
        let file = Arc::new(file);
        let is_near = |bit: &usize| bit % (SECTOR * 8) < if *bit < SECTOR * 8 { 768 } else { 128 };
        for bit in (0..entry.len() * 8).filter(|bit| is_near(bit) || bit % step == 0) {
            let place = LOG as usize + (start * SECTOR + bit / 8) % MIB as usize;
            let flipped = Flipped { file: file.clone(), byte: place, bit: bit % 8 };
            let flipped = HostFile::new("log".into(), Box::new(flipped), Arc::default());
            let error = Log::new(&flipped, &HEADER).unwrap().active_sequence().err();
            let error = error.unwrap_or_else(|| panic!("{start}: bit {bit} is overlooked"));
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            // A length is named by its first byte.
            let named = if (8..12).contains(&(bit / 8)) { place - bit / 8 + 8 } else { place };
            assert_eq!(error.offset(), Some(named as u64), "{start}: bit {bit}");
            assert!(error.to_string().contains("its only entry is damaged"), "{error}");
        }
    }
}

#[test]
fn torn_newest_entries() {
    let mut torn = 0;
    for seed in 0..count(40) {
        let mut random = Random(seed);
        let case = Case::new(&mut random);
        let last = case.live.len() - 1;
        let (old, new) = (case.after(last), case.after(last + 1));
        let cut = random.below(256);
        let (one, other) = (random.next(), random.next());
        let patterns: [&dyn Fn(usize, usize) -> bool; 8] = [
            &|_, _| false,
            // Up to a place, and from a place on.
            &|index, count| index < count * cut / 256,
            &|index, count| index >= count * cut / 256,
            &|index, _| index < 1,
            &|index, count| index + 1 < count,
            // Some sectors of the log.
            &|index, _| one >> (index / 8 % 64) & 1 == 1,
            &|index, _| other >> (index / 8 % 64) & 1 == 1,
            &|index, _| index / 8 != 0,
        ];
        for (pattern, is_written) in patterns.iter().enumerate() {
            let file = case.torn(is_written);
            let is_whole = file == case.file;
            match case.replay(file) {
                Ok(disk) => {
                    assert!(disk == *if is_whole { &new } else { &old }, "{seed}, {pattern}");
                }
                Err(error) => panic!("{seed}, {pattern}: {error}"),
            }
            torn += u64::from(!is_whole);
        }
    }
    println!("{torn} torn entries");
    assert!(torn > 0);
}
