//! Compares the extents of files with checksums. Each byte of a file that requires checksums must
//! have one.

use std::ops::Range;
use std::sync::Mutex;

use super::space::{Space, range};
use crate::backref::file_extent::FileExtent;
use crate::bytes::u64_at;
use crate::filesystem::FileSystem;
use crate::tree::key::kind;
use crate::tree::{Cursor, Key, TreeBlock, object};
use crate::verify::job::Job;
use crate::verify::leaf::Leaf;

/// Protection of a file's bytes in an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Preallocated,
    /// Belongs to the root tree.
    Internal,
    NoDataSum,
    /// Requires a checksum.
    Summed,
    /// May have a checksum.
    Either,
}

/// Adds the extents of a leaf. The checksum tree is known by then, except for leaves of a log.
pub(super) fn take(space: &Mutex<Space>, job: &Job<'_>, block: &TreeBlock, leaf: &Leaf) {
    let mut inode = None;
    let mut found: Vec<(Range<u64>, Kind)> = Vec::new();
    for (key, bytes) in block.items() {
        match key.kind {
            kind::INODE => inode = Some((key.object, u64_at(bytes, 64))),
            kind::FILE_EXTENT => {
                let Some(extent) = FileExtent::parse(bytes) else { continue };
                let Some(range) = extent.needed() else { continue };
                if inode.is_none_or(|(number, _)| number != key.object) {
                    inode = Some((key.object, flags_of(job.filesystem, block, leaf, key.object)));
                }
                let flags = inode.and_then(|(_, flags)| flags);
                found.push((range, kind_of(leaf.expected.tree, &extent, flags)));
            }
            _ => {}
        }
    }
    if found.is_empty() {
        return;
    }
    let mut uncovered = Vec::new();
    let mut guard = space.lock().expect("no thread panicked");
    let space = &mut *guard;
    for (range, kind) in found {
        match kind {
            Kind::Preallocated => {
                if space.is_coverage_known {
                    let written = space.covered.overlapping(&range).next();
                    space.written.extend(written.map(|it| it.start.max(range.start)));
                }
                space.preallocated.insert(range);
            }
            Kind::Internal => space.internal.insert(range),
            Kind::NoDataSum | Kind::Either => space.nodatasum.insert(range),
            Kind::Summed if leaf.expected.tree == object::TREE_LOG => space.logged.push(range),
            Kind::Summed if space.is_coverage_known => {
                let gaps: Vec<_> = space.covered.gaps(&range).collect();
                for gap in gaps {
                    let new: Vec<_> = space.uncovered.gaps(&gap).collect();
                    space.uncovered.insert(gap);
                    uncovered.extend(new);
                }
            }
            Kind::Summed => {}
        }
    }
    drop(guard);
    uncovered.into_iter().for_each(|range| job.report_uncovered(range));
}

fn kind_of(tree: u64, extent: &FileExtent, flags: Option<u64>) -> Kind {
    match flags {
        _ if extent.is_preallocated => Kind::Preallocated,
        _ if tree == object::ROOT_TREE => Kind::Internal,
        // Copies by relocation may lack checksums, too.
        _ if matches!(tree, object::DATA_RELOCATION | object::TREE_RELOCATION) => Kind::Either,
        // The kernel compresses no file without checksums. Old versions did if the mount options
        // changed, and no mirror of such an extent can be judged.
        Some(flags) if flags & NODATASUM == 0 || extent.is_compressed => Kind::Summed,
        Some(_) => Kind::NoDataSum,
        // The inode is missing, which is a finding, or is in another leaf of a log.
        None => Kind::Either,
    }
}

/// Returns the flags of an inode that is in another leaf than its extent.
fn flags_of(filesystem: &FileSystem, block: &TreeBlock, leaf: &Leaf, inode: u64) -> Option<u64> {
    let (tree, root) = match leaf.root {
        Some(root) => (leaf.expected.tree, root),
        None => (block.owner(), filesystem.tree_root(block.owner()).ok()??),
    };
    if !object::is_of_files(tree) && tree != object::TREE_LOG {
        return None;
    }
    let key = Key::new(inode, kind::INODE, 0);
    let cursor = Cursor::seek(filesystem, tree, root, key).ok()?;
    let (_, bytes) = cursor.item().filter(|(found, _)| *found == key)?;
    u64_at(bytes, 64)
}

impl FileExtent {
    /// Returns the range of the extent that must be read for its part of the file.
    fn needed(&self) -> Option<Range<u64>> {
        if self.is_compressed {
            return range(self.extent, self.stored);
        }
        range(self.extent.checked_add(self.start)?, self.length)
    }
}

const NODATASUM: u64 = 1;
