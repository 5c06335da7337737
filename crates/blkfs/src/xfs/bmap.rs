//! The extents of a fork, which are in the inode or in a tree.

use super::btree::{Tree, TreeOwner};
use super::fork::{BTREE, EXTENTS, Fork};
use super::inode::Inode;
use super::structure::Structure;
use super::superblock::Block;
use super::walk::{Place, Walk};
use crate::bytes::{be16_at, be64_at};
use crate::error::Result;

/// Blocks of a fork that are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first, counted from the beginning of the fork.
    pub offset: u64,
    pub first: Block,
    /// Not 0. All of them exist.
    pub count: u64,
}

/// Receives the mappings of a fork in the order of their offsets.
pub type Each<'f, 'a> = dyn FnMut(&mut Walk<'a>, Mapping) -> Result<()> + 'f;

/// The state of a walk over extents.
struct Progress {
    /// The end of the extents before.
    end: u64,
    count: u64,
}

impl<'a> Walk<'a> {
    /// Walks over the extents of a fork that is not local. Those on a realtime device are left out.
    pub fn mappings(
        &mut self,
        inode: &Inode<'_>,
        fork: &Fork<'_>,
        each: &mut Each<'_, 'a>,
    ) -> Result<()> {
        let place = inode.place();
        let mut progress = Progress { end: 0, count: 0 };
        match fork.format {
            EXTENTS => {
                let stated = usize::try_from(fork.extents).ok().and_then(|n| n.checked_mul(16));
                let Some(records) = stated.and_then(|length| fork.bytes.get(..length)) else {
                    self.damaged(place, format!("{} extents, more than fit", fork.extents));
                    return Ok(());
                };
                self.records(inode, fork, records, &mut progress, each)
            }
            BTREE => {
                let before = self.reports();
                self.bmbt(inode, fork, &mut |walk, records| {
                    walk.records(inode, fork, records, &mut progress, each)
                })?;
                if progress.count != fork.extents && before == self.reports() {
                    let (stated, found) = (fork.extents, progress.count);
                    self.damaged(place, format!("{found} extents instead of {stated}"));
                }
                Ok(())
            }
            format => {
                self.damaged(place, format!("a fork of format {format}"));
                Ok(())
            }
        }
    }

    /// Walks over the tree whose root is in the inode.
    fn bmbt(
        &mut self,
        inode: &Inode<'_>,
        fork: &Fork<'_>,
        leaf: &mut super::btree::Leaf<'_, 'a>,
    ) -> Result<()> {
        let (place, root) = (inode.place(), fork.bytes);
        let level = be16_at(root, 0).unwrap_or(0);
        let count = usize::from(be16_at(root, 2).unwrap_or(0));
        let body = root.get(4..).unwrap_or_default();
        let room = body.len() / 16;
        let Some(below) = u32::from(level).checked_sub(1).filter(|_| count <= room) else {
            self.damaged(place, format!("a root of level {level} with {count} children"));
            return Ok(());
        };
        let tree = Tree {
            structure: Structure::Bmbt,
            record: 16,
            key: 8,
            owner: TreeOwner::Inode(inode.number),
            is_read: true,
        };
        self.children(&tree, &body[room * 8..], 8, count, below, place, leaf)
    }

    fn records(
        &mut self,
        inode: &Inode<'_>,
        fork: &Fork<'_>,
        records: &[u8],
        progress: &mut Progress,
        each: &mut Each<'_, 'a>,
    ) -> Result<()> {
        for record in records.chunks_exact(16) {
            progress.count += 1;
            let (high, low) = (be64_at(record, 0).unwrap_or(0), be64_at(record, 8).unwrap_or(0));
            // A flag, 54 bits of the offset, 52 of the block, and 21 of the count.
            let offset = high >> 9 & ((1 << 54) - 1);
            let number = (high & 0x1ff) << 43 | low >> 21;
            let count = low & ((1 << 21) - 1);
            if offset < progress.end || count == 0 {
                let reason = format!("an extent of {count} blocks at {offset}, not in order");
                self.damaged(inode.place(), reason);
                continue;
            }
            progress.end = offset + count;
            if inode.is_realtime && !fork.is_attributes {
                continue;
            }
            let Some(first) = self.superblock().run(number, count) else {
                let reason = format!("an extent of {count} blocks at {number}, which do not exist");
                self.damaged(inode.place(), reason);
                continue;
            };
            each(self, Mapping { offset, first, count })?;
        }
        Ok(())
    }

    /// Marks the blocks of a mapping of metadata as visited. Reports if some were before, and returns `false`.
    pub fn visit_mapping(&mut self, place: Place, mapping: Mapping) -> bool {
        let is_new = self.visit(mapping.first, mapping.count);
        if !is_new {
            let Mapping { first, count, .. } = mapping;
            self.damaged(place, format!("{count} blocks at {first}, which are in use twice"));
        }
        is_new
    }
}
