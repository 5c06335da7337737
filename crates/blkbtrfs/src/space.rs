//! What the bytes of a device are used for, by the extent tree.

use rangemap::RangeMap;

use crate::backref::refs;
use crate::bytes::u64_at;
use crate::chunk::{Chunk, Profile};
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::superblock;
use crate::tree::key::kind;
use crate::tree::{Cursor, Key, object};

/// Bytes of a device that are used for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Offset on the device in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// What they are used for.
    pub usage: Usage,
}

/// What bytes of a device are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Usage {
    /// Superblocks.
    Superblock,
    /// Tree blocks.
    Metadata,
    /// Extents of data, of which parts may belong to no file any more.
    Data,
    /// Nothing.
    Free,
}

/// Returns what the bytes of a device are used for, by offset.
pub(crate) fn of_device(filesystem: &FileSystem, device: u64) -> Result<Vec<Space>> {
    let mut map = RangeMap::new();
    let item = filesystem.device_items().get(&device);
    let end = item.map_or(0, |item| item.total_bytes);
    if RESERVED < end {
        map.insert(RESERVED..end, Some(Usage::Free));
    }
    for chunk in filesystem.chunks().iter() {
        let is_unknown = matches!(chunk.profile, Profile::Raid5 | Profile::Raid6);
        // Extents of the log tree, and data that it refers to, are not in the extent tree.
        if is_unknown || filesystem.superblock().log_root.is_some() {
            for stripe in chunk.stripes.iter().filter(|it| it.device == device) {
                map.insert(stripe.offset..stripe.offset.saturating_add(chunk.stripe_share()), None);
            }
        }
    }
    let Some(root) = filesystem.tree_root(object::EXTENT_TREE)? else {
        return Err(Error::corrupt(0, "there is no extent tree"));
    };
    let mut cursor = Cursor::seek(filesystem, object::EXTENT_TREE, root, Key::new(0, 0, 0))?;
    let mut pieces = 0;
    while let Some((key, bytes)) = cursor.item() {
        if let Some((length, usage)) = extent(key, bytes, filesystem.node_size() as u64) {
            let chunk = filesystem.chunks().find_range(key.object, length);
            if let Some(chunk) = chunk.filter(|it| it.profile.parities() == 0) {
                for (offset, length) in places(chunk, key.object, length, device) {
                    map.insert(offset..offset.saturating_add(length), Some(usage));
                    pieces += 1;
                }
            }
            if pieces > MAX_PIECES {
                return Err(Error::Unsupported(format!("more than {MAX_PIECES} extents")));
            }
        }
        cursor.advance()?;
    }
    for offset in superblock::OFFSETS {
        map.insert(offset..offset + superblock::SIZE as u64, Some(Usage::Superblock));
    }
    let known = map.into_iter().filter_map(|(range, usage)| {
        Some(Space { offset: range.start, length: range.end - range.start, usage: usage? })
    });
    Ok(known.collect())
}

/// Returns the length and the use of an extent.
fn extent(key: Key, bytes: &[u8], node_size: u64) -> Option<(u64, Usage)> {
    let flags = u64_at(bytes, 16)?;
    match key.kind {
        kind::METADATA => Some((node_size, Usage::Metadata)),
        kind::EXTENT if flags & refs::TREE_BLOCK != 0 => Some((key.offset, Usage::Metadata)),
        kind::EXTENT => Some((key.offset, Usage::Data)),
        _ => None,
    }
}

/// Returns the places of all mirrors of bytes on a device.
fn places(
    chunk: &Chunk,
    logical: u64,
    length: u64,
    device: u64,
) -> impl Iterator<Item = (u64, u64)> {
    (0..chunk.mirrors()).flat_map(move |mirror| {
        let mut done = 0;
        std::iter::from_fn(move || {
            let run = (done < length).then(|| chunk.map(logical + done, mirror))?;
            let piece = run.length.min(length - done);
            done += piece;
            Some((run.device, run.physical, piece))
        })
        .filter(move |(on, ..)| *on == device)
        .map(|(_, physical, piece)| (physical, piece))
    })
}

/// Bytes at the beginning of a device that btrfs leaves to boot loaders.
const RESERVED: u64 = 1 << 20;

/// Maximum number of pieces of extents on a device.
/// Limit in pieces.
const MAX_PIECES: u64 = 1 << 23;
