//! Rules for items of trees: their roots, names and UUIDs.

use super::item::{Item, Rules, Verdict, at_least, at_most, expect, field};
use crate::bytes::{u8_at, u16_at, u32_at, u64_at};
use crate::tree::key::kind;
use crate::tree::{MAX_LEVEL, object};

pub(super) fn root(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let (key, bytes) = (item.key, item.bytes);
    if key.object == 0 || key.object == object::TREE_RELOCATION && key.offset == 0 {
        return Err("no tree has this number".into());
    }
    let has_offset = object::is_file_number(key.object)
        || matches!(
            key.object,
            object::TREE_RELOCATION | object::TREE_LOG | object::DATA_RELOCATION
        );
    if !has_offset {
        expect("offset", &key.offset, &0)?;
    }
    if item.tree == object::TREE_LOG {
        expect("tree", &(key.object as i64), &(object::TREE_LOG as i64))?;
    }
    if ![LENGTH, OLD_LENGTH].contains(&bytes.len()) {
        return Err(format!("has {} bytes, expected {LENGTH} or {OLD_LENGTH}", bytes.len()));
    }
    rules.generation("generation", field(u64_at(bytes, 160))?)?;
    rules.generation("last snapshot", field(u64_at(bytes, 200))?)?;
    let address = field(u64_at(bytes, 176))?;
    rules.aligned("address", address)?;
    if address == 0 {
        return Err("address is 0".into());
    }
    root_folder(key.object, field(u64_at(bytes, 168))?)?;
    at_most("level", field(u8_at(bytes, 238))?.into(), MAX_LEVEL.into())?;
    at_most("level of the removal", field(u8_at(bytes, 237))?.into(), MAX_LEVEL.into())?;
    let (progress, level) = (field(u64_at(bytes, 220))?, field(u8_at(bytes, 237))?);
    if progress != 0 && level == 0 {
        return Err(format!("its removal has come to {progress}, and to no level"));
    }
    // Other trees without references are about to be removed, or were made by mkfs.
    if u32_at(bytes, 216) == Some(0) && key.object == object::FS_TREE {
        return Err("nothing refers to the tree".into());
    }
    let flags = field(u64_at(bytes, 208))?;
    if flags & !(READ_ONLY | DEAD) != 0 {
        return Err(format!("flags {flags:#x} are not known"));
    }
    if bytes.len() == LENGTH {
        rules.generation("second generation", field(u64_at(bytes, OLD_LENGTH))?)?;
    }
    Ok(())
}

/// Checks the root folder of a tree. Relocation trees have the root item of the tree that they were
/// copied from.
fn root_folder(tree: u64, folder: u64) -> Verdict {
    match tree {
        // mkfs.btrfs 4.16 to 4.19 gives it a root folder like a subvolume's.
        object::UUID_TREE if folder == object::ROOT_FOLDER => Ok(()),
        _ if object::is_of_files(tree) => expect("root folder", &folder, &object::ROOT_FOLDER),
        _ => expect("root folder", &folder, &0),
    }
}

pub(super) fn root_ref(item: &Item<'_>) -> Verdict {
    let (key, bytes) = (item.key, item.bytes);
    at_least(bytes, ROOT_REF_HEAD)?;
    let subvolume = if key.kind == kind::ROOT_REF { key.offset } else { key.object };
    if !object::is_file_number(subvolume) {
        return Err("no subvolume has this number".into());
    }
    let length = usize::from(field(u16_at(bytes, 16))?);
    expect("bytes of the name", &(bytes.len() - ROOT_REF_HEAD), &length)
}

pub(super) fn uuid(item: &Item<'_>) -> Verdict {
    if item.bytes.is_empty() || !item.bytes.len().is_multiple_of(8) {
        return Err(format!("has {} bytes, no number of subvolumes", item.bytes.len()));
    }
    Ok(())
}

/// Size of a root item in bytes, since Linux 3.6 and before.
const LENGTH: usize = 439;
const OLD_LENGTH: usize = 239;

const READ_ONLY: u64 = 1;
const DEAD: u64 = 1 << 48;

/// Bytes before a name.
pub(crate) const ROOT_REF_HEAD: usize = 18;
