//! The disks in a container image: the files in its folder `disk`, as a container runtime sees them.
//!
//! Layers are applied from the lowest to the topmost one, and the members of a layer in their order. A file of a layer
//! replaces what has its name below, and a whiteout removes it. Where runtimes differ, or fail, the image is refused.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::change::{Change, FOLDER, change, parts};
use super::files::Files;
use super::links::Links;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::tar::{Entry, Node};

/// The folder of the disks, after the layers that were applied.
#[derive(Default)]
pub(super) struct Folder {
    /// What is in the folder, by name.
    nodes: BTreeMap<Vec<u8>, Member>,
    /// What is in the place of the folder, if it is not one.
    other: Option<Node>,
    /// Index of the topmost layer that has a member in the folder or in its place.
    touched: Option<usize>,
    /// Index of the topmost layer that hides what lower ones have in the folder.
    hides: Option<usize>,
    links: Links,
    /// Hashes of the paths of the members of the layer with the index `layer`.
    names: HashSet<u64>,
    hasher: RandomState,
    layer: usize,
}

/// A file in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Index of its layer.
    pub layer: usize,
    /// Offset in the tar archive.
    pub offset: u64,
    pub size: u64,
    /// Whether an image whose header is there ends here.
    pub ends_like_image: bool,
    node: Node,
}

impl Folder {
    /// Returns whether a member is a file of the folder.
    pub fn has(entry: &Entry) -> bool {
        entry.is_file() && matches!(*parts(&entry.name), [FOLDER, _])
    }

    /// Applies the next member of the layer with this index. `ends_like_image` is about a file of the folder.
    pub fn apply(
        &mut self,
        files: &Files,
        entry: &Entry,
        layer: usize,
        ends_like_image: bool,
    ) -> Result<()> {
        let parts = parts(&entry.name);
        let change = change(entry, &parts).map_err(|reason| refused(files, entry, reason))?;
        if self.layer != layer {
            self.layer = layer;
            self.names.clear();
        }
        // Podman and Docker fail, whatever the member is.
        if !self.names.insert(self.hasher.hash_one(&parts)) {
            return Err(doubled(files, entry));
        }
        if entry.node == Node::Global {
            return Ok(());
        }
        self.links.apply(files, entry, &parts, change, layer)?;
        let is_touched = self.touched == Some(layer);
        match (&*parts, change) {
            ([_], Change::Hide) | ([_], Change::Remove(FOLDER)) => {
                if is_touched {
                    return Err(refused(files, entry, LATE));
                }
                self.nodes.clear();
                self.other = None;
            }
            // A second one finds nothing.
            ([FOLDER, _], Change::Hide) if self.hides.replace(layer) != Some(layer) => {
                self.nodes.retain(|_, member| member.layer == layer);
            }
            ([FOLDER, _], Change::Remove(name)) => match self.nodes.get(name) {
                Some(member) if member.layer == layer => {
                    return Err(refused(files, entry, LATE));
                }
                _ => drop(self.nodes.remove(name)),
            },
            ([FOLDER], Change::Add) => {
                self.touched = Some(layer);
                self.other = (entry.node != Node::Folder).then_some(entry.node);
                if self.other.is_some() {
                    self.nodes.clear();
                }
            }
            ([FOLDER, _], Change::Add) if entry.node == Node::Special(b'1') => {
                return Err(refused(files, entry, "where only files are read"));
            }
            ([FOLDER, name, rest @ ..], Change::Add) => {
                self.touched = Some(layer);
                let Entry { offset, size, node, .. } = *entry;
                let node = if rest.is_empty() { node } else { Node::Folder };
                let member = Member { layer, offset, size, ends_like_image, node };
                self.add(files, entry, name, member, rest.is_empty())?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a member with this name to the folder, or the folder of another one, which may have no member of its own.
    fn add(
        &mut self,
        files: &Files,
        entry: &Entry,
        name: &[u8],
        member: Member,
        is_own: bool,
    ) -> Result<()> {
        let old = self.nodes.get(name);
        // A link in the place of the folder is one of those that `links` knows.
        let is_below_file = self.other == Some(Node::File)
            || !is_own && old.is_some_and(|old| old.node != Node::Folder);
        if is_below_file {
            return Err(refused(files, entry, "in a folder that is a file"));
        }
        if let Some(old) = old
            && old.layer == member.layer
            && (old.node, member.node) != (Node::Folder, Node::Folder)
        {
            return Err(doubled(files, entry));
        }
        if old.is_none() && self.nodes.len() == MAX_NODES {
            let reason = format!("has more than {MAX_NODES} files in the folder disk");
            return Err(files.error(ErrorKind::Unsupported, reason));
        }
        self.nodes.insert(name.to_vec(), member);
        Ok(())
    }

    /// Returns the disks by name. Fails if one cannot be read.
    pub fn disks(self, files: &Files) -> Result<Vec<(Vec<u8>, Member)>> {
        let refused = |node: Node, name: &[u8]| {
            let what = node.describe(&excerpt(name));
            let reason = format!("has the {what} in a layer, where only files are read");
            files.error(ErrorKind::Unsupported, reason)
        };
        match self.other {
            None | Some(Node::File) => {}
            Some(node) => return Err(refused(node, FOLDER)),
        }
        let mut disks = Vec::new();
        for (name, member) in self.nodes {
            let name = [FOLDER, b"/", &name].concat();
            match member.node {
                Node::File => disks.push((name, member)),
                Node::Folder => {}
                node => return Err(refused(node, &name)),
            }
        }
        match self.links.through() {
            Some(name) if !disks.is_empty() => {
                let name = excerpt(name);
                let reason = format!(
                    "has the member \"{name}\" in a folder that is a link, and it may be a disk"
                );
                Err(files.error(ErrorKind::Unsupported, reason))
            }
            _ => Ok(disks),
        }
    }
}

fn refused(files: &Files, entry: &Entry, reason: &str) -> Error {
    let what = entry.node.describe(&excerpt(&entry.name));
    files.error(ErrorKind::Unsupported, format!("has the {what} in a layer, {reason}"))
}

fn doubled(files: &Files, entry: &Entry) -> Error {
    let name = excerpt(&entry.name);
    files.corrupt(format!("has two members with the name \"{name}\" in a layer"))
}

/// About a whiteout that follows what it concerns. Some programs remove what the same layer has.
const LATE: &str = "after a member of the same layer that it concerns";

/// Maximum number of files in the folder of disks.
/// Limit in files.
const MAX_NODES: usize = 10_000;
