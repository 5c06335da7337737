//! Rules for items of devices and their chunks.

use super::item::{Item, Rules, Verdict, at_most, exact, expect, field};
use crate::bytes::u64_at;
use crate::chunk::{Chunk, DATA, METADATA, SYSTEM};
use crate::tree::key::kind;
use crate::tree::object;

pub(super) fn chunk(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    expect("object", &item.key.object, &object::CHUNKS)?;
    let parsed = Chunk::parse(item.key.offset, item.bytes, rules.superblock.sector_size.into());
    let (chunk, length) = parsed.map_err(|error| error.to_string())?;
    match chunk.flags & (DATA | METADATA | SYSTEM) {
        DATA | METADATA | SYSTEM => {}
        MIXED if rules.superblock.has_mixed_groups() => {}
        flags => return Err(format!("a chunk has the flags {flags:#x}: for more than one use")),
    }
    exact(item.bytes, length)
}

pub(super) fn device(_: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let (key, bytes) = (item.key, item.bytes);
    exact(bytes, 98)?;
    expect("object", &key.object, &object::DEVICES)?;
    let at = |offset| field(u64_at(bytes, offset));
    expect("number", &at(0)?, &key.offset)?;
    at_most("bytes in use", at(16)?, at(8)?)
}

pub(super) fn dev_extent(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let (key, bytes) = (item.key, item.bytes);
    exact(bytes, 48)?;
    let at = |offset| field(u64_at(bytes, offset));
    expect("tree", &at(0)?, &object::CHUNK_TREE)?;
    expect("object", &at(8)?, &object::CHUNKS)?;
    let length = at(24)?;
    for (what, value) in [("address", key.offset), ("chunk", at(16)?), ("length", length)] {
        rules.aligned(what, value)?;
    }
    if length == 0 || key.offset.checked_add(length).is_none() {
        return Err(format!("length is {length}"));
    }
    if let Some((before, bytes)) = item.before
        && (before.object, before.kind) == (key.object, kind::DEV_EXTENT)
        && let Some(end) = u64_at(bytes, 24).and_then(|length| before.offset.checked_add(length))
        && end > key.offset
    {
        return Err(format!("the one before it reaches to {end}"));
    }
    Ok(())
}

/// Chunks for both data and metadata.
const MIXED: u64 = DATA | METADATA;
