//! Rules for items of the checksum tree.

use super::item::{Item, Rules, Verdict, expect};
use crate::tree::key::kind;
use crate::tree::object;

pub(super) fn checksum(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let (key, size) = (item.key, rules.checksum_size);
    expect("object", &(key.object as i64), &(object::CHECKSUMS as i64))?;
    rules.aligned("address", key.offset)?;
    let covered =
        |bytes: &[u8]| (bytes.len() / size) as u64 * u64::from(rules.superblock.sector_size);
    if item.bytes.is_empty() || !item.bytes.len().is_multiple_of(size) {
        return Err(format!("has {} bytes, no number of checksums", item.bytes.len()));
    }
    if key.offset.checked_add(covered(item.bytes)).is_none() {
        return Err("covers more than all addresses".into());
    }
    if let Some((before, bytes)) = item.before.filter(|(before, _)| before.kind == kind::CHECKSUM) {
        let end = before.offset.saturating_add(covered(bytes));
        if end > key.offset && before.object == key.object {
            return Err(format!("the one before it reaches to {end}"));
        }
    }
    Ok(())
}
