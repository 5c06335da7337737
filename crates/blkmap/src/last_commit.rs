//! Finds the last commit of a file that does not end with one.

use crate::bytes::array;
use crate::{Commit, Error, Header, PAGE, ReadAt, Result};

/// Finds the last commit and its offset, in the last 4 GiB.
pub(crate) fn last_commit(bytes: &dyn ReadAt, header: &Header) -> Result<Option<(u64, Commit)>> {
    let length = bytes.length()?;
    let mut end = length / PAGE as u64 * PAGE as u64;
    let stop = length.saturating_sub(MAX_SEARCH);
    let mut part = vec![0; PART];
    while end > PAGE as u64 {
        let start = end.saturating_sub(PART as u64).max(PAGE as u64);
        let part = &mut part[..(end - start) as usize];
        bytes.read_exact_at(part, start)?;
        for (index, page) in part.chunks_exact(PAGE).enumerate().rev() {
            let at = start + (index * PAGE) as u64;
            let page = page.first_chunk().expect("a page");
            if Commit::has_file_id(page, &header.file_id)
                && let Ok(commit) = Commit::parse(page, at, header)
            {
                return Ok(Some((at, commit)));
            }
        }
        end = start;
        if end < stop {
            return Err(Error::damaged(end, "there is no commit from here on"));
        }
    }
    Ok(None)
}

impl Commit {
    /// Returns whether a record names this file.
    fn has_file_id(record: &[u8; PAGE], file_id: &[u8; 16]) -> bool {
        array::<16>(record, 16) == *file_id
    }
}

/// Bytes that are searched at once.
const PART: usize = 1 << 20;

/// Maximum number of bytes at the end of a file in which the last commit is searched for. What a writer left after
/// it is less.
/// Limit in bytes.
const MAX_SEARCH: u64 = 4 << 30;
