//! B+trees: of an allocation group, whose blocks have short headers, and of extents of a fork, whose are long.

use super::structure::Structure;
use super::superblock::{Block, FsBlock};
use super::verify::Subject;
use super::walk::{Place, Walk};
use crate::bytes::{be16_at, be32_at, be64_at};
use crate::error::Result;
use crate::visitor::ObjectId;

/// A tree.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    pub structure: Structure,
    /// Sizes of a record and of the key of a child in bytes.
    pub record: usize,
    pub key: usize,
    pub owner: TreeOwner,
    /// Whether the records are wanted even if checksums are not.
    pub is_read: bool,
}

/// The owner of a tree's blocks.
#[derive(Clone, Copy, Debug)]
pub enum TreeOwner {
    /// A group. Children are numbered from its first block on.
    Group { number: u32, first: Block, blocks: u64 },
    /// An inode.
    Inode(ObjectId),
}

/// Receives the records of a leaf.
pub type Leaf<'f, 'a> = dyn FnMut(&mut Walk<'a>, &[u8]) -> Result<()> + 'f;

impl Tree {
    fn object(&self) -> Option<ObjectId> {
        match self.owner {
            TreeOwner::Group { .. } => None,
            TreeOwner::Inode(inode) => Some(inode),
        }
    }

    pub fn place(&self, offset: u64) -> Place {
        Place { structure: self.structure.name(), offset, object: self.object() }
    }

    fn owner_number(&self) -> u64 {
        match self.owner {
            TreeOwner::Group { number, .. } => number.into(),
            TreeOwner::Inode(inode) => inode,
        }
    }

    /// Returns the size of the header, and of a pointer to a child.
    fn sizes(&self, is_v5: bool) -> (usize, usize) {
        match (self.owner, is_v5) {
            (TreeOwner::Group { .. }, true) => (56, 4),
            (TreeOwner::Group { .. }, false) => (16, 4),
            (TreeOwner::Inode(_), true) => (72, 8),
            (TreeOwner::Inode(_), false) => (24, 8),
        }
    }
}

impl<'a> Walk<'a> {
    /// Walks over the subtree whose top has `level`, leaves being of level 0, from left to right.
    pub fn tree(
        &mut self,
        tree: &Tree,
        top: FsBlock,
        level: u32,
        parent: u64,
        leaf: &mut Leaf<'_, 'a>,
    ) -> Result<()> {
        let Some(block) = self.child(tree, top) else {
            self.damaged(
                tree.place(parent),
                format!("a child at block {top}, which does not exist"),
            );
            return Ok(());
        };
        if level > MAX_LEVEL {
            self.damaged(tree.place(parent), format!("a child of level {level}"));
            return Ok(());
        }
        if !self.visit(block, 1) {
            self.damaged(
                tree.place(parent),
                format!("a child at block {block}, which is in use twice"),
            );
            return Ok(());
        }
        self.metadata(block, 1, tree.structure.name(), tree.object());
        if level == 0 && !tree.is_read && !self.wanted.checks {
            return Ok(());
        }
        let mut buffer = self.buffer(self.superblock().block_size as usize);
        let result = self.tree_block(tree, block, level, &mut buffer, leaf);
        self.give_back(buffer);
        result
    }

    /// Reads a block of a tree, and continues with its children.
    fn tree_block(
        &mut self,
        tree: &Tree,
        block: Block,
        level: u32,
        bytes: &mut [u8],
        leaf: &mut Leaf<'_, 'a>,
    ) -> Result<()> {
        let sb = self.superblock();
        let place = tree.place(sb.offset(block));
        let (owner, object) = (tree.owner_number(), tree.object());
        let subject = Subject { structure: tree.structure, offset: place.offset, owner, object };
        if !self.read(place, bytes)? || !self.verify(subject, bytes) {
            return Ok(());
        }
        let stated = be16_at(bytes, 4).unwrap_or(0);
        if u32::from(stated) != level {
            self.damaged(place, format!("level {stated} instead of {level}"));
            return Ok(());
        }
        let (header, pointer) = tree.sizes(sb.is_v5);
        let count = usize::from(be16_at(bytes, 6).unwrap_or(0));
        let entry = if level == 0 { tree.record } else { tree.key + pointer };
        let body = bytes.get(header..).unwrap_or_default();
        let room = body.len() / entry;
        if count > room {
            self.damaged(place, format!("{count} entries, where {room} fit"));
            return Ok(());
        }
        if level == 0 {
            return leaf(self, &body[..count * tree.record]);
        }
        self.children(tree, &body[room * tree.key..], pointer, count, level - 1, place, leaf)
    }

    /// Walks over the children of a node or root, of which `pointers` are the numbers.
    #[expect(clippy::too_many_arguments, reason = "a recursion")]
    pub fn children(
        &mut self,
        tree: &Tree,
        pointers: &[u8],
        width: usize,
        count: usize,
        level: u32,
        parent: Place,
        leaf: &mut Leaf<'_, 'a>,
    ) -> Result<()> {
        for index in 0..count {
            let at = index * width;
            let child = match width {
                4 => be32_at(pointers, at).map(FsBlock::from),
                _ => be64_at(pointers, at),
            };
            let Some(child) = child else { break };
            self.tree(tree, child, level, parent.offset, leaf)?;
        }
        Ok(())
    }

    fn child(&self, tree: &Tree, number: FsBlock) -> Option<Block> {
        match tree.owner {
            TreeOwner::Group { first, blocks, .. } => (number < blocks).then(|| first + number),
            TreeOwner::Inode(_) => self.superblock().block(number),
        }
    }
}

/// Maximum height of a tree, above all that the sizes of a file system allow.
/// Limit in levels.
const MAX_LEVEL: u32 = 16;
