//! Compares subvolumes with their names. Each has a name in a folder of another subvolume, and a
//! copy in the root tree.

use super::names::entry;
use crate::bytes::{u32_at, u64_at};
use crate::error::Result;
use crate::filesystem::FileSystem;
use crate::rules::ROOT_REF_HEAD;
use crate::tree::key::kind;
use crate::tree::{Cursor, Key, object};
use crate::verify::finding::Subject;
use crate::verify::job::Job;

/// Reports subvolumes that a mount would show in another place than the root tree, or not at all.
///
/// # Errors
///
/// Fails if a block is lost.
pub(super) fn compare(job: &Job<'_>) -> Result<()> {
    let filesystem = job.filesystem;
    let report = |tree: u64, reason: String| {
        job.report_contradiction(Subject::Tree(tree), None, 0, reason);
    };
    let root = filesystem.superblock().root;
    let mut cursor = Cursor::seek(filesystem, object::ROOT_TREE, root, Key::new(0, 0, 0))?;
    while let Some((key, bytes)) = cursor.item() {
        match key.kind {
            kind::ROOT if object::is_file_number(key.object) => {
                let is_dead = u32_at(bytes, 216) == Some(0);
                if is_dead && !has(filesystem, Key::new(object::ORPHANS, kind::ORPHAN, key.object))?
                {
                    report(key.object, "nothing refers to it, and it is not to be removed".into());
                }
                if !is_dead && !has(filesystem, Key::new(key.object, kind::ROOT_BACKREF, 0))? {
                    report(key.object, "no folder is said to have it".into());
                }
            }
            kind::ROOT_REF if !is_in_folder(filesystem, key, bytes)? => {
                report(key.offset, format!("tree {} has no entry that leads to it", key.object));
            }
            kind::DIR_ITEM => {
                if let Some(location) = Key::parse(bytes)
                    && location.kind == kind::ROOT
                    && filesystem.tree_root(location.object)?.is_none()
                {
                    report(
                        object::ROOT_TREE,
                        format!("{key} leads to {location}, which is missing"),
                    );
                }
            }
            _ => {}
        }
        cursor.advance()?;
    }
    Ok(())
}

/// Returns whether the root tree has an item. Offset 0 matches any offset.
fn has(filesystem: &FileSystem, key: Key) -> Result<bool> {
    let root = filesystem.superblock().root;
    let cursor = Cursor::seek(filesystem, object::ROOT_TREE, root, key)?;
    Ok(cursor.item().is_some_and(|(found, _)| {
        (found.object, found.kind) == (key.object, key.kind)
            && (key.offset == 0 || found.offset == key.offset)
    }))
}

/// Returns whether the folder of a reference has an entry for its subvolume.
fn is_in_folder(filesystem: &FileSystem, key: Key, bytes: &[u8]) -> Result<bool> {
    let fields = || Some((u64_at(bytes, 0)?, u64_at(bytes, 8)?, bytes.get(ROOT_REF_HEAD..)?));
    let Some((folder, index, name)) = fields() else { return Ok(true) };
    let Some(root) = filesystem.tree_root(key.object)? else { return Ok(false) };
    let wanted = Key::new(folder, kind::DIR_INDEX, index);
    let cursor = Cursor::seek(filesystem, key.object, root, wanted)?;
    let found = cursor.item().filter(|(found, _)| *found == wanted);
    let Some((location, _, named)) = found.and_then(|(_, bytes)| entry(bytes)) else {
        return Ok(false);
    };
    Ok((location.object, location.kind, named) == (key.offset, kind::ROOT, name))
}
