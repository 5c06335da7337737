//! Invalid partition tables. Real ones are read in the whole-program tests.

#![allow(missing_docs, reason = "a test program")]

use std::sync::Arc;

use blkhash::{Algorithm, Digester};
use blkimage::partition::{Gpt, Partition, Protection, Structure, table, verify_gpt};
use blkimage::{Format, Image, Memory, OpenOptions, Slice, Source};

fn disk(bytes: Vec<u8>) -> Image {
    let options = OpenOptions::new().format(Format::Raw);
    options.open_storage(Box::new(Memory(bytes)), "disk").unwrap()
}

fn crc32(bytes: &[u8]) -> [u8; 4] {
    let digest = Digester::new(Algorithm::Crc32).digest(bytes);
    let mut sum: [u8; 4] = digest.as_bytes().try_into().unwrap();
    sum.reverse();
    sum
}

/// Creates a sector with a table of entries: type, start, count.
fn boot_sector(entries: &[(u8, u32, u32)]) -> Vec<u8> {
    let mut sector = vec![0; 512];
    for (index, (kind, start, count)) in entries.iter().enumerate() {
        let entry = &mut sector[446 + 16 * index..][..16];
        entry[4] = *kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&count.to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// Creates a GPT whose header contains these values.
fn gpt(count: u32, size: u32, place: u64, entries: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = boot_sector(&[(0xee, 1, u32::MAX)]);
    bytes.resize(64 << 10, 0);
    for (index, (first, last)) in entries.iter().enumerate() {
        let entry = &mut bytes[1024 + 128 * index..][..128];
        entry[..16].fill(7);
        entry[16] = index as u8;
        entry[32..40].copy_from_slice(&first.to_le_bytes());
        entry[40..48].copy_from_slice(&last.to_le_bytes());
    }
    let sum = crc32(&bytes[1024..][..128 * 128]);
    let header = &mut bytes[512..][..92];
    header[..8].copy_from_slice(b"EFI PART");
    header[10] = 1;
    header[12] = 92;
    header[24] = 1;
    header[72..80].copy_from_slice(&place.to_le_bytes());
    header[80..84].copy_from_slice(&count.to_le_bytes());
    header[84..88].copy_from_slice(&size.to_le_bytes());
    header[88..].copy_from_slice(&sum);
    let sum = crc32(header);
    header[16..20].copy_from_slice(&sum);
    bytes
}

#[test]
fn a_gpt() {
    let found = table(&disk(gpt(128, 128, 2, &[(40, 49), (50, 59)]))).unwrap().partitions;
    let expected = [(1, 40), (2, 50)].map(|(number, sector)| Partition {
        number,
        offset: sector * 512,
        length: 5120,
    });
    assert_eq!(found, expected);
}

#[test]
fn every_bit_of_a_gpt_is_checked() {
    let good = gpt(128, 128, 2, &[(40, 49)]);
    // The header and an entry. There is no copy of them.
    for at in (512..604).chain(1024..1152) {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            assert!(table(&disk(bytes)).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn the_copy_at_the_end_of_the_disk() {
    // The header is in the last sector, and its entries are before it.
    let good = gpt(128, 128, 2, &[(40, 49)]);
    let mut bytes = vec![0; good.len()];
    bytes[..512].copy_from_slice(&good[..512]);
    let (last, entries) = (good.len() - 512, good.len() - 512 - 128 * 128);
    bytes[entries..last].copy_from_slice(&good[1024..][..128 * 128]);
    let mut header = good[512..][..92].to_vec();
    header[24..32].copy_from_slice(&(last as u64 / 512).to_le_bytes());
    header[72..80].copy_from_slice(&(entries as u64 / 512).to_le_bytes());
    header[16..20].fill(0);
    let sum = crc32(&header);
    header[16..20].copy_from_slice(&sum);
    bytes[last..][..92].copy_from_slice(&header);
    let backup = table(&disk(bytes.clone())).unwrap();
    assert_eq!(backup.partitions.len(), 1);
    let problem = backup.primary.unwrap().to_string();
    assert_eq!(
        problem,
        "the primary partition table is damaged, and the backup is used: it has no GPT header"
    );
    let mut both = bytes.clone();
    both[512..1024].copy_from_slice(&good[512..1024]);
    both[1024..][..128 * 128].copy_from_slice(&good[1024..][..128 * 128]);
    assert!(table(&disk(both)).unwrap().primary.is_none());
    // On a disk that has grown, the copy is not in the last sector.
    bytes.resize(bytes.len() + 4096, 0);
    assert!(table(&disk(bytes)).is_err());
}

#[test]
fn invalid_gpts() {
    let cases = [
        gpt(u32::MAX, 128, 2, &[]),
        gpt(128, u32::MAX, 2, &[]),
        gpt(128, 0, 2, &[]),
        gpt(128, 128, u64::MAX, &[]),
        gpt(128, 128, 1 << 40, &[]),
        gpt(128, 128, 2, &[(50, 40)]),
        gpt(128, 128, 2, &[(u64::MAX - 1, u64::MAX)]),
        boot_sector(&[(0xee, 1, 1)]),
    ];
    for bytes in cases {
        let message = table(&disk(bytes)).unwrap_err().to_string();
        assert!(message.contains("damaged") && !message.contains('\n'), "{message}");
    }
}

#[test]
fn logical_partitions() {
    let mut bytes = boot_sector(&[(0x83, 1, 4), (0x05, 10, 100)]);
    bytes.resize(64 << 10, 0);
    bytes[10 * 512..][..512].copy_from_slice(&boot_sector(&[(0x83, 1, 8), (0x05, 20, 20)]));
    bytes[30 * 512..][..512].copy_from_slice(&boot_sector(&[(0x83, 2, 9)]));
    let found = table(&disk(bytes.clone())).unwrap().partitions;
    let expected = [(1, 1, 4), (5, 11, 8), (6, 32, 9)].map(|(number, start, count)| Partition {
        number,
        offset: start * 512,
        length: count * 512,
    });
    assert_eq!(found, expected);
    // A record that leads back to itself.
    bytes[30 * 512..][..512].copy_from_slice(&boot_sector(&[(0x83, 2, 9), (0x05, 20, 20)]));
    let back = table(&disk(bytes.clone())).unwrap();
    assert_eq!(back.partitions, expected);
    assert!(back.lost.unwrap().to_string().contains("lead back"));
    // A missing record: first the second one of the list, then the first one.
    for (lost, left) in [(30, 2), (10, 1)] {
        bytes[lost * 512..][..512].fill(0);
        let table = table(&disk(bytes.clone())).unwrap();
        assert_eq!(table.partitions, expected[..left]);
        let message = table.lost.unwrap().to_string();
        assert!(message.ends_with(&format!("no record of a logical partition at sector {lost}")));
    }
    // A record past the end of the disk.
    bytes.truncate(10 * 512);
    assert!(table(&disk(bytes)).unwrap().lost.is_some());
}

#[test]
fn no_table() {
    for bytes in [vec![], vec![0; 511], vec![0; 4096], vec![0xff; 4096]] {
        let table = table(&disk(bytes)).unwrap();
        assert!(table.partitions.is_empty() && table.lost.is_none());
    }
}

#[test]
fn windows() {
    let whole: Arc<dyn Source> = Arc::new(disk((0..=255).collect()));
    let window = Slice::new(whole.clone(), 100, 50).unwrap();
    let mut bytes = [0; 50];
    window.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!((bytes[0], bytes[49], window.size()), (100, 149, 50));
    assert!(window.read_exact_at(&mut bytes, 1).is_err());
    assert!(window.read_exact_at(&mut bytes, u64::MAX).is_err());
    assert_eq!(window.extent(10, 1000).unwrap().end(), 50);
    assert_eq!(Slice::new(whole.clone(), 200, u64::MAX).unwrap().size(), 56);
    assert!(Slice::new(whole, 257, 1).is_none());
}

/// Adds the backup at the end of the disk.
fn with_backup(mut bytes: Vec<u8>) -> Vec<u8> {
    let size = bytes.len();
    let last = size / 512 - 1;
    bytes.copy_within(1024..1024 + 128 * 128, size - 512 - 128 * 128);
    bytes[512 + 32] = last as u8;
    bytes.copy_within(512..604, size - 512);
    let backup = &mut bytes[size - 512..];
    backup[24] = last as u8;
    backup[32] = 1;
    backup[72] = (last - 32) as u8;
    for at in [512, size - 512] {
        let header = &mut bytes[at..][..92];
        header[16..20].fill(0);
        let sum = crc32(header);
        header[16..20].copy_from_slice(&sum);
    }
    bytes
}

fn defects(gpt: &Gpt) -> Vec<Structure> {
    gpt.parts.iter().filter(|part| part.defect.is_some()).map(|part| part.structure).collect()
}

#[test]
fn both_copies_are_verified() {
    let good = with_backup(gpt(128, 128, 2, &[(40, 49), (50, 59)]));
    let found = verify_gpt(&disk(good.clone())).unwrap().unwrap();
    assert_eq!((found.sector_size, found.protection), (512, Protection::Protective));
    assert_eq!((found.parts.len(), found.table.partitions.len()), (5, 2));
    assert!(defects(&found).is_empty() && found.contradictions.is_empty());
    assert!(found.remarks.is_empty());
    let size = good.len();
    let headers = [(512, Structure::PrimaryHeader), (size - 512, Structure::BackupHeader)];
    let headers =
        headers.into_iter().flat_map(|(start, it)| (start..start + 92).map(move |at| (at, it)));
    let entries =
        [(1024, Structure::PrimaryEntries), (size - 512 - 128 * 128, Structure::BackupEntries)];
    let entries =
        entries.into_iter().flat_map(|(start, it)| (start..start + 300).map(move |at| (at, it)));
    for (at, structure) in headers.chain(entries) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        let found = verify_gpt(&disk(bytes)).unwrap().unwrap();
        assert_eq!(defects(&found), [structure], "{at}");
        assert_eq!(found.table.partitions.len(), 2);
    }
}

#[test]
fn contradictions_of_copies() {
    // The backup has other entries, with a checksum that matches.
    let good = with_backup(gpt(128, 128, 2, &[(40, 49)]));
    let other = with_backup(gpt(128, 128, 2, &[(41, 49)]));
    let mut bytes = good.clone();
    let start = bytes.len() - 512 - 128 * 128;
    bytes[start..].copy_from_slice(&other[start..]);
    let found = verify_gpt(&disk(bytes)).unwrap().unwrap();
    assert!(defects(&found).is_empty());
    assert_eq!(found.contradictions.len(), 1);
    let overlap = with_backup(gpt(128, 128, 2, &[(40, 50), (50, 59)]));
    assert_eq!(verify_gpt(&disk(overlap)).unwrap().unwrap().contradictions.len(), 1);
    // The disk was made larger.
    let mut grown = good.clone();
    grown.resize(good.len() + 51_200, 0);
    let found = verify_gpt(&disk(grown.clone())).unwrap().unwrap();
    assert!(defects(&found).is_empty() && found.contradictions.is_empty());
    assert_eq!(found.remarks.len(), 1);
    // No MBR, or another one.
    let mut bytes = good.clone();
    bytes[450] = 0xef;
    let found = verify_gpt(&disk(bytes.clone())).unwrap().unwrap();
    assert_eq!(found.protection, Protection::Damaged);
    bytes[454] = 7;
    bytes[458..462].copy_from_slice(&[9, 0, 0, 0]);
    let found = verify_gpt(&disk(bytes.clone())).unwrap().unwrap();
    assert_eq!(found.protection, Protection::Replaced);
    bytes[..512].fill(0);
    let found = verify_gpt(&disk(bytes)).unwrap().unwrap();
    assert_eq!(found.protection, Protection::Missing);
    assert!(verify_gpt(&disk(vec![0; 65536])).unwrap().is_none());
    assert!(verify_gpt(&disk(Vec::new())).unwrap().is_none());
}
