//! Logs that were not replayed.

use super::*;
use crate::formats::vhdx::log::MAX_LOG;
use crate::formats::vhdx::replay::MAX_DESCRIPTORS;

/// Returns the sector of the BAT with these entries.
fn bat(entries: &[u64]) -> Vec<u8> {
    let mut sector: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    sector.resize(4096, 0);
    sector
}

/// An image with two blocks of data, whose BAT is only in the log.
fn dirty() -> (Builder, Change) {
    let mut builder = image();
    let one = builder.block(1);
    let two = builder.block(2);
    builder.dirty();
    (builder, Change::Data(BAT, bat(&[one | PRESENT, two | PRESENT])))
}

#[test]
fn log_is_replayed() {
    let (mut builder, change) = dirty();
    builder.map(0, 4 | 1 << 60);
    builder.log(0, &LogEntry::new(1, 0, &[change]));
    assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
    assert_eq!(byte(&builder, 2 * MIB), 0);
    // The log of an image that was closed is not read.
    for at in HEADERS {
        builder.put(at + 48, &[0; 16]);
    }
    assert!(builder.open().unwrap().read_exact_at(&mut [0], 0).is_err());
}

#[test]
fn log_with_several_entries() {
    let (mut builder, change) = dirty();
    let one = 4 * MIB;
    let next = builder.log(0, &LogEntry::new(1, 0, &[change]));
    let next = builder.log(next, &LogEntry::new(2, 0, &[Change::Data(BAT, bat(&[one | PRESENT]))]));
    builder.log(next, &LogEntry::new(3, 0, &[Change::Zeros(one + 4096, 8192)]));
    assert_eq!(byte(&builder, MIB), 0);
    assert_eq!(bytes(&builder, 4095, 2), [1, 0]);
    assert_eq!(bytes(&builder, 4096 + 8191, 2), [0, 1]);
    let image = builder.open().unwrap();
    assert_eq!(image.extent(0, 8 * MIB).unwrap().length, MIB);
}

#[test]
fn log_that_wraps_around() {
    for start in [250, 253, 254, 255, 0] {
        let (mut builder, change) = dirty();
        let filler = Change::Zeros(BAT + 4096, 4096);
        let tail = builder.log(start, &LogEntry::new(8, 17, &[filler]));
        let next = builder.log(tail, &LogEntry::new(9, tail as u32, &[change]));
        builder.log(next, &LogEntry::new(10, tail as u32, &[]));
        assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2], "{start}");
    }
}

#[test]
fn entries_before_the_tail_are_in_place() {
    let (mut builder, change) = dirty();
    // Replaying the first entry would give a block that is not in the file.
    let wrong = Change::Data(METADATA, vec![0xff; 4096]);
    let tail = builder.log(0, &LogEntry::new(1, 0, &[wrong]));
    builder.log(tail, &LogEntry::new(2, tail as u32, &[change]));
    assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
}

#[test]
fn newest_sequence() {
    for (old, new) in [(0, 100), (100, 0)] {
        let (mut builder, change) = dirty();
        let wrong = Change::Data(METADATA, vec![0xff; 4096]);
        builder.log(old, &LogEntry::new(5, old as u32, &[wrong]));
        builder.log(new, &LogEntry::new(1 << 40, new as u32, &[change]));
        assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
    }
}

#[test]
fn sequence_whose_tail_is_lost() {
    let (mut builder, change) = dirty();
    builder.log(10, &LogEntry::new(9, 5, std::slice::from_ref(&change)));
    corrupt(&builder, "no valid sequence");
    // An older sequence that is whole is not what the newest one continues.
    builder.log(100, &LogEntry::new(2, 100, &[change]));
    corrupt(&builder, "its entry 3 is damaged or lost, and entry 9 is valid");
}

/// An image with two entries in its log, and the bytes and the first sector of the newest.
fn two_entries() -> (Builder, Vec<u8>, u64) {
    let (mut builder, change) = dirty();
    let next = builder.log(0, &LogEntry::new(1, 0, &[change]));
    let last = LogEntry::new(2, 0, &[Change::Data(METADATA, vec![0xff; 4096])]);
    builder.log(next, &last);
    corrupt(&builder, "metadata");
    (builder, last.encode(), next)
}

/// Changes the newest of two entries.
fn spoilt(spoil: impl Fn(&mut Vec<u8>)) -> Builder {
    let (mut builder, mut bytes, at) = two_entries();
    spoil(&mut bytes);
    builder.put(LOG + at * 4096, &bytes);
    builder
}

#[test]
fn entry_that_is_torn() {
    for (from, to) in [(0, 512), (0, 4096), (0, 8192), (512, 8192), (4096, 8192), (7680, 8192)] {
        for byte in [0, 0x55] {
            let mut builder = spoilt(|bytes| bytes[from..to].fill(byte));
            assert_eq!(super::byte(&builder, 0), 1, "{from} to {to}");
            // The first entry, at which the torn one says that the log begins, is lost.
            builder.put(LOG, &[0; 4096]);
            if from > 0 {
                corrupt(&builder, "no valid sequence");
            }
        }
    }
    // An older entry in place of the last sector.
    let older = LogEntry::new(1, 0, &[]).encode();
    assert_eq!(byte(&spoilt(|bytes| bytes[4096..].copy_from_slice(&older)), 0), 1);
    // An entry of another log.
    assert_eq!(byte(&spoilt(|bytes| bytes[32..48].fill(1)), 0), 1);
}

#[test]
fn log_without_entries() {
    // A header announces a log before its first entry is written. Entries of an earlier log remain.
    for earlier in [&[][..], &[0], &[0, 2, 254]] {
        let (mut builder, change) = dirty();
        for &at in earlier {
            builder.log(at, &LogEntry::new(1, at as u32, std::slice::from_ref(&change)));
        }
        builder.bytes[HEADERS[0] as usize + 50] ^= 0x42;
        builder.bytes[HEADERS[1] as usize + 50] ^= 0x42;
        assert_eq!(byte(&builder, 0), 0);
    }
}

#[test]
fn only_entry_that_is_torn() {
    for start in [0, 3, 255] {
        for (from, to) in [(0, 8192), (0, 512), (0, 4096), (512, 8192), (4096, 8192), (7680, 8192)]
        {
            let (mut builder, change) = dirty();
            // One bit of a number would look like damage.
            let whole = LogEntry::new(3, start as u32, &[change]);
            // An earlier log has an entry with the same sequence number in the same place.
            let mut earlier =
                LogEntry::new(3, start as u32, &[Change::Data(BAT, vec![0x33; 4096])]);
            for fill in 0..3 {
                builder.log(start, &whole);
                assert_eq!(byte(&builder, 0), 1);
                let mut old = earlier.encode();
                old[32..48].fill(7);
                let mut bytes = whole.encode();
                match fill {
                    0 | 1 => bytes[from..to].fill(fill * 0x55),
                    _ => bytes[from..to].copy_from_slice(&old[from..to]),
                }
                for (index, sector) in bytes.chunks(4096).enumerate() {
                    builder.put(LOG + (start + index as u64) % 256 * 4096, sector);
                }
                assert_eq!(byte(&builder, 0), 0, "{start}, {from} to {to}");
            }
            // It is not the only one that was written.
            earlier.tail = (start as u32 + 4) % 256;
            builder.log(start, &earlier);
            builder.bytes[(LOG + start * 4096 + 600) as usize] ^= 3;
            corrupt(&builder, "no valid sequence");
        }
    }
}

#[test]
fn many_entries_that_are_torn() {
    // Each of them might be the rest of the log, with one bit flipped.
    let (mut builder, _) = dirty();
    for sector in 0..256 {
        let mut bytes = LogEntry::new(256 - sector, sector as u32, &[]).encode();
        bytes[8..12].copy_from_slice(&(200 * 4096_u32).to_le_bytes());
        builder.put(LOG + sector * 4096, &bytes);
    }
    corrupt(&builder, "its entries overlap");
}

#[test]
fn newest_entry_that_is_damaged() {
    for at in (0..66).chain((66..8192).step_by(97)).chain([4096, 8191]) {
        let builder = spoilt(|bytes| bytes[at] ^= 1 << (at % 8));
        corrupt(&builder, "its entry 2, the newest, is damaged");
    }
    // More than one bit, in sectors that were all written.
    for range in [4..8, 4096 + 8..4096 + 16, 5000..6000] {
        let builder = spoilt(|bytes| bytes[range.clone()].fill(7));
        corrupt(&builder, "its entry 2, the newest, is damaged");
    }
    // A length that is not possible.
    for length in [0, 1, 4096 + 1, u32::MAX] {
        let builder = spoilt(|bytes| bytes[8..12].copy_from_slice(&length.to_le_bytes()));
        corrupt(&builder, "its entry 2, the newest, is damaged");
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let (_, _, next) = two_entries();
    for at in [0, 8, 40, 70, 4095, 4096, 8191] {
        let error = spoilt(|bytes| bytes[at] ^= 0x10).open().err().unwrap();
        assert_eq!(error.offset(), Some(LOG + next * 4096 + at as u64), "{error}");
    }
}

#[test]
fn entry_before_the_newest_that_is_damaged() {
    for damaged in 1..=4 {
        let (mut builder, change) = dirty();
        let mut at = 7;
        for sequence in 1..=5 {
            let entry = LogEntry::new(sequence, 7, std::slice::from_ref(&change));
            let next = builder.log(at, &entry);
            if sequence == damaged {
                builder.bytes[(LOG + at * 4096 + 5000) as usize] ^= 1;
            }
            at = next;
        }
        let says = format!("its entry {damaged} is damaged or lost, and entry 5 is valid");
        corrupt(&builder, if damaged == 1 { "no valid sequence" } else { &says });
        // Entries before the tail are in place, whatever became of them.
        let end = builder.log(at, &LogEntry::new(6, at as u32, &[change]));
        assert_eq!((end, byte(&builder, 0)), (at + 2, 1));
    }
}

#[test]
fn entry_with_a_valid_checksum_that_is_not_valid() {
    for (at, value) in [
        (8, &[0, 0x30][..]),
        (12, &[1]),
        (14, &[0x10]),
        (16, &[0; 8]),
        (16, &[3]),
        (24, &[2]),
        (24, &[0xff; 4]),
        (64, b"dust"),
        (64 + 16, &[1]),
        (64 + 24, &[1]),
        (4096, b"dust"),
        (4096, b"loge"),
        (4096 + 4, &[1]),
        (8191, &[1]),
    ] {
        let mut builder = spoilt(|bytes| {
            bytes[at..at + value.len()].copy_from_slice(value);
            seal(bytes);
        });
        if at == 8 {
            // It has a sector more, and neither checksum nor sectors say that this was torn.
            corrupt(&builder, "its entry 2, the newest, is damaged");
            continue;
        }
        corrupt(&builder, "is not valid although its checksum matches");
        // Nor is it skipped if it is the only one, or is elsewhere.
        builder.put(LOG, &[0; 4096]);
        corrupt(&builder, "is not valid although its checksum matches");
    }
}

#[test]
fn entries_that_overlap() {
    // Each of them claims the rest of the log.
    let (mut builder, change) = dirty();
    builder.log(0, &LogEntry::new(9, 0, &[change]));
    for sector in 2..200 {
        let mut bytes = LogEntry::new(8, 0, &[]).encode();
        bytes[8..12].copy_from_slice(&(50 * 4096_u32).to_le_bytes());
        builder.put(LOG + sector * 4096, &bytes);
    }
    corrupt(&builder, "its entries overlap");
}

#[test]
fn entry_with_many_descriptors() {
    // 126 descriptors fit in the first sector and 128 in each other.
    for count in [125, 126, 127, 253, 254, 255, 600] {
        let (mut builder, change) = dirty();
        let zeros = (1..count).map(|index| Change::Zeros(BAT + index * 4096 % MIB, 4096));
        let changes: Vec<_> = zeros.chain([change]).collect();
        builder.log(3, &LogEntry::new(1, 3, &changes));
        assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2], "{count}");
    }
}

#[test]
fn changes_over_changes() {
    let (mut builder, _) = dirty();
    let (one, fill) = (4 * MIB, |byte| vec![byte; 4096]);
    builder.map(0, one | PRESENT);
    let changes = [
        Change::Data(one, fill(10)),
        Change::Zeros(one, 5 * 4096),
        Change::Data(one + 8192, fill(11)),
        Change::Data(one + 5 * 4096, fill(12)),
        Change::Zeros(one + 4 * 4096, 3 * 4096),
        Change::Data(one + 6 * 4096, fill(13)),
        Change::Data(one + 8 * 4096, (0..4096).map(|at| at as u8).collect()),
        Change::Zeros(one + MIB - 4096, 4096),
        Change::Zeros(one, 0),
    ];
    builder.log(0, &LogEntry::new(1, 0, &changes));
    let found = bytes(&builder, 0, MIB as usize);
    let sectors: Vec<_> = found.chunks(4096).map(|sector| (sector[0], sector[4095])).collect();
    let expected =
        [(0, 0), (0, 0), (11, 11), (0, 0), (0, 0), (0, 0), (13, 13), (1, 1), (0, 255), (1, 1)];
    assert_eq!(sectors[..10], expected);
    assert_eq!(sectors[254..], [(1, 1), (0, 0)]);
    assert!((0..4096).all(|at| found[8 * 4096 + at] == at as u8));
}

#[test]
fn regions_and_metadata_in_the_log() {
    let (mut builder, change) = dirty();
    let whole = builder.sealed();
    let sector = |at: u64| Change::Data(at, whole[at as usize..][..4096].to_vec());
    let changes = [sector(REGIONS[0]), sector(METADATA), sector(PARAMETERS), change];
    builder.log(0, &LogEntry::new(1, 0, &changes));
    for at in [REGIONS[0], METADATA, PARAMETERS] {
        builder.put(at, &[0xff; 4096]);
    }
    // Its checksum is in the log.
    builder.bytes = {
        let mut bytes = builder.sealed();
        bytes[REGIONS[0] as usize..][..4096].fill(0xff);
        bytes
    };
    builder.is_sealed = true;
    assert_eq!(bytes(&builder, MIB - 1, 2), [1, 2]);
}

#[test]
fn changes_that_are_not_possible() {
    let end = dirty().0.bytes.len() as u64;
    for (change, says) in [
        (Change::Zeros(0, 4096), "changes itself or the headers"),
        (Change::Zeros(HEADERS[1], 4096), "changes itself or the headers"),
        (Change::Zeros(LOG + MIB - 4096, 8192), "changes itself or the headers"),
        (Change::Data(LOG, vec![0; 4096]), "changes itself or the headers"),
        (Change::Data(end, vec![0; 4096]), "past the end"),
        (Change::Zeros(end - 4096, 8192), "past the end"),
        (Change::Zeros(end - 4096, u64::MAX - 4095), "past the end"),
    ] {
        let (mut builder, _) = dirty();
        builder.log(0, &LogEntry::new(1, 0, &[change]));
        corrupt(&builder, says);
    }
}

#[test]
fn file_that_is_shorter_than_its_log_states() {
    for sizes in [[6 * MIB, 0], [0, 6 * MIB]] {
        let (mut builder, change) = dirty();
        let entry = LogEntry { sizes, ..LogEntry::new(1, 0, &[change]) };
        builder.log(0, &entry);
        assert_eq!(byte(&builder, 0), 1);
        let sizes = sizes.map(|size| size + u64::from(size > 0));
        builder.log(0, &LogEntry { sizes, ..entry });
        corrupt(&builder, "shorter than");
    }
}

#[test]
fn log_that_is_not_possible_or_too_long() {
    let (builder, _) = dirty();
    for (length, kind, says) in [
        (0, ErrorKind::Corrupt, "length is not possible"),
        (4096, ErrorKind::Corrupt, "length is not possible"),
        (MAX_LOG + MIB, ErrorKind::Unsupported, "are not read"),
        (MAX_LOG, ErrorKind::Corrupt, "past the end"),
    ] {
        let mut builder = builder.clone();
        builder.put32(HEADERS[1] + 68, length as u32);
        refused(&builder, kind, says);
    }
}

#[test]
fn too_many_changes() {
    for (extra, is_refused) in [(0, false), (1, true)] {
        let (mut builder, change) = dirty();
        let zeros = vec![Change::Zeros(BAT + 4096, 4096); (MAX_DESCRIPTORS - 1 + extra) as usize];
        let changes = [&zeros[..], &[change]].concat();
        builder.log(0, &LogEntry::new(1, 0, &changes));
        if is_refused {
            refused(&builder, ErrorKind::Unsupported, "more than 16384 changes");
        } else {
            assert_eq!(byte(&builder, 0), 1);
        }
    }
}
