//! Finds paths, from an inode to the root folder of its subvolume, and from there to the top.

use super::search::Search;
use crate::bytes::{u16_at, u64_at};
use crate::error::{Error, Result};
use crate::tree::key::kind;
use crate::tree::{Cursor, Key, object};

/// A name in a folder.
struct Name {
    folder: u64,
    name: Vec<u8>,
}

impl Search<'_> {
    /// Returns the paths of a file, from the top of the file system.
    pub(super) fn paths(&mut self, subvolume: u64, inode: u64) -> Result<Vec<Vec<u8>>> {
        let prefix = self.subvolume_path(subvolume)?;
        let mut paths = Vec::new();
        for name in self.names(subvolume, inode, MAX_LINKS)? {
            let folder = self.folder_path(subvolume, name.folder)?;
            paths.push(join(&[&prefix, &folder, &name.name])?);
        }
        paths.sort();
        Ok(paths)
    }

    /// Returns the path of a subvolume, from the top of the file system.
    pub(super) fn subvolume_path(&mut self, mut subvolume: u64) -> Result<Vec<u8>> {
        let mut path = Vec::new();
        while subvolume != object::FS_TREE {
            self.step()?;
            let Some((parent, name)) = self.parent_subvolume(subvolume)? else { break };
            let folder = self.folder_path(parent, name.folder)?;
            path = join(&[&folder, &name.name, &path])?;
            subvolume = parent;
        }
        Ok(path)
    }

    /// Returns the path of a folder within its subvolume.
    fn folder_path(&mut self, subvolume: u64, mut folder: u64) -> Result<Vec<u8>> {
        let mut path = Vec::new();
        while folder != object::ROOT_FOLDER {
            let names = self.names(subvolume, folder, 1)?;
            let Some(name) = names.into_iter().next() else { break };
            path = join(&[&name.name, &path])?;
            folder = name.folder;
        }
        Ok(path)
    }

    /// Returns at most `limit` names of an inode.
    fn names(&mut self, subvolume: u64, inode: u64, limit: usize) -> Result<Vec<Name>> {
        let mut names = Vec::new();
        let Some(root) = self.filesystem.tree_root(subvolume)? else { return Ok(names) };
        let first = Key::new(inode, kind::INODE_REF, 0);
        let mut cursor = Cursor::seek(self.filesystem, subvolume, root, first)?;
        while let Some((key, bytes)) = cursor.item() {
            self.step()?;
            if key.object != inode || !matches!(key.kind, kind::INODE_REF | kind::INODE_EXTREF) {
                break;
            }
            let mut rest = bytes;
            while let Some((name, length)) = parse_name(key, rest) {
                if names.len() == limit {
                    return Ok(names);
                }
                names.push(name);
                rest = rest.get(length..).unwrap_or_default();
            }
            cursor.advance()?;
        }
        Ok(names)
    }

    /// Returns the parent of a subvolume, and the name of the subvolume there.
    fn parent_subvolume(&self, subvolume: u64) -> Result<Option<(u64, Name)>> {
        let (tree, root) = (object::ROOT_TREE, self.filesystem.superblock().root);
        let first = Key::new(subvolume, kind::ROOT_BACKREF, 0);
        let cursor = Cursor::seek(self.filesystem, tree, root, first)?;
        let Some((key, bytes)) = cursor.item() else { return Ok(None) };
        if (key.object, key.kind) != (subvolume, kind::ROOT_BACKREF) {
            return Ok(None);
        }
        let parse = || {
            let length = usize::from(u16_at(bytes, 16)?);
            Some(Name { folder: u64_at(bytes, 0)?, name: bytes.get(18..)?.get(..length)?.to_vec() })
        };
        Ok(parse().map(|name| (key.offset, name)))
    }
}

/// Returns the first name in an item, and its size in bytes.
fn parse_name(key: Key, bytes: &[u8]) -> Option<(Name, usize)> {
    let (folder, head) = match key.kind {
        kind::INODE_EXTREF => (u64_at(bytes, 0)?, 18),
        _ => (key.offset, 10),
    };
    let length = usize::from(u16_at(bytes, head - 2)?);
    let name = bytes.get(head..)?.get(..length)?.to_vec();
    Some((Name { folder, name }, head + length))
}

fn join(parts: &[&[u8]]) -> Result<Vec<u8>> {
    let parts: Vec<&[u8]> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    let path = parts.join(&b'/');
    if path.len() > MAX_PATH {
        return Err(Error::corrupt(0, "a path is too long, or leads back to itself"));
    }
    Ok(path)
}

/// Maximum number of names that are reported for a file. A hostile file system may have any number.
/// Limit in names.
const MAX_LINKS: usize = 8;

/// Maximum length of a path, longer than any that a program can open. It ends the search in folders
/// that contain each other.
/// Limit in bytes.
const MAX_PATH: usize = 8 << 10;
