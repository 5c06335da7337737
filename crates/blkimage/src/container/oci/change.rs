//! The changes that members of layers make, by their names.

use crate::tar::{Entry, Node};

/// The change of the file system that a member of a layer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// Removes everything that lower layers have in the folder of the member.
    Hide,
    /// Removes a name that lower layers have in the folder of the member.
    Remove(&'a [u8]),
    /// Adds the member, or replaces what is there.
    Add,
}

/// Returns the parts of a path, without those that lead nowhere.
pub(super) fn parts(name: &[u8]) -> Vec<&[u8]> {
    let parts = name.split(|byte| *byte == b'/');
    parts.filter(|part| !matches!(*part, b"" | b".")).collect()
}

/// Returns the change that a member with these parts of its name makes. Fails with the reason if runtimes differ, or if they
/// remove what they should not.
pub(super) fn change<'a>(entry: &Entry, parts: &[&'a [u8]]) -> Result<Change<'a>, &'static str> {
    const DIFFERENTLY: &str = "which programs extract differently";
    let last = parts.last().copied();
    let is_root = last.is_none() && entry.node != Node::Folder;
    if is_root || parts.contains(&&b".."[..]) || matches!(entry.node, Node::Unknown(_)) {
        return Err(DIFFERENTLY);
    }
    if parts.len() > MAX_PARTS {
        return Err("which is in too many folders");
    }
    if parts.iter().any(|part| part.len() > MAX_PART) {
        return Err("whose name no file system takes");
    }
    let change = match last.and_then(|name| name.strip_prefix(WHITEOUT)) {
        // They mean the folder itself, or the one around it.
        Some(b"" | b"." | b"..") => return Err(DIFFERENTLY),
        Some(OPAQUE) => Change::Hide,
        Some(name) => Change::Remove(name),
        None => Change::Add,
    };
    // Container runtimes remove what has the name of a global header.
    let is_in_folder = change != Change::Add || parts.first() == Some(&FOLDER);
    if entry.node == Node::Global && is_in_folder {
        return Err(DIFFERENTLY);
    }
    Ok(change)
}

/// The folder in which KubeVirt looks for the disk of a container image.
pub(super) const FOLDER: &[u8] = b"disk";

/// Beginning of the name of a file that removes the one with the rest of the name.
const WHITEOUT: &[u8] = b".wh.";

/// Rest of the name of a file that removes everything in its folder.
const OPAQUE: &[u8] = b".wh..opq";

/// Maximum length of a part of a path in a layer, as in file systems of Linux. Limit in bytes.
const MAX_PART: usize = 255;

/// Maximum number of parts of a path in a layer. Each is looked up among the links.
/// Limit in parts.
const MAX_PARTS: usize = 256;
