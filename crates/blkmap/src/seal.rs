//! Seals a map that is finished.

use crate::{Commit, Key, Map, Output, PAGE, Result};

/// Appends a commit to `output` that says the same as the commit of `map`, which `output` ends with, and seals it with
/// `key`.
///
/// # Errors
///
/// Fails if the map cannot be read or is followed by something, or the commit not be written.
pub fn seal(map: &Map, output: &mut impl Output, key: &Key) -> Result<()> {
    map.check_end()?;
    let (from, end) = (map.commit().directory.offset, map.end());
    let distance = end + PAGE as u64 - from;
    let mut part = vec![0; PART];
    let mut at = from;
    while at < end {
        let part = &mut part[..(end - at).min(PART as u64) as usize];
        map.bytes().read_exact_at(part, at)?;
        output.append(part)?;
        at += part.len() as u64;
    }
    let mut commit = Commit {
        sequence: map.commit().sequence + 1,
        previous: end,
        seal: None,
        ..map.commit().clone()
    };
    for area in [&mut commit.directory, &mut commit.page_hashes, &mut commit.info] {
        area.offset += distance;
    }
    // The commit says that the tables are there, so they have to be there before.
    output.sync()?;
    output.append(&commit.sealed(map.header(), key).to_bytes(map.header()))?;
    output.sync()?;
    Ok(())
}

/// Bytes that are copied at once.
const PART: usize = 128 << 10;
