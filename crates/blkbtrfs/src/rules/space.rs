//! Rules for items of space: block groups, and the free space in them.

use super::item::{Item, Rules, Verdict, at_most, exact, expect, field};
use crate::bytes::{u32_at, u64_at};
use crate::chunk;
use crate::tree::key::kind;
use crate::tree::object;

pub(super) fn block_group(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let (key, bytes) = (item.key, item.bytes);
    exact(bytes, 24)?;
    let at = |offset| field(u64_at(bytes, offset));
    expect("owner", &at(8)?, &object::CHUNKS)?;
    at_most("bytes in use", at(0)?, key.offset)?;
    let Some(chunk) = rules.chunks.find(key.object) else { return Err("has no chunk".into()) };
    expect("address", &key.object, &chunk.logical)?;
    expect("length", &key.offset, &chunk.length)?;
    expect("kind of its chunk", &at(16)?, &(chunk.flags & chunk::KNOWN))
}

pub(super) fn free_space(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let key = item.key;
    let sector = u64::from(rules.superblock.sector_size);
    rules.aligned("address", key.object)?;
    rules.aligned("length", key.offset)?;
    if key.offset == 0 {
        return Err("length is 0".into());
    }
    if key.object.checked_add(key.offset).is_none() {
        return Err(format!("length is {}", key.offset));
    }
    match key.kind {
        kind::FREE_SPACE_INFO => {
            exact(item.bytes, 8)?;
            at_most("flags", field(u32_at(item.bytes, 4))?.into(), 1)
        }
        kind::FREE_SPACE_EXTENT => exact(item.bytes, 0),
        _ => exact(item.bytes, (key.offset / sector).div_ceil(8) as usize),
    }
}
