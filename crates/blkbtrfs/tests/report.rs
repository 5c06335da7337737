//! File systems on disks and in their partitions, and the report about all of them.

#![allow(missing_docs, reason = "a test program")]

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blkbtrfs::{Category, Device, Error, FileSystems, Options, Part, Report, find, group, verify};
use common::{Disk, SUPERBLOCK, Shared};

/// Returns a disk whose MBR has these partitions, each with an offset and a length in sectors, and this content at 1 MiB.
fn partitioned(partitions: &[(u32, u32)], content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; MIB];
    for (entry, (offset, length)) in bytes[446..510].chunks_exact_mut(16).zip(partitions) {
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&offset.to_le_bytes());
        entry[12..16].copy_from_slice(&length.to_le_bytes());
    }
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes.extend_from_slice(content);
    bytes
}

fn device(name: &str, bytes: Vec<u8>) -> Device {
    Device { name: name.to_owned(), source: Arc::new(Shared(Arc::new(bytes))) }
}

fn proceed(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn report(disks: &[(Device, Option<Part>)], options: &Options) -> Result<Report, String> {
    let all = FileSystems::open(disks).map_err(|unverified| unverified.to_string())?;
    all.verify(options, &proceed).map_err(|error| error.to_string())
}

#[test]
fn every_part_of_a_disk_is_accounted_for() {
    if common::lacks_mkfs() {
        return;
    }
    let content = Disk::mixed().bytes;
    let sectors = (content.len() / 512) as u32;
    // The third partition is cut off, and the fourth one is not there.
    let table = [(2048, sectors), (1, 2047), (2040 + sectors, 4096), (9 << 20, 1)];
    let disk = device("disk", partitioned(&table, &content));
    let found = find(&disk, None);
    let parts: Vec<_> = found.candidates.iter().map(|it| (it.part, &*it.device.name)).collect();
    assert_eq!(parts, [(Part::Partition(1), "disk partition 1")]);
    assert_eq!(found.others, ["disk partition 2"]);
    let problems: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("disk partition 3: is cut off: the image has 4096 of its"));
    assert!(problems[1].starts_with("disk partition 4: lies past the end of the image"));

    for (part, expected) in [
        (Part::Partition(1), Ok("disk partition 1")),
        (Part::From(MIB as u64), Ok("disk at 1048576")),
        (Part::Partition(2), Err("disk partition 2: no btrfs file system")),
        (Part::Partition(7), Err("disk: no partition 7: it has 1, 2, 3, 4")),
        (Part::Whole, Err("disk: no btrfs file system")),
        (Part::From(1 << 40), Err("disk: the offset 1099511627776 is past its end at 17825792")),
    ] {
        let found = find(&disk, Some(part));
        let name = found.candidates.first().map(|it| &*it.device.name);
        let problem = found.problems.first().map(ToString::to_string);
        assert_eq!(name.ok_or(problem.as_deref().unwrap_or_default()), expected, "{part:?}");
        assert_eq!(found.candidates.len() + found.problems.len(), 1);
    }

    let report = report(&[(disk, None)], &Options::default()).unwrap();
    assert!(report.is_clean() && !report.is_complete());
    assert_eq!((report.verdicts.len(), report.problems.len()), (1, 2));
    assert_eq!(report.verdicts[0].devices[&1], "disk partition 1");
}

#[test]
fn without_a_file_system_there_is_no_report() {
    let options = Options::default();
    assert_eq!(report(&[], &options).unwrap_err(), "no disk was given");
    let empty = (device("empty", vec![0; 2 * MIB]), None);
    assert_eq!(report(&[empty], &options).unwrap_err(), "empty: no btrfs file system");
    if common::lacks_mkfs() {
        return;
    }
    // The only superblock of so small a file system is damaged.
    let mut bytes = (*Disk::mixed().bytes).clone();
    bytes[SUPERBLOCK + 0x100] ^= 1;
    let message = report(&[(device("damaged", bytes), None)], &options).unwrap_err();
    assert!(message.starts_with("damaged: no intact superblock"), "{message}");
    let table = (device("table", partitioned(&[(1, 2047)], &[])), None);
    let message = report(&[table], &options).unwrap_err();
    assert_eq!(message, "table: no btrfs file system, in none of its partitions either");
}

#[test]
fn findings_are_limited_for_all_file_systems_together() {
    if common::lacks_mkfs() {
        return;
    }
    let damaged = |name: &str| {
        let mut bytes = (*Disk::real(&["-m", "single", "-d", "single", "-b", "20M"]).bytes).clone();
        for number in 1..=3 {
            let wanted = [number; 4096];
            let block = bytes.chunks_exact_mut(4096).find(|block| **block == wanted[..]).unwrap();
            block[0] ^= 1;
        }
        (device(name, bytes), None)
    };
    let disks = vec![damaged("one"), damaged("other")];
    let kept = |limit| {
        let options = Options::default().with_max_findings(limit);
        let report = report(&disks, &options).unwrap();
        assert_eq!(report.count(Category::DataChecksum), 6);
        assert!(!report.is_clean() && report.is_complete());
        for verdict in &report.verdicts {
            assert_eq!(verdict.summary.count(Category::DataChecksum), 3);
            let name = verdict.devices[&1].as_str();
            assert!(verdict.findings.iter().all(|it| verdict.device_of(it) == Some(name)));
        }
        report.verdicts.iter().map(|it| it.findings.len()).collect::<Vec<_>>()
    };
    assert_eq!(kept(None), [3, 3]);
    assert_eq!(kept(Some(4)), [3, 1]);
    assert_eq!(kept(Some(0)), [0, 0]);
}

#[test]
fn a_verification_is_cancelled() {
    if common::lacks_mkfs() {
        return;
    }
    let disk = device("disk", (*Disk::mixed().bytes).clone());
    let open = || {
        let groups = group(find(&disk, None).candidates);
        let [found] = <[_; 1]>::try_from(groups).ok().expect("one file system");
        blkbtrfs::FileSystem::open(found.devices).unwrap()
    };
    let (filesystem, done) = (open(), AtomicU64::new(0));
    let advance = |bytes| {
        done.fetch_add(bytes, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    verify(&filesystem, &Options::default(), &advance, &|_| {}).unwrap();
    let all = done.into_inner();
    assert!(all >= 150 * 5000, "{all}");
    for limit in [0, 1, all / 4, all / 2, all - 1, all] {
        let (filesystem, done) = (open(), AtomicU64::new(0));
        let advance = |bytes| match done.fetch_add(bytes, Ordering::Relaxed) + bytes {
            so_far if so_far < limit => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let options = Options::default().with_threads(1);
        let error = verify(&filesystem, &options, &advance, &|_| {}).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        let done = done.into_inner();
        assert!(limit > 1 || done < all, "{done} of {all} bytes");
    }
}

const MIB: usize = 1 << 20;
