//! Reads a file system with everything there is. What it says must be the same in all ways to ask.

use std::ops::ControlFlow;
use std::sync::Arc;

use blkfs::{
    Entry, EntryKind, Extent, FileSystem, Mismatch, Names, ObjectId, Owner, Owners, Problem,
    ProblemKind, Visitor, Wanted,
};
use blkimage::Source;

use crate::disk::{Changed, Disk, assert_one_line, is_whole, of_input};

pub fn check(disks: &[Disk], data: &[u8]) {
    let Some(disk) = of_input(disks, data) else { return };
    let disk = Arc::new(disk);
    let file_system = match FileSystem::open(disk.clone()) {
        Ok(Some(file_system)) => file_system,
        Ok(None) => return assert!(!is_whole(disks, data), "not recognised"),
        Err(error) => {
            assert!(!is_whole(disks, data), "{error}");
            return assert_one_line(&error.to_string());
        }
    };
    file_system.remarks().iter().for_each(|it| assert_one_line(it));
    file_system.uuid().iter().for_each(|it| assert_one_line(it));
    let _ = (file_system.label(), file_system.kind());
    disk.take_read();

    let everything = Wanted { extents: true, checks: true, names: true };
    let all = walk(&disk, &file_system, everything);
    let extents = walk(&disk, &file_system, Wanted { extents: true, ..Wanted::default() });
    let names = walk(&disk, &file_system, Wanted { names: true, ..Wanted::default() });
    assert!(all.extents == extents.extents, "the extents depend on what is wanted");
    assert!(all.entries == names.entries, "the names depend on what is wanted");
    assert!(extents.mismatches == 0 && names.mismatches == 0);
    assert!(extents.entries.is_empty() && names.extents.is_empty());
    if is_whole(disks, data) {
        assert!(all.mismatches + all.damaged == 0, "a file system without changes is damaged");
    }

    let owners = Owners::read(&file_system).unwrap();
    assert!(!is_whole(disks, data) || !owners.is_partial());
    check_owners(&owners, file_system.size(), data);
    check_names(&Names::read(&file_system).unwrap(), &all.entries);
}

fn walk(disk: &Changed, file_system: &FileSystem, wanted: Wanted) -> Walked {
    let sizes = (file_system.size(), disk.size());
    let mut walked = Walked { sizes, ..Walked::default() };
    file_system.walk(wanted, &mut walked).unwrap();
    let (size, read) = (disk.size(), disk.take_read());
    // Each byte is read a few times at most, and has a few owners.
    assert!(read <= 16 * size + MIB, "{read} bytes read of {size}");
    assert!(walked.calls <= size / 4 + 10_000, "{} calls for {size} bytes", walked.calls);
    walked.extents.sort_by_cached_key(|it| (it.offset, it.length, format!("{:?}", it.owner)));
    walked.entries.sort();
    walked
}

/// Everything that a walk reports.
#[derive(Default)]
struct Walked {
    /// Sizes of the file system and of the disk.
    sizes: (u64, u64),
    calls: u64,
    extents: Vec<Extent>,
    entries: Vec<(ObjectId, ObjectId, bool, Vec<u8>)>,
    mismatches: u64,
    damaged: u64,
}

impl Visitor for Walked {
    fn extent(&mut self, extent: Extent) {
        self.calls += 1;
        let end = extent.offset.checked_add(extent.length);
        assert!(extent.length > 0 && end.is_some_and(|end| end <= self.sizes.0), "{extent:?}");
        if let Owner::File { offset, .. } = extent.owner {
            assert!(offset.checked_add(extent.length).is_some(), "{extent:?}");
        }
        self.extents.push(extent);
    }

    fn matched(&mut self, _: &'static str, _: u64, _: u64) {
        self.calls += 1;
    }

    fn mismatch(&mut self, mismatch: Mismatch) {
        self.calls += 1;
        self.mismatches += 1;
        assert_one_line(&mismatch.reason);
        let end = mismatch.offset.checked_add(mismatch.length);
        assert!(end.is_some_and(|end| end <= self.sizes.1), "{mismatch:?}");
    }

    fn entry(&mut self, entry: Entry<'_>) {
        self.calls += 1;
        let is_stream = entry.kind == EntryKind::Stream;
        self.entries.push((entry.parent, entry.object, is_stream, entry.name.to_vec()));
    }

    fn problem(&mut self, problem: Problem) {
        self.calls += 1;
        self.damaged += u64::from(problem.kind == ProblemKind::Damaged);
        assert_one_line(&problem.reason);
    }

    fn advance(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Looks up ranges, and filters the extents one by one.
fn check_owners(owners: &Owners, size: u64, data: &[u8]) {
    let extents = owners.extents();
    assert!(extents.is_sorted_by_key(|it| it.offset));
    assert!(extents.iter().all(|it| it.length > 0 && it.offset + it.length <= size));
    let number = |at: usize| data.get(at).map_or(at, |byte| usize::from(*byte));
    for index in 0..8 {
        let Some(first) = extents.get((number(index) * 251) % extents.len().max(1)) else { return };
        let offset = first.offset.saturating_sub(number(index + 1) as u64 * 7);
        let length = (number(index + 2) as u64 + 1) << (number(index + 3) % 16);
        let found = owners.find(offset, length, usize::MAX);
        let end = offset + length;
        let (mut covered, mut expected) = (offset, Vec::new());
        let mut is_partial = owners.is_partial();
        for extent in extents.iter().filter(|it| it.offset < end && it.offset + it.length > offset)
        {
            let start = extent.offset.max(offset);
            let owner = match extent.owner {
                Owner::File { object, offset } => {
                    Owner::File { object, offset: offset + (start - extent.offset) }
                }
                owner => owner,
            };
            is_partial |= start > covered;
            let stop = end.min(extent.offset + extent.length);
            covered = covered.max(stop);
            expected.push(Extent { offset: start, length: stop - start, owner });
        }
        if expected.len() < MAX_LOOKED_AT {
            assert_eq!(found.extents, expected);
            assert_eq!(found.is_partial, is_partial || covered < end);
        }
        assert_eq!(owners.within(offset, end).count(), expected.len());
    }
}

fn check_names(names: &Names, entries: &[(ObjectId, ObjectId, bool, Vec<u8>)]) {
    for (_, object, _, _) in entries.iter().take(64) {
        let paths = names.paths(*object, 8);
        assert!(paths.len() <= 8 && paths.is_sorted());
        for path in paths {
            // The last name belongs to an entry of the object, but for the top directory.
            let is_of_entry = |it: &&(ObjectId, ObjectId, bool, Vec<u8>)| {
                it.1 == *object && path.ends_with(&it.3)
            };
            assert!(path == b"/" || entries.iter().any(|it| is_of_entry(&it)));
        }
    }
}

const MIB: u64 = 1 << 20;

/// Number of extents below which a look-up has no limit.
const MAX_LOOKED_AT: usize = 1 << 15;
