//! Looks up ranges of disks with partitions, any bytes of whose structures are changed. What the blocks are used for must be
//! what the bytes in them are used for.

#![no_main]

mod disk;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use blkfs::{Contents, Usage};
use blkimage::Source;
use disk::{Disk, Disks, assert_one_line};
use libfuzzer_sys::fuzz_target;

static DISKS: Disks = Disks::new(|| {
    let encoded: [&[u8]; 4] = [
        include_bytes!("../images/gpt.z"),
        include_bytes!("../images/mbr.z"),
        include_bytes!("../images/ext2.z"),
        include_bytes!("../images/btrfs.z"),
    ];
    encoded.map(Disk::new).into()
});

fuzz_target!(|data: &[u8]| {
    // A range, then the disk.
    let Some((head, rest)) = data.split_first_chunk::<7>() else { return };
    let Some(disk) = disk::of_input(&DISKS, rest) else { return };
    let disk: Arc<dyn Source> = Arc::new(disk);
    let contents = Contents::of(&disk);
    contents.remarks().iter().for_each(|(_, remark)| assert_one_line(remark));
    let number = u64::from(u32::from_le_bytes(*head[2..].first_chunk().unwrap()));
    let offset = number % (disk.size() + 1000);
    let length = (u64::from(head[0]) + 1) << (head[1] % 20);
    check(&contents, offset, length, 1 << (9 + head[6] % 9));
    check(&contents, 0, disk.size(), 1 << 12);
});

fn check(contents: &Contents, offset: u64, length: u64, block: u64) {
    let range = offset..offset + length;
    let (uses, found) = spans(contents, range.clone());
    let bytes = contents.usage(offset, length, 1);
    assert_eq!(bytes.first().map(|it| it.0.start), (length > 0).then_some(offset));
    let ends = bytes.windows(2).all(|it| it[0].0.end == it[1].0.start && it[0].1 != it[1].1);
    assert!(ends && bytes.iter().all(|it| !it.0.is_empty()));
    assert_eq!(bytes.last().map_or(range.end, |it| it.0.end), range.end);
    assert_same(&bytes, &uses);
    assert_eq!(contents.usage(offset, length, block), blocks(&bytes, block), "{block}");

    let content = contents.find(offset, length);
    let held: BTreeSet<_> = content.holders.iter().map(|it| it.usage).collect();
    // Bytes that belong to nothing have no holder.
    let is_found = |usage: &Usage| *usage == Usage::Unknown || found.contains(usage);
    assert!(held.iter().all(is_found), "{held:?} of {found:?}");
    let is_held = |usage: &Usage| *usage == Usage::Unknown || held.contains(usage);
    assert!(content.is_partial || found.iter().all(is_held), "{held:?} of {found:?}");
    assert_eq!(contents.partition(offset).partition, content.partition);
}

/// Returns the first use of the bytes of a range by what they belong to, and all uses.
fn spans(contents: &Contents, range: Range<u64>) -> (Vec<(Range<u64>, Usage)>, BTreeSet<Usage>) {
    let mut edges = Vec::new();
    let (mut covered, mut last) = (range.start, range.start);
    let mut found = BTreeSet::new();
    contents.spans(range.clone(), &mut |span| {
        let end = span.offset + span.length;
        assert!(span.length > 0 && span.offset >= last && end <= range.end, "{span:?}");
        assert!(span.offset <= covered, "{span:?} after a gap");
        (covered, last) = (covered.max(end), span.offset);
        found.insert(span.holder.usage);
        edges.push((span.offset, span.holder.usage, true));
        edges.push((end, span.holder.usage, false));
    });
    assert_eq!(covered, range.end);
    edges.sort();
    let (mut runs, mut open, mut start) = (Vec::new(), [0_u64; Usage::ALL.len()], range.start);
    for (place, usage, is_start) in edges {
        if place > start {
            let first = open.iter().position(|count| *count > 0).unwrap();
            runs.push((start..place, Usage::ALL[first]));
            start = place;
        }
        let count = &mut open[usage as usize];
        // Ends come before starts at the same place.
        *count = if is_start { *count + 1 } else { *count - 1 };
    }
    (runs, found)
}

/// Asserts that runs have the same uses. Free space is unknown where something that was not read may own it.
fn assert_same(bytes: &[(Range<u64>, Usage)], uses: &[(Range<u64>, Usage)]) {
    let mut rest = bytes.iter().peekable();
    for (range, usage) in uses {
        let mut at = range.start;
        while at < range.end {
            let Some((run, found)) = rest.next_if(|it| it.0.end <= at).or(rest.peek().copied())
            else {
                panic!("nothing at {at}")
            };
            if run.end <= at {
                continue;
            }
            let is_same = found == usage || (*found, *usage) == (Usage::Unknown, Usage::Free);
            assert!(is_same, "{found:?} at {at}, not {usage:?}");
            at = run.end;
        }
    }
}

/// Returns the runs of blocks, each with its first use.
fn blocks(bytes: &[(Range<u64>, Usage)], block: u64) -> Vec<(Range<u64>, Usage)> {
    let mut runs: Vec<(Range<u64>, Usage)> = Vec::new();
    let mut add = |number: Range<u64>, usage: Usage| match runs.last_mut() {
        Some((last, before)) if *before == usage && last.end == number.start => {
            last.end = number.end;
        }
        _ => runs.push((number, usage)),
    };
    let mut open: Option<(u64, Usage)> = None;
    for (range, usage) in bytes {
        let (first, last) = (range.start / block, (range.end - 1) / block);
        match open {
            Some((number, before)) if number == first => open = Some((number, before.min(*usage))),
            Some((number, before)) => {
                add(number..number + 1, before);
                open = Some((first, *usage));
            }
            None => open = Some((first, *usage)),
        }
        if last > first {
            let (number, before) = open.unwrap();
            add(number..number + 1, before);
            if last > first + 1 {
                add(first + 1..last, *usage);
            }
            open = Some((last, *usage));
        }
    }
    if let Some((number, usage)) = open {
        add(number..number + 1, usage);
    }
    runs
}
