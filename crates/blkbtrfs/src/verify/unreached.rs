//! Finds tree blocks that the walk could not reach because a block above them is lost. The extent
//! tree lists them as well.

use super::examine::{Buffers, Examiner};
use super::finding::Finding;
use super::job::Job;
use super::leaf::Leaf;
use super::summary::add;
use super::walk::Walker;
use crate::backref::refs::{ExtentItem, TREE_BLOCK};
use crate::error::Result;
use crate::tree::key::kind;
use crate::tree::{ANY_TREE, BlockDefect, Blocks, Cursor, Expected, Key, object};

/// Verifies the tree blocks in the extent tree that were not visited.
pub(super) fn verify(examiner: &Examiner<'_>, walker: &Walker<'_>) {
    // Unreadable blocks of the extent tree were already reported.
    let _ = try_verify(examiner, walker);
}

/// Reports each tree block in the extent tree that has no reference. Returns their number.
pub(super) fn report(job: &Job<'_>, walker: &Walker<'_>) -> u64 {
    // Unreadable blocks of the extent tree were already reported.
    try_report(job, walker).unwrap_or_default()
}

fn try_report(job: &Job<'_>, walker: &Walker<'_>) -> Result<u64> {
    let filesystem = job.filesystem;
    let Some(root) = filesystem.tree_root(object::EXTENT_TREE)? else { return Ok(0) };
    let mut count = 0;
    let mut cursor = Cursor::seek(filesystem, object::EXTENT_TREE, root, Key::new(0, 0, 0))?;
    while let Some((key, bytes)) = cursor.item() {
        if let Some(block) = tree_block(key, bytes).filter(|it| !walker.is_done(it.logical)) {
            report_block(job, &block);
            count += 1;
        }
        cursor.advance()?;
    }
    Ok(count)
}

fn report_block(job: &Job<'_>, block: &Expected) {
    add(&job.counters.lost_blocks, 1);
    let owners = job.owners(|resolver| resolver.tree_block(block));
    let length = job.filesystem.node_size();
    let place = (ANY_TREE, block.level);
    let defect = BlockDefect::Unreached;
    let finding = Finding::of_tree_block(place, Some(block.logical), length, defect);
    job.report(Finding { owners, ..finding });
}

fn try_verify(examiner: &Examiner<'_>, walker: &Walker<'_>) -> Result<()> {
    let filesystem = examiner.job.filesystem;
    let Some(root) = filesystem.tree_root(object::EXTENT_TREE)? else { return Ok(()) };
    let mut buffers = Buffers::default();
    let mut batch: Vec<Leaf> = Vec::new();
    let mut last = None;
    let mut cursor = Cursor::seek(filesystem, object::EXTENT_TREE, root, Key::new(0, 0, 0))?;
    while let Some((key, bytes)) = cursor.item() {
        if let Some(block) = tree_block(key, bytes)
            && !walker.is_done(block.logical)
            && last.replace(block.logical) != Some(block.logical)
            // A block that does not match the extent tree either was already reported.
            && (!walker.is_wrong(block.logical) || filesystem.block(&block).is_ok())
        {
            batch.push(Leaf { expected: block, root: None });
        }
        if batch.len() == BATCH {
            examiner.job.check_cancelled()?;
            examiner.verify(&batch, &mut buffers);
            batch.clear();
        }
        cursor.advance()?;
    }
    examiner.verify(&batch, &mut buffers);
    Ok(())
}

/// Returns the tree block of an item of the extent tree.
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
        end: None,
        parent: None,
    })
}

/// Number of blocks verified at a time.
const BATCH: usize = 16;
