//! Finds items in a tree, and reads its blocks on the way from any intact mirror.

use super::reference::{Expected, MAX_LEVEL, TreeRoot, root_block};
use super::{Key, TreeBlock, object};
use crate::error::{Error, Result};

/// Source of tree blocks for a cursor.
pub(crate) trait Blocks: Sync {
    /// Returns a tree block from its first intact mirror, or rebuilt from parity.
    fn block(&self, expected: &Expected) -> Result<TreeBlock>;
}

/// Iterates over the items of a tree in order.
pub(crate) struct Cursor<'a> {
    blocks: &'a dyn Blocks,
    tree: u64,
    /// Path from the root to a leaf. Each step has the current entry and the reference to the
    /// block.
    path: Vec<(TreeBlock, usize, Expected)>,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the first item whose key is not below `key`.
    pub(crate) fn seek(
        blocks: &'a dyn Blocks,
        tree: u64,
        root: TreeRoot,
        key: Key,
    ) -> Result<Self> {
        let mut cursor = Self { blocks, tree, path: Vec::new() };
        cursor.descend(root_block(tree, root), key)?;
        if cursor.item().is_none_or(|(found, _)| found < key) {
            cursor.advance()?;
        }
        Ok(cursor)
    }

    /// Creates a cursor at the last item whose key is not above `key`, if any.
    pub(crate) fn seek_back(
        blocks: &'a dyn Blocks,
        tree: u64,
        root: TreeRoot,
        key: Key,
    ) -> Result<Option<Self>> {
        let mut cursor = Self { blocks, tree, path: Vec::new() };
        cursor.descend(root_block(tree, root), key)?;
        Ok(cursor.item().is_some_and(|(found, _)| found <= key).then_some(cursor))
    }

    /// Returns the current item, or `None` at the end.
    pub(crate) fn item(&self) -> Option<(Key, &[u8])> {
        let (leaf, slot, _) = self.path.last()?;
        leaf.item(*slot)
    }

    /// Returns the address of the current leaf and the index of the item, or zeros at the end.
    pub(crate) fn place(&self) -> (u64, u32) {
        self.path.last().map_or((0, 0), |(leaf, slot, _)| (leaf.logical(), *slot as u32))
    }

    /// Returns the blocks from the root to the current leaf.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &TreeBlock> {
        self.path.iter().map(|(block, ..)| block)
    }

    /// Moves to the next item.
    ///
    /// # Errors
    ///
    /// Fails if a block is lost, or if its keys are not above those before. Without this check,
    /// nodes that share children could form an endless tree from a few blocks.
    pub(crate) fn advance(&mut self) -> Result<()> {
        let before = self.item().map(|(key, _)| key);
        self.step()?;
        match (before, self.item(), self.path.last()) {
            (Some(before), Some((after, _)), Some((leaf, ..))) if after <= before => {
                let reason =
                    format!("keys of the {} are out of order", object::tree_name(self.tree));
                Err(Error::corrupt(leaf.logical(), reason))
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self) -> Result<()> {
        while let Some((block, slot, expected)) = self.path.last_mut() {
            *slot += 1;
            if *slot >= block.count() {
                self.path.pop();
                continue;
            }
            match block.child(*slot, expected) {
                None => return Ok(()),
                Some(child) => return self.descend(child, Key::new(0, 0, 0)),
            }
        }
        Ok(())
    }

    /// Descends from a block to the last item not above `key`, or to the first item.
    fn descend(&mut self, from: Expected, key: Key) -> Result<()> {
        let mut next = Some(from);
        while let Some(expected) = next {
            if self.path.len() > usize::from(MAX_LEVEL) {
                return Err(Error::corrupt(expected.logical, "a tree is too deep"));
            }
            let block = self.blocks.block(&expected)?;
            let slot = block.position(key).unwrap_or(0);
            next = block.child(slot, &expected);
            self.path.push((block, slot, expected));
        }
        Ok(())
    }
}
