//! Sections with digests of the content and with errors of the acquisition.

use super::section::{Section, check_sum};
use crate::error::Result;
use crate::formats::fields::{Entry, for_each_entry};
use crate::stated::StatedDigest;

/// Reads the section `hash`: an MD5.
pub(super) fn hash(section: &Section<'_>) -> Result<Vec<StatedDigest>> {
    let head = section.summed(36)?;
    Ok(stated("md5", &head.bytes()[..16]).into_iter().collect())
}

/// Reads the section `digest`: an MD5 and a SHA-1.
pub(super) fn digest(section: &Section<'_>) -> Result<Vec<StatedDigest>> {
    let head = section.summed(80)?;
    let (md5, sha1) = head.bytes()[..36].split_at(16);
    Ok(stated("md5", md5).into_iter().chain(stated("sha1", sha1)).collect())
}

/// Reads the section `xhash` of libewf: XML in a zlib stream.
pub(super) fn xhash(section: &Section<'_>) -> Result<Vec<StatedDigest>> {
    let text = section.inflated()?;
    let text = String::from_utf8_lossy(&text);
    let value = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        let (digits, _) = rest.split_once(&format!("</{name}>"))?;
        unhex(digits.trim())
    };
    let mut digests = Vec::new();
    for (name, algorithm, size) in
        [("MD5", "md5", 16), ("SHA1", "sha1", 20), ("SHA256", "sha256", 32)]
    {
        match value(name) {
            Some(digest) if digest.len() == size => {
                digests.push(StatedDigest::new(algorithm, digest));
            }
            Some(_) => return Err(section.invalid("has a digest of another length")),
            None if text.contains(&format!("<{name}>")) => {
                return Err(section.invalid("has a digest that is none"));
            }
            None => {}
        }
    }
    Ok(digests)
}

/// Reads the section `error2`, and calls `visit` with the first sector and the number of sectors of each range.
pub(super) fn errors(section: &Section<'_>, mut visit: impl FnMut(u64, u64)) -> Result<()> {
    let count = u64::from(section.summed(ERROR_HEADER)?.le32(0));
    check_entries(section, ERROR_HEADER, count, ERROR_ENTRY)?;
    let mut first = 0;
    let start = section.start() + ERROR_HEADER;
    for_each_entry(section.file(), start, count * 2, Entry::Le32, |index, value| {
        match index % 2 {
            0 => first = value,
            _ => visit(first, value),
        }
        Ok(())
    })
}

/// Compares the checksums of the section `session`.
pub(super) fn sessions(section: &Section<'_>) -> Result<()> {
    let count = u64::from(section.summed(SESSION_HEADER)?.le32(0));
    check_entries(section, SESSION_HEADER, count, SESSION_ENTRY)
}

/// Compares the Adler-32 after entries.
fn check_entries(section: &Section<'_>, header: u64, count: u64, size: u64) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let start = section.start() + header;
    // The number has 32 bits, so nothing overflows.
    let length = count * size + 4;
    if length > (section.end - start).min(MAX_ENTRIES * size) {
        return Err(section.invalid("has more entries than fit"));
    }
    let mut bytes = vec![0; length as usize];
    section.file().read_exact_at(&mut bytes, start)?;
    check_sum(section.file(), &bytes, start, "list of errors or sessions")
}

/// Returns a digest, unless it is zero because none was computed.
fn stated(algorithm: &'static str, digest: &[u8]) -> Option<StatedDigest> {
    digest.iter().any(|byte| *byte != 0).then(|| StatedDigest::new(algorithm, digest))
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|it| it as u8);
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Size of the header of `error2` in bytes.
const ERROR_HEADER: u64 = 520;
const ERROR_ENTRY: u64 = 8;

/// Size of the header of `session` in bytes.
const SESSION_HEADER: u64 = 36;
const SESSION_ENTRY: u64 = 32;

/// Maximum number of errors or sessions that an EWF image lists.
/// Limit in entries.
const MAX_ENTRIES: u64 = 1 << 20;
