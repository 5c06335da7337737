//! Rules for items of file trees: inodes, and their names, attributes and extents.

use super::inline;
use super::item::{Item, Rules, Verdict, at_least, at_most, exact, expect, field};
use crate::bytes::{u8_at, u16_at, u32_at, u64_at};
use crate::name_hash::name_hash;
use crate::tree::key::kind;
use crate::tree::{Key, object};

pub(super) fn inode(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    exact(item.bytes, INODE_SIZE)?;
    inode_key(item.key)?;
    let bytes = item.bytes;
    rules.generation("generation", field(u64_at(bytes, 0))?)?;
    rules.generation("transaction", field(u64_at(bytes, 8))?)?;
    let (links, mode) = (field(u32_at(bytes, 40))?, field(u32_at(bytes, 52))?);
    if mode & !0o177_777 != 0 || kind_of_mode(mode).is_none() {
        return Err(format!("mode {mode:#o} is of no kind of file"));
    }
    if mode & FORMAT == FOLDER {
        at_most("number of links of a folder", links.into(), 1)?;
    }
    if item.key.object == object::ROOT_FOLDER && item.tree != object::ROOT_TREE {
        // A subvolume's root folder is in no folder of its own tree.
        expect("number of links of the root folder", &links, &1)?;
        expect("kind of the root folder", &(mode & FORMAT), &FOLDER)?;
    }
    if mode & FORMAT == SYMLINK {
        // The target is the whole content. btrfs-convert adds a zero byte.
        let (size, stored) = (field(u64_at(bytes, 16))?, field(u64_at(bytes, 24))?);
        if stored.checked_sub(size).is_none_or(|more| more > 1) {
            return Err(format!("a symbolic link of {size} bytes has {stored}"));
        }
    }
    let flags = field(u64_at(bytes, 64))?;
    if flags & !INODE_FLAGS != 0 {
        return Err(format!("flags {flags:#x} are not known"));
    }
    if mode & FORMAT == SYMLINK && flags & NOT_OF_SYMLINKS != 0 {
        return Err(format!("a symbolic link has the flags {flags:#x}"));
    }
    Ok(())
}

pub(super) fn inode_ref(item: &Item<'_>) -> Verdict {
    named(item)?;
    let mut rest = item.bytes;
    while !rest.is_empty() {
        at_least(rest, REF_HEAD)?;
        let (index, length) = (field(u64_at(rest, 0))?, field(u16_at(rest, 8))?);
        let (name, behind) = name(&rest[REF_HEAD..], length.into())?;
        if item.key.object == item.key.offset && (index, name) != (0, b"..") {
            return Err("a folder is in itself".into());
        }
        rest = behind;
    }
    Ok(())
}

pub(super) fn inode_extref(item: &Item<'_>) -> Verdict {
    named(item)?;
    let mut rest = item.bytes;
    while !rest.is_empty() {
        at_least(rest, EXTREF_HEAD)?;
        let (folder, length) = (field(u64_at(rest, 0))?, field(u16_at(rest, 16))?);
        let (name, behind) = name(&rest[EXTREF_HEAD..], length.into())?;
        expect("hash of the name", &extref_hash(folder, name), &item.key.offset)?;
        rest = behind;
    }
    Ok(())
}

pub(super) fn dir_item(item: &Item<'_>) -> Verdict {
    named(item)?;
    let is_attribute = item.key.kind == kind::XATTR;
    if item.key.kind == kind::DIR_INDEX && item.key.offset < FIRST_INDEX {
        return Err("the kernel does not list it in this place".into());
    }
    let mut rest = item.bytes;
    let mut names = Vec::new();
    while !rest.is_empty() {
        at_least(rest, DIR_HEAD)?;
        let location = field(Key::parse(rest))?;
        // The transaction is not checked, because mkfs.btrfs -r writes an uninitialized value.
        let (data, length) = (field(u16_at(rest, 25))?, field(u16_at(rest, 27))?);
        let entry = field(u8_at(rest, 29))? & !ENCRYPTED;
        if (entry == ATTRIBUTE) != is_attribute || entry > ATTRIBUTE {
            return Err(format!("kind of file {entry} does not belong here"));
        }
        if data > 0 && !is_attribute {
            return Err(format!("a name has {data} bytes of data"));
        }
        match location.kind {
            _ if is_attribute => expect("location", &location, &Key::new(0, 0, 0))?,
            kind::ROOT if object::is_file_tree(location.object) => {}
            kind::INODE => inode_key(location)?,
            _ => return Err(format!("location {location} is neither an inode nor a subvolume")),
        }
        let (name, behind) = name(&rest[DIR_HEAD..], length.into())?;
        if item.key.kind != kind::DIR_INDEX {
            expect("hash of the name", &u64::from(name_hash(name)), &item.key.offset)?;
        }
        rest = field(behind.get(usize::from(data)..))?;
        if item.key.kind == kind::DIR_INDEX && !rest.is_empty() {
            return Err("has more than one name".into());
        }
        // Most items have one name. Those with the same hash share an item.
        if !rest.is_empty() || !names.is_empty() {
            names.push(name);
        }
    }
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("has a name twice".into());
    }
    Ok(())
}

pub(super) fn file_extent(rules: &Rules<'_>, item: &Item<'_>) -> Verdict {
    same_inode(item)?;
    let (key, bytes) = (item.key, item.bytes);
    at_least(bytes, INLINE_HEAD)?;
    rules.aligned("offset", key.offset)?;
    rules.generation("generation", field(u64_at(bytes, 0))?)?;
    let size = field(u64_at(bytes, 8))?;
    let (compression, encryption) = (field(u8_at(bytes, 16))?, field(u8_at(bytes, 17))?);
    at_most("kind of compression", compression.into(), 3)?;
    if encryption != 0 || field(u16_at(bytes, 18))? != 0 {
        return Err("has an encryption or encoding that is not known".into());
    }
    let end = item.before.and_then(|(before, bytes)| file_extent_end(key, before, bytes));
    if let Some(end) = end.filter(|end| *end > key.offset) {
        return Err(format!("the extent before it reaches to {end}"));
    }
    match field(u8_at(bytes, 20))? {
        0 => {
            expect("offset of an inline extent", &key.offset, &0)?;
            // mkfs.btrfs -r wrote larger ones before version 4.16. The kernel reads one sector of
            // them, and zeros after it.
            at_most("size of an inline extent", size, rules.superblock.sector_size.into())?;
            if size == 0 {
                return Err("an inline extent is empty".into());
            }
            inline::check(compression, &bytes[INLINE_HEAD..], size as usize, rules.superblock)
        }
        1 | 2 => {
            exact(bytes, EXTENT_SIZE)?;
            let at = |offset| field(u64_at(bytes, offset));
            let (start, stored, from, length) = (at(21)?, at(29)?, at(37)?, at(45)?);
            for (what, value) in [
                ("size", size),
                ("address", start),
                ("stored size", stored),
                ("place in the extent", from),
                ("length", length),
            ] {
                rules.aligned(what, value)?;
            }
            if key.offset.checked_add(length).is_none() || length == 0 {
                return Err(format!("length is {length}"));
            }
            if start == 0 {
                return Ok(());
            }
            let content = if compression == 0 { stored } else { size };
            if from.checked_add(length).is_none_or(|end| end > content) {
                return Err(format!("{length} bytes from {from} on are not in one of {content}"));
            }
            if stored == 0 {
                return Err("nothing is stored".into());
            }
            at_most("stored size", stored, MAX_EXTENT)?;
            rules.in_chunk("extent", start, stored)
        }
        kind => Err(format!("type {kind} is not known")),
    }
}

/// Returns the end of the previous extent, if it belongs to the same file.
fn file_extent_end(key: Key, before: Key, bytes: &[u8]) -> Option<u64> {
    if (before.object, before.kind) != (key.object, kind::FILE_EXTENT) {
        return None;
    }
    let length = match u8_at(bytes, 20)? {
        // An inline extent fills a sector, and nothing follows in that sector.
        0 => 1,
        _ => u64_at(bytes, 45)?,
    };
    before.offset.checked_add(length)
}

/// Fails if an item of an inode does not follow it. Does not apply to logs, which contain parts of
/// inodes.
fn same_inode(item: &Item<'_>) -> Verdict {
    let Some((before, _)) = item.before else { return Ok(()) };
    if !object::is_file_tree(item.tree) || before.object == item.key.object {
        return Ok(());
    }
    Err(format!("its inode is missing, {before} stands before it"))
}

/// Fails if an item for names has none, or does not follow its inode.
fn named(item: &Item<'_>) -> Verdict {
    same_inode(item)?;
    if item.bytes.is_empty() { Err("has no name".into()) } else { Ok(()) }
}

fn inode_key(key: Key) -> Verdict {
    let is_known = object::is_file_number(key.object)
        || matches!(key.object, object::ROOT_TREE_FOLDER | object::FREE_INODES);
    if is_known && key.offset == 0 { Ok(()) } else { Err(format!("{key} is no key of an inode")) }
}

fn name(bytes: &[u8], length: usize) -> Result<(&[u8], &[u8]), String> {
    if length == 0 || length > MAX_NAME || length > bytes.len() {
        return Err(format!("a name has {length} bytes"));
    }
    Ok(bytes.split_at(length))
}

/// Returns the hash by which an extended reference is found, computed from its folder and name.
fn extref_hash(folder: u64, name: &[u8]) -> u64 {
    crate::name_hash::crc32c(folder as u32, name).into()
}

/// Returns the kind of file in a mode, with the numbers of folder entries.
pub(crate) fn kind_of_mode(mode: u32) -> Option<u8> {
    Some(match mode & FORMAT {
        0o100_000 => 1,
        FOLDER => 2,
        0o020_000 => 3,
        0o060_000 => 4,
        0o010_000 => 5,
        0o140_000 => 6,
        SYMLINK => 7,
        _ => return None,
    })
}

/// Size of an inode item in bytes.
const INODE_SIZE: usize = 160;

/// Bits of a mode for the kind of file.
const FORMAT: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;

/// The twelve flags, the flag that they are set, and fs-verity's flag in the upper half.
const INODE_FLAGS: u64 = 0xfff | 1 << 31 | 1 << 32;

/// Immutable and append-only: no system call can set them on a symbolic link.
const NOT_OF_SYMLINKS: u64 = 1 << 6 | 1 << 7;

/// Bytes before a name.
pub(crate) const REF_HEAD: usize = 10;
pub(crate) const EXTREF_HEAD: usize = 18;
pub(crate) const DIR_HEAD: usize = 30;

/// Kind of file of an extended attribute.
const ATTRIBUTE: u8 = 8;

/// Bit in a kind of file.
const ENCRYPTED: u8 = 0x80;

const MAX_NAME: usize = 255;

/// Lower indices belong to `.` and `..`.
const FIRST_INDEX: u64 = 2;

/// Size of the fields before inline content, and of the whole item of any other extent.
const INLINE_HEAD: usize = 21;
const EXTENT_SIZE: usize = 53;

/// The kernel writes up to 128 MiB, other tools up to 1 GiB.
const MAX_EXTENT: u64 = 1 << 30;
