//! Reads the areas of a file.

use crate::commit::Commit;
use crate::page::{Hash, sha256};
use crate::{Error, Header, PAGE, ReadAt, Result};

type Object = serde_json::Map<String, serde_json::Value>;

/// Reads and parses the header.
pub(crate) fn read_header(bytes: &dyn ReadAt) -> Result<Header> {
    if bytes.length()? < PAGE as u64 {
        return Err(Error::Magic);
    }
    Header::parse(&read_page(bytes, 0)?)
}

pub(crate) fn read_page(bytes: &dyn ReadAt, at: u64) -> Result<[u8; PAGE]> {
    let mut page = [0; PAGE];
    bytes.read_exact_at(&mut page, at)?;
    Ok(page)
}

/// Reads the info of a commit.
pub(crate) fn info(bytes: &dyn ReadAt, commit: &Commit) -> Result<String> {
    let area = commit.info;
    let mut text = vec![0; area.count as usize];
    bytes.read_exact_at(&mut text, area.offset)?;
    let hash: Hash = sha256(&text);
    if hash != commit.hashes[3] {
        return Err(Error::damaged(area.offset, "the info has another hash"));
    }
    let text = String::from_utf8(text).ok();
    let is_object = |text: &String| serde_json::from_str::<Object>(text).is_ok();
    text.filter(is_object).ok_or_else(|| Error::damaged(area.offset, "the info is no JSON object"))
}
