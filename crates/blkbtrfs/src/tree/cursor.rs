//! Finds items: reads the blocks of a tree as it goes, whichever mirror of them is good.

use super::reference::{Expected, MAX_LEVEL, TreeRoot, root_block};
use super::{Key, TreeBlock, object};
use crate::error::{Error, Result};

/// Where a cursor has tree blocks from.
pub(crate) trait Blocks: Sync {
    /// A tree block: the first mirror of it that is good, or what parity makes of it.
    fn block(&self, expected: &Expected) -> Result<TreeBlock>;
}

/// Moves over the items of a tree in their order.
pub(crate) struct Cursor<'a> {
    blocks: &'a dyn Blocks,
    tree: u64,
    /// From the root to a leaf, each with the entry it stands at and the reference that led to it.
    path: Vec<(TreeBlock, usize, Expected)>,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first item whose key is not below `key`.
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

    /// A cursor at the last item whose key is not beyond `key`, if there is one.
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

    /// Where it stands; `None` at the end.
    pub(crate) fn item(&self) -> Option<(Key, &[u8])> {
        let (leaf, slot, _) = self.path.last()?;
        leaf.item(*slot)
    }

    /// The leaf it stands in, and at which item; zeros at the end.
    pub(crate) fn place(&self) -> (u64, u32) {
        self.path.last().map_or((0, 0), |(leaf, slot, _)| (leaf.logical(), *slot as u32))
    }

    /// The blocks from the root to the leaf it stands in, the root first.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &TreeBlock> {
        self.path.iter().map(|(block, ..)| block)
    }

    /// Moves to the next item.
    ///
    /// # Errors
    ///
    /// A block is lost, or its keys are not behind those before: without that check nodes that share
    /// children could make a tree without end of a few blocks.
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

    /// Goes down from a block to the last item not beyond `key`, or to the first one.
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
