//! Reads any bytes as a map, and compares the result with the definition in plain steps. Used by tests and by the
//! fuzz target `map`.

use std::ops::ControlFlow;

use blkhash::{Algorithm, Comparison, Digester};
use blkmap::{BlockRun, Map, Report, check, checksum, diff};

const PAGE: usize = 4096;

/// A change of a map: where, and the value of 8 bytes. The two highest bits of the place choose the numbers of the
/// last commit, its directory, all of the commit, or the header.
pub type Change = (u16, u64);

fn sha256(bytes: &[u8]) -> Vec<u8> {
    Digester::new(Algorithm::Sha256).digest(bytes).as_bytes().to_vec()
}

fn field(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// Changes fields of a map, and makes the hashes of its last commit right again where its tables are still in
/// the file.
pub fn change(bytes: &mut [u8], changes: &[Change], are_repaired: bool) {
    let commit = bytes.len() - PAGE;
    for (at, value) in changes {
        let (from, at) = match at & 0xc000 {
            0 => (commit + 32, at % 112),
            0x4000 => (field(bytes, commit + 88) as usize, at % 128),
            0x8000 => (commit, at % 4096),
            _ => (0, at % 4096),
        };
        let place = from.saturating_add(usize::from(at));
        if let Some(slot) = bytes.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
            *slot = value.to_le_bytes();
        }
    }
    if are_repaired {
        repair(bytes, commit);
    }
}

fn repair(bytes: &mut [u8], commit: usize) {
    let header = sha256(&bytes[..PAGE]);
    bytes[commit + 144..][..32].copy_from_slice(&header);
    for (place, at, size) in [(176, 88, 32), (208, 104, 32), (240, 120, 1)] {
        let (offset, count) = (field(bytes, commit + at), field(bytes, commit + at + 8));
        let end = count.checked_mul(size).and_then(|length| offset.checked_add(length));
        if let Some(end) = end.filter(|end| *end <= commit as u64) {
            let hash = sha256(&bytes[offset as usize..end as usize]);
            bytes[commit + place..][..32].copy_from_slice(&hash);
        }
    }
    let hash = sha256(&bytes[commit..commit + 4064]);
    bytes[commit + 4064..][..32].copy_from_slice(&hash);
}

/// Opens a map and reads all of it. What is read is what the bytes say, and if a check finds nothing, the root is
/// the root of the pages.
pub fn check_map(bytes: &[u8]) {
    let Ok(map) = Map::open(bytes.to_vec()) else { return };
    let mut visits = 0;
    let checked = check(&map, &mut |_| {
        visits += 1;
        ControlFlow::Continue(())
    });
    assert!(visits <= bytes.len(), "a check longer than the file");
    let entry_size = map.header().entry_size();
    let per_page = map.header().blocks_per_page();
    let commit = map.commit();
    if commit.blocks() > MAX_BLOCKS {
        return;
    }
    let Ok(found) = entries(&map) else {
        assert!(checked.is_err(), "a check that found nothing");
        return;
    };
    let mut expected = vec![None; commit.blocks() as usize];
    for run in map.page_runs() {
        let run = run.expect("the directory was checked");
        for page in run.first..run.end() {
            for block in page * per_page..((page + 1) * per_page).min(commit.blocks()) {
                let entry = if run.is_zero() {
                    let mut zero = map.zero_block().as_bytes().to_vec();
                    zero.resize(entry_size, 0);
                    zero
                } else {
                    let index = (block - page * per_page) as usize * entry_size;
                    let at = run.offset as usize + (page - run.first) as usize * PAGE + index;
                    bytes[at..at + entry_size].to_vec()
                };
                expected[block as usize] = Some(entry);
            }
        }
    }
    assert_eq!(found, expected);
    if let Some(root) = &commit.root() {
        assert_eq!(root[..], root_of(&expected, per_page as usize)[..], "the root was checked");
        let _ = checksum(&map, blkhash::Construction::Flat, 1);
    }
    let mut compared = 0;
    let mut take = |_, count, kind: Comparison| {
        assert!(!kind.is_different(), "a map that differs from itself");
        compared += count;
    };
    diff(&map, &map, Report::new(&mut take)).expect("the same parameters");
    assert_eq!(compared, commit.blocks());
}

/// Returns the entries of all blocks, `None` for those that are not known.
fn entries(map: &Map) -> blkmap::Result<Vec<Option<Vec<u8>>>> {
    let entry_size = map.header().entry_size();
    let mut zero = map.zero_block().as_bytes().to_vec();
    zero.resize(entry_size, 0);
    let mut found = Vec::new();
    let mut blocks = map.blocks()?;
    while let Some(run) = blocks.next(1000)? {
        match run {
            BlockRun::Digests { entries, .. } => {
                found.extend(entries.chunks_exact(entry_size).map(|entry| Some(entry.to_vec())));
            }
            BlockRun::Zeros { count, .. } => found.extend((0..count).map(|_| Some(zero.clone()))),
            BlockRun::Unknown { count, .. } => found.extend((0..count).map(|_| None)),
        }
    }
    Ok(found)
}

/// Computes the root level by level.
fn root_of(entries: &[Option<Vec<u8>>], per_page: usize) -> Vec<u8> {
    let padded = |entries: &[Vec<u8>]| {
        let mut page = entries.concat();
        page.resize(PAGE, 0);
        sha256(&page)
    };
    let entries: Vec<Vec<u8>> = entries.iter().map(|it| it.clone().expect("complete")).collect();
    let mut level: Vec<Vec<u8>> = entries.chunks(per_page).map(padded).collect();
    while level.len() > 1 {
        level = level.chunks(PAGE / 32).map(padded).collect();
    }
    level.pop().unwrap_or_else(|| vec![0; 32])
}

/// More blocks are not compared one by one.
const MAX_BLOCKS: u64 = 1 << 14;
