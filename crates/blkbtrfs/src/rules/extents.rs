//! Rules for items of the extent tree: extents and the references to them.

use super::item::{Item, Rules, Verdict, at_least, at_most, exact, expect, field};
use crate::backref::refs::{DATA, TREE_BLOCK};
use crate::bytes::{u8_at, u32_at, u64_at};
use crate::chunk;
use crate::name_hash::crc32c;
use crate::tree::key::kind;
use crate::tree::{Key, MAX_LEVEL, object};

pub(super) fn extent(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let (key, bytes) = (item.key, item.bytes);
    let is_metadata = key.kind == kind::METADATA;
    if is_metadata && !rules.superblock.has_skinny_metadata() {
        return Err("the feature skinny_metadata is not set".into());
    }
    rules.aligned("address", key.object)?;
    at_least(bytes, HEAD)?;
    let at = |offset| field(u64_at(bytes, offset));
    let (count, generation, flags) = (at(0)?, at(8)?, at(16)?);
    rules.generation("generation", generation)?;
    let is_tree_block = match flags & (DATA | TREE_BLOCK) {
        DATA => false,
        TREE_BLOCK => true,
        _ => return Err(format!("flags {flags:#x} are neither of data nor of a tree block")),
    };
    if flags & !(DATA | TREE_BLOCK | FULL) != 0 || !is_tree_block && flags & FULL != 0 {
        return Err(format!("flags {flags:#x} are not known"));
    }
    if count == 0 {
        return Err("nothing refers to it".into());
    }
    let node_size = u64::from(rules.superblock.node_size);
    let mut rest = &bytes[HEAD..];
    match (is_tree_block, is_metadata) {
        (true, true) => at_most("level", key.offset, MAX_LEVEL.into())?,
        (true, false) => {
            expect("length of a tree block", &key.offset, &node_size)?;
            at_least(rest, BLOCK_INFO)?;
            at_most("level", field(u8_at(rest, Key::SIZE))?.into(), MAX_LEVEL.into())?;
            rest = &rest[BLOCK_INFO..];
        }
        (false, true) => return Err("data is said to be a tree block".into()),
        (false, false) => {
            rules.aligned("length", key.offset)?;
            if key.offset == 0 {
                return Err("length is 0".into());
            }
        }
    }
    let length = length(key, node_size);
    let Some(chunk) = rules.chunks.find_range(key.object, length) else {
        return Err(format!("extent of {length} bytes is in no chunk"));
    };
    let kinds = if is_tree_block { chunk::METADATA | chunk::SYSTEM } else { chunk::DATA };
    if chunk.flags & kinds == 0 {
        return Err("its chunk is not for extents of its kind".into());
    }
    if let Some((before, _)) = item.before.filter(|(it, _)| is_extent(it.kind)) {
        let end = before.object.saturating_add(self::length(before, node_size));
        if end > key.object {
            return Err(format!("the extent before it reaches to {end}"));
        }
    }
    let inline = inline_refs(rules, rest, is_tree_block)?;
    if inline > count {
        return Err(format!("{inline} references are in it, counted are {count}"));
    }
    Ok(())
}

/// Checks the references in an item, and returns their count.
fn inline_refs(rules: &Rules<'_>, mut rest: &[u8], is_tree_block: bool) -> Result<u64, String> {
    let mut sum = 0u64;
    let mut last = (0, u64::MAX);
    while !rest.is_empty() {
        let kind = field(u8_at(rest, 0))?;
        let size = match kind {
            kind::TREE_BLOCK_REF | kind::SHARED_BLOCK_REF if is_tree_block => 8,
            kind::DATA_REF if !is_tree_block => 28,
            kind::SHARED_DATA_REF if !is_tree_block => 12,
            kind::EXTENT_OWNER if !is_tree_block => 8,
            _ => return Err(format!("type of reference {kind} does not belong here")),
        };
        let body = field(rest.get(1..=size))?;
        rest = &rest[1 + size..];
        // The kernel relies on their order to find them.
        let order = match kind {
            kind::DATA_REF => file_ref_hash(body),
            _ => field(u64_at(body, 0))?,
        };
        if kind < last.0 || kind == last.0 && order > last.1 {
            return Err("references in it are out of order".into());
        }
        last = (kind, order);
        let count = match kind {
            kind::DATA_REF => file_ref(rules, body)?,
            kind::EXTENT_OWNER => continue,
            _ => {
                let number = field(u64_at(body, 0))?;
                if kind != kind::TREE_BLOCK_REF {
                    rules.aligned("parent", number)?;
                }
                if kind == kind::SHARED_DATA_REF { field(u32_at(body, 8))? } else { 1 }
            }
        };
        if count == 0 {
            return Err("a reference is counted 0 times".into());
        }
        sum = sum.saturating_add(count.into());
    }
    Ok(sum)
}

pub(super) fn simple_ref(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    let key = item.key;
    rules.aligned("address", key.object)?;
    if key.kind != kind::TREE_BLOCK_REF {
        rules.aligned("parent", key.offset)?;
    }
    if key.kind != kind::SHARED_DATA_REF {
        return exact(item.bytes, 0);
    }
    exact(item.bytes, 4)?;
    if u32_at(item.bytes, 0) == Some(0) { Err("is counted 0 times".into()) } else { Ok(()) }
}

pub(super) fn data_ref(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    rules.aligned("address", item.key.object)?;
    exact(item.bytes, 28)?;
    match file_ref(rules, item.bytes)? {
        0 => Err("is counted 0 times".into()),
        _ => Ok(()),
    }
}

/// Checks a reference from a file, and returns its count.
fn file_ref(rules: &Rules<'_>, body: &[u8]) -> Result<u32, String> {
    let (tree, inode) = (field(u64_at(body, 0))?, field(u64_at(body, 8))?);
    if !object::is_file_tree(tree) && !matches!(tree, object::ROOT_TREE | object::DATA_RELOCATION) {
        return Err(format!("tree {} has no files", tree as i64));
    }
    if !object::is_file_number(inode) && inode != object::FREE_INODES {
        return Err(format!("{} is no inode", inode as i64));
    }
    rules.aligned("offset", field(u64_at(body, 16))?)?;
    field(u32_at(body, 24))
}

/// Hash of tree, inode and offset. References from files are sorted by it.
fn file_ref_hash(body: &[u8]) -> u64 {
    let (tree, rest) = body.split_at(8);
    u64::from(crc32c(!0, tree)) << 31 ^ u64::from(crc32c(!0, &rest[..16]))
}

fn is_extent(kind: u8) -> bool {
    matches!(kind, kind::EXTENT | kind::METADATA)
}

fn length(key: Key, node_size: u64) -> u64 {
    if key.kind == kind::METADATA { node_size } else { key.offset }
}

const HEAD: usize = 24;

/// Size of the first key and the level of a tree block, which old items contain.
const BLOCK_INFO: usize = Key::SIZE + 1;

/// Flag of blocks whose children have references by address.
pub(crate) const FULL: u64 = 1 << 8;
