//! Finds the owners of a block: files, through the references in the extent tree, or trees.
//!
//! The search goes from an extent to its references ([`refs`]), from each to the leaves with the
//! file's items ([`file_extent`]), from a leaf up to the roots of all trees that share it, and from
//! an inode to its paths ([`paths`]). The search is best effort. Trees may be damaged and hostile
//! ones may have endless references, so every step is counted.

pub(crate) mod file_extent;
mod paths;
pub(crate) mod refs;
mod search;

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use self::file_extent::FileExtent;
use self::refs::{ExtentItem, Reference};
use self::search::Search;
use crate::error::Result;
use crate::filesystem::FileSystem;
use crate::tree::key::kind;
use crate::tree::{
    ANY_TREE, Blocks, Cursor, Expected, Key, MAX_LEVEL, TreeBlock, object, root_block,
};

/// Owners of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// Files or trees. Data without owners is left over from content that was overwritten, or
    /// belongs to a log.
    pub list: Vec<Owner>,
    /// Whether there may be more.
    pub is_partial: bool,
    /// Error that ended the search, if any.
    pub problem: Option<String>,
}

impl Owners {
    /// Returns the names of the files, from the top of the file system. One file may have several.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        let of_files = self.list.iter().filter_map(|owner| match owner {
            Owner::File { paths, .. } => Some(paths),
            _ => None,
        });
        of_files.flatten().map(Vec::as_slice)
    }
}

/// A file or a tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Owner {
    /// A file.
    File {
        /// Number of the subvolume.
        subvolume: u64,
        /// Number of the inode.
        inode: u64,
        /// Offset of the data in the file.
        offset: u64,
        /// Paths of the file, from the top of the file system.
        paths: Vec<Vec<u8>>,
    },
    /// A tree.
    Tree {
        /// Number of the tree.
        number: u64,
        /// Name of the tree's type.
        name: &'static str,
        /// Path of a subvolume, from the top of the file system.
        path: Option<Vec<u8>>,
    },
}

/// Finds owners of blocks.
pub(crate) struct Resolver<'a> {
    filesystem: &'a FileSystem,
    max_owners: usize,
    /// Steps taken for all blocks so far.
    steps: AtomicU64,
    /// Last extent found, because bad sectors are often adjacent.
    last: Mutex<Option<Arc<Extent>>>,
}

/// An extent of data with its users.
struct Extent {
    logical: u64,
    length: u64,
    uses: Vec<Use>,
    is_partial: bool,
}

/// A part of a file, in all trees that share it.
struct Use {
    trees: Vec<u64>,
    inode: u64,
    offset: u64,
    file_extent: FileExtent,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(filesystem: &'a FileSystem, max_owners: usize) -> Self {
        Self::after(filesystem, max_owners, 0)
    }

    /// Like [`new`](Self::new), after another resolver took `steps`.
    pub(crate) fn after(filesystem: &'a FileSystem, max_owners: usize, steps: u64) -> Self {
        Self { filesystem, max_owners, steps: AtomicU64::new(steps), last: Mutex::new(None) }
    }

    /// Returns the number of steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the files that the data at `logical` belongs to.
    pub(crate) fn data(&self, logical: u64) -> Owners {
        self.limited(|search| {
            let Some(extent) = self.extent(search, logical)? else { return Ok(Owners::default()) };
            let mut owners = Owners { is_partial: extent.is_partial, ..Owners::default() };
            for it in &extent.uses {
                let Some(offset) = it.file_extent.offset_of(logical, it.offset) else { continue };
                for &subvolume in &it.trees {
                    if owners.list.len() == self.max_owners {
                        owners.is_partial = true;
                        return Ok(owners);
                    }
                    let paths = search.paths(subvolume, it.inode).unwrap_or_default();
                    owners.list.push(Owner::File { subvolume, inode: it.inode, offset, paths });
                }
            }
            owners.list.sort();
            owners.list.dedup();
            Ok(owners)
        })
    }

    /// Returns whether a file has written the data at `logical`, or true if this cannot be
    /// determined.
    pub(crate) fn is_written(&self, logical: u64) -> bool {
        let mut search = Search { filesystem: self.filesystem, left: MAX_STEPS };
        let Ok(Some(extent)) = search.extent(logical) else { return true };
        let is_use = |it: &Use| {
            !it.file_extent.is_preallocated && it.file_extent.offset_of(logical, 0).is_some()
        };
        extent.is_partial || extent.uses.iter().any(is_use)
    }

    /// Returns the trees that a tree block belongs to.
    pub(crate) fn tree_block(&self, block: &Expected) -> Owners {
        self.limited(|search| {
            let is_shared = object::is_file_tree(block.tree) || block.tree == ANY_TREE;
            let mut trees = BTreeSet::from([block.tree]);
            if is_shared {
                // The block itself, and with it its key, may be lost.
                trees.extend(search.trees_of(block.logical, block.first_key).unwrap_or_default());
                trees.remove(&ANY_TREE);
            }
            let mut owners =
                Owners { is_partial: trees.len() > self.max_owners, ..Owners::default() };
            for number in trees.into_iter().take(self.max_owners) {
                let path = if object::is_file_tree(number) {
                    search.subvolume_path(number).ok()
                } else {
                    None
                };
                owners.list.push(Owner::Tree { number, name: object::tree_name(number), path });
            }
            Ok(owners)
        })
    }

    fn limited(&self, find: impl FnOnce(&mut Search<'_>) -> Result<Owners>) -> Owners {
        let taken = self.steps.load(Ordering::Relaxed);
        let left = MAX_STEPS.min(MAX_TOTAL_STEPS.saturating_sub(taken));
        let mut search = Search { filesystem: self.filesystem, left };
        let found = find(&mut search);
        self.steps.fetch_add(left - search.left, Ordering::Relaxed);
        found.unwrap_or_else(|error| Owners {
            is_partial: true,
            problem: Some(error.to_string()),
            ..Owners::default()
        })
    }

    fn extent(&self, search: &mut Search<'_>, logical: u64) -> Result<Option<Arc<Extent>>> {
        let holds = |extent: &Arc<Extent>| {
            logical.checked_sub(extent.logical).is_some_and(|offset| offset < extent.length)
        };
        let last = self.last.lock().expect("no thread panicked").clone();
        if let Some(extent) = last.filter(holds) {
            return Ok(Some(extent));
        }
        let found = search.extent(logical)?.map(Arc::new);
        if let Some(extent) = &found {
            *self.last.lock().expect("no thread panicked") = Some(extent.clone());
        }
        Ok(found)
    }
}

impl<'a> Search<'a> {
    /// Returns the extent of data that holds `logical`.
    fn extent(&mut self, logical: u64) -> Result<Option<Extent>> {
        let Some((key, references)) = self.references_around(logical)? else { return Ok(None) };
        let mut extent =
            Extent { logical: key.object, length: key.offset, uses: Vec::new(), is_partial: false };
        for reference in references {
            if extent.uses.len() >= MAX_USES {
                extent.is_partial = true;
                break;
            }
            let found = match reference {
                Reference::File { tree, inode, offset } => {
                    self.uses_in_file(&mut extent, tree, inode, offset)
                }
                Reference::Leaf(leaf) => self.uses_in_leaf(&mut extent, leaf),
                Reference::Tree(_) | Reference::Block(_) => Ok(()),
            };
            extent.is_partial |= found.is_err();
        }
        Ok(Some(extent))
    }

    /// Returns the key and the references of the extent of data that holds `logical`.
    fn references_around(&mut self, logical: u64) -> Result<Option<(Key, Vec<Reference>)>> {
        let tree = object::EXTENT_TREE;
        let Some(root) = self.filesystem.tree_root(tree)? else { return Ok(None) };
        let last = Key::new(logical, kind::EXTENT, u64::MAX);
        let Some(before) = Cursor::seek_back(self.filesystem, tree, root, last)? else {
            return Ok(None);
        };
        let Some((before, _)) = before.item() else { return Ok(None) };
        let first = Key::new(before.object, kind::EXTENT, 0);
        let cursor = Cursor::seek(self.filesystem, tree, root, first)?;
        let Some((key, _)) = cursor.item() else { return Ok(None) };
        let holds = key.object.checked_add(key.offset).is_some_and(|end| logical < end);
        if key.kind != kind::EXTENT || key.object != before.object || !holds {
            return Ok(None);
        }
        Ok(Some((key, self.references(cursor)?)))
    }

    /// Returns all references of the extent at the cursor.
    fn references(&mut self, mut cursor: Cursor<'_>) -> Result<Vec<Reference>> {
        let mut found = Vec::new();
        let Some((first, bytes)) = cursor.item() else { return Ok(found) };
        if let Some(item) = ExtentItem::parse(first, bytes) {
            found.extend(item.references().map(|(reference, _)| reference));
        }
        loop {
            self.step()?;
            cursor.advance()?;
            let Some((key, bytes)) = cursor.item().filter(|(key, _)| key.object == first.object)
            else {
                return Ok(found);
            };
            found.extend(Reference::parse(key, bytes));
        }
    }

    /// Finds the parts of an extent that a file uses, at or after `offset` in the file.
    fn uses_in_file(
        &mut self,
        extent: &mut Extent,
        tree: u64,
        inode: u64,
        offset: u64,
    ) -> Result<()> {
        let Some(root) = self.filesystem.tree_root(tree)? else { return Ok(()) };
        // Negative if the file starts within the extent and does not use the extent's beginning.
        let first = if (offset as i64) < 0 { 0 } else { offset };
        let key = Key::new(inode, kind::FILE_EXTENT, first);
        let mut cursor = Cursor::seek(self.filesystem, tree, root, key)?;
        let mut trees: Option<(u64, Vec<u64>)> = None;
        while let Some((key, bytes)) = cursor.item() {
            self.step()?;
            let found = FileExtent::parse(bytes).filter(|it| it.extent == extent.logical);
            if (key.object, key.kind) != (inode, kind::FILE_EXTENT)
                || key.offset.wrapping_sub(offset) > MAX_EXTENT
            {
                break;
            }
            if let Some(file_extent) = found {
                let leaf = cursor.blocks().last().map_or(0, TreeBlock::logical);
                if trees.as_ref().is_none_or(|(known, _)| *known != leaf) {
                    let mut found = self.trees_of_path(&cursor).unwrap_or_default();
                    found.insert(tree);
                    trees = Some((leaf, found.into_iter().collect()));
                }
                let trees = trees.as_ref().map(|(_, trees)| trees.clone()).unwrap_or_default();
                extent.uses.push(Use { trees, inode, offset: key.offset, file_extent });
            }
            cursor.advance()?;
        }
        Ok(())
    }

    /// Finds the parts of an extent that files in a leaf use.
    fn uses_in_leaf(&mut self, extent: &mut Extent, leaf: u64) -> Result<()> {
        let block = self.filesystem.block(&any_block(leaf, 0))?;
        let trees: Vec<u64> = self.trees_of(leaf, block.key(0))?.into_iter().collect();
        for (key, bytes) in block.items().filter(|(key, _)| key.kind == kind::FILE_EXTENT) {
            self.step()?;
            if let Some(file_extent) =
                FileExtent::parse(bytes).filter(|it| it.extent == extent.logical)
            {
                let (inode, offset) = (key.object, key.offset);
                extent.uses.push(Use { trees: trees.clone(), inode, offset, file_extent });
            }
        }
        Ok(())
    }

    /// Returns the trees that share the current leaf of a cursor.
    fn trees_of_path(&mut self, cursor: &Cursor<'_>) -> Result<BTreeSet<u64>> {
        let leaf = cursor.blocks().last();
        match leaf {
            Some(leaf) => self.trees_of(leaf.logical(), leaf.key(0)),
            None => Ok(BTreeSet::new()),
        }
    }

    /// Returns the trees that share a tree block with the first key `key`.
    fn trees_of(&mut self, logical: u64, key: Option<Key>) -> Result<BTreeSet<u64>> {
        let mut trees = BTreeSet::new();
        let mut seen = HashSet::new();
        let mut todo = vec![(logical, key)];
        while let Some((logical, key)) = todo.pop() {
            self.step()?;
            if !seen.insert(logical) {
                continue;
            }
            let Some((level, references)) = self.references_of_block(logical)? else { continue };
            for reference in references {
                match reference {
                    Reference::Tree(tree) => {
                        self.step()?;
                        if let Some(parent) = self.parent_in(tree, logical, level, key)? {
                            todo.push(parent);
                        } else {
                            trees.insert(tree);
                        }
                    }
                    Reference::Block(parent) => {
                        let key = match self.filesystem.block(&any_block(parent, level + 1)) {
                            Ok(block) => block.key(0),
                            Err(_) => key,
                        };
                        todo.push((parent, key));
                    }
                    Reference::File { .. } | Reference::Leaf(_) => {}
                }
            }
        }
        Ok(trees)
    }

    /// Returns the level and the references of a tree block.
    fn references_of_block(&mut self, logical: u64) -> Result<Option<(u8, Vec<Reference>)>> {
        let tree = object::EXTENT_TREE;
        let Some(root) = self.filesystem.tree_root(tree)? else { return Ok(None) };
        let first = Key::new(logical, kind::EXTENT, 0);
        let cursor = Cursor::seek(self.filesystem, tree, root, first)?;
        let Some((key, bytes)) = cursor.item() else { return Ok(None) };
        if key.object != logical || !matches!(key.kind, kind::EXTENT | kind::METADATA) {
            return Ok(None);
        }
        let level = ExtentItem::parse(key, bytes).map(|item| item.level);
        let Some(level) = level.filter(|level| *level <= MAX_LEVEL) else { return Ok(None) };
        Ok(Some((level, self.references(cursor)?)))
    }

    /// Returns the parent of a block in a tree that the block belongs to. Returns `None` if the
    /// block is the root, or if the path to it is damaged.
    fn parent_in(
        &self,
        tree: u64,
        logical: u64,
        level: u8,
        key: Option<Key>,
    ) -> Result<Option<(u64, Option<Key>)>> {
        let Some(root) = self.filesystem.tree_root(tree)? else { return Ok(None) };
        let Some(key) = key.filter(|_| root.logical != logical && root.level > level) else {
            return Ok(None);
        };
        let mut expected = root_block(tree, root);
        let mut block = self.filesystem.block(&expected)?;
        while block.level() > level + 1 {
            let Some(child) = block.child(block.position(key).unwrap_or(0), &expected) else {
                return Ok(None);
            };
            block = self.filesystem.block(&child)?;
            expected = child;
        }
        let leads_here = block
            .child(block.position(key).unwrap_or(0), &expected)
            .is_some_and(|child| child.logical == logical);
        Ok(leads_here.then(|| (block.logical(), block.key(0))))
    }
}

fn any_block(logical: u64, level: u8) -> Expected {
    Expected {
        tree: ANY_TREE,
        logical,
        level,
        generation: None,
        first_key: None,
        end: None,
        parent: None,
    }
}

/// Maximum length of an extent in bytes.
const MAX_EXTENT: u64 = 1 << 30;

/// Maximum number of parts of files for one extent. A hostile file system may have any number.
/// Limit in parts.
const MAX_USES: usize = 256;

/// Maximum number of steps of a search for the files of one block. Each step reads an item or a
/// block.
/// Limit in steps.
const MAX_STEPS: u64 = 50_000;

/// Maximum number of steps of the searches for all blocks, which take some seconds.
/// Limit in steps.
const MAX_TOTAL_STEPS: u64 = 5_000_000;
