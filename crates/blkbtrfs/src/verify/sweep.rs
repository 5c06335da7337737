//! Blocks that the walk could not reach, because those above them are lost: the extent tree knows
//! them as well.

use super::walk::Walker;
use super::{Buffers, Job};
use crate::backref::refs::{ExtentItem, TREE_BLOCK};
use crate::error::Result;
use crate::tree::block::ANY_TREE;
use crate::tree::key::kind;
use crate::tree::{Cursor, Expected, Key, object};

/// Verifies the tree blocks of the extent tree that were not visited.
pub(super) fn verify(job: &Job<'_>, walker: &mut Walker<'_>) {
    // What cannot be read of the extent tree was reported already.
    let _ = sweep(job, walker);
}

fn sweep(job: &Job<'_>, walker: &mut Walker<'_>) -> Result<()> {
    let filesystem = job.filesystem;
    let Some(root) = filesystem.tree_root(object::EXTENT_TREE)? else { return Ok(()) };
    let mut buffers = Buffers::default();
    let mut batch = Vec::new();
    let mut cursor = Cursor::seek(filesystem, object::EXTENT_TREE, root, Key::new(0, 0, 0))?;
    while let Some((key, bytes)) = cursor.item() {
        if let Some(block) = tree_block(key, bytes)
            && !walker.mark(block.logical)
        {
            batch.push(block);
        }
        if batch.len() == BATCH {
            job.verify_leaves(&batch, &mut buffers);
            batch.clear();
        }
        cursor.advance()?;
    }
    job.verify_leaves(&batch, &mut buffers);
    Ok(())
}

/// The tree block that an item of the extent tree is about.
fn tree_block(key: Key, bytes: &[u8]) -> Option<Expected> {
    if !matches!(key.kind, kind::EXTENT | kind::METADATA) {
        return None;
    }
    let item = ExtentItem::parse(key, bytes)?;
    (item.flags & TREE_BLOCK != 0).then_some(Expected {
        tree: ANY_TREE,
        logical: key.object,
        level: item.level,
        generation: Some(item.generation),
        first_key: None,
    })
}

/// Blocks at a time.
const BATCH: usize = 16;
