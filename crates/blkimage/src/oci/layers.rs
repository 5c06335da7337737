//! The disks in a container image: the files in its folder `disk`, as a container runtime sees them.
//!
//! Layers are applied from the lowest to the topmost one. A file of a layer replaces what has its name below, and a
//! whiteout removes it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;

use super::files::{Files, whole};
use crate::error::{ErrorKind, Result, excerpt};
use crate::probe::{PROBE_SIZE, probe_footer};
use crate::storage::Storage;
use crate::tar::{Entry, Node, Reader};

/// The folder of the disks, after the layers that were applied.
#[derive(Default)]
pub(super) struct Folder {
    /// What is in the folder, by name.
    nodes: BTreeMap<Vec<u8>, Member>,
    /// What is in the place of the folder, if it is not one.
    other: Option<Node>,
    links: Links,
}

/// The symbolic links in all layers. What is extracted through one may become a disk.
#[derive(Default)]
struct Links {
    /// Their paths, without what a path need not have.
    paths: BTreeSet<Vec<u8>>,
    /// A member in a folder that is a link.
    through: Option<Vec<u8>>,
}

impl Links {
    /// Takes the next member. Fails if there are too many links.
    fn add(&mut self, files: &Files, entry: &Entry) -> Result<()> {
        let parts = entry.name.split(|byte| *byte == b'/');
        let parts: Vec<_> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
        let path = parts.join(&b'/');
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut parents = slashes.map(|(at, _)| &path[..at]);
        if self.through.is_none() && parents.any(|parent| self.paths.contains(parent)) {
            self.through = Some(entry.name.clone());
        }
        match entry.node {
            Node::Special(b'2') if self.paths.len() == MAX_LINKS => {
                let reason = format!("has more than {MAX_LINKS} symbolic links in layers");
                return Err(files.error(ErrorKind::Unsupported, reason));
            }
            Node::Special(b'2') => drop(self.paths.insert(path)),
            _ => drop(self.paths.remove(&path)),
        }
        Ok(())
    }
}

/// A file in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Index of its layer.
    pub layer: usize,
    /// Offset in the tar archive.
    pub offset: u64,
    pub size: u64,
    /// Whether the end is that of an image whose header is there.
    pub ends_like_image: bool,
    node: Node,
}

/// A change of the folder by a layer.
enum Change {
    /// Removes everything that lower layers have.
    Hide,
    /// Removes a name that lower layers have.
    Remove(Vec<u8>),
    /// Something takes the place of the folder.
    Replace(Node),
    /// Adds a member of this name, which may end like an image.
    Add(Vec<u8>, Entry, bool),
}

impl Folder {
    /// Applies the layer with this index, whose tar archive is `content`.
    pub fn apply(
        &mut self,
        files: &Files,
        content: Arc<dyn Storage>,
        layer: usize,
        headers_left: &mut u32,
    ) -> Result<()> {
        let file = whole(content, files.name());
        let mut reader = Reader::new(&file, *headers_left).without_padding();
        let mut changes = Vec::new();
        while let Some(entry) = reader.entry()? {
            self.links.add(files, &entry)?;
            if let Some(mut change) = change(files, entry)? {
                if let Change::Add(_, entry, ends_like_image) = &mut change
                    && entry.is_file()
                {
                    let mut end = vec![0; entry.size.min(PROBE_SIZE as u64) as usize];
                    let start = entry.offset + entry.size - end.len() as u64;
                    file.read_exact_at(&mut end, start)?;
                    *ends_like_image = probe_footer(&end).is_some();
                }
                if changes.len() == MAX_CHANGES {
                    let reason =
                        format!("has a layer of more than {MAX_CHANGES} files in the folder disk");
                    return Err(files.error(ErrorKind::Unsupported, reason));
                }
                changes.push(change);
            }
        }
        *headers_left -= reader.headers();
        // Whiteouts concern lower layers only, wherever they are among the members.
        for change in &changes {
            match change {
                Change::Hide => *self = Self { links: take(&mut self.links), ..Self::default() },
                Change::Remove(name) => drop(self.nodes.remove(name)),
                Change::Replace(_) | Change::Add(..) => {}
            }
        }
        for change in changes {
            match change {
                Change::Replace(Node::Folder) => self.other = None,
                Change::Replace(node) => {
                    let links = take(&mut self.links);
                    *self = Self { other: Some(node), links, ..Self::default() };
                }
                Change::Add(name, entry, ends_like_image) => {
                    let Entry { offset, size, node, .. } = entry;
                    let member = Member { layer, offset, size, ends_like_image, node };
                    if let Some(first) = self.nodes.insert(name, member)
                        && first.layer == layer
                        && (first.node, node) != (Node::Folder, Node::Folder)
                    {
                        let name = excerpt(&entry.name);
                        let reason = format!("has two members with the name \"{name}\" in a layer");
                        return Err(files.corrupt(reason));
                    }
                }
                Change::Hide | Change::Remove(_) => {}
            }
        }
        if self.nodes.len() > MAX_CHANGES {
            let reason = format!("has more than {MAX_CHANGES} files in the folder disk");
            return Err(files.error(ErrorKind::Unsupported, reason));
        }
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
        match &self.links.through {
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

/// Returns the change of the folder that a member makes.
fn change(files: &Files, entry: Entry) -> Result<Option<Change>> {
    let parts = entry.name.split(|byte| *byte == b'/');
    let parts: Vec<_> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) || matches!(entry.node, Node::Unknown(_)) {
        let what = entry.node.describe(&excerpt(&entry.name));
        let reason = format!("has the {what} in a layer, which programs extract differently");
        return Err(files.error(ErrorKind::Unsupported, reason));
    }
    let whiteout = |name: &[u8]| name.strip_prefix(WHITEOUT).map(<[u8]>::to_vec);
    Ok(match *parts {
        [OPAQUE] | [FOLDER, OPAQUE] => Some(Change::Hide),
        [name] if whiteout(name).is_some_and(|name| name == FOLDER) => Some(Change::Hide),
        [FOLDER] => Some(Change::Replace(entry.node)),
        [FOLDER, name] => match whiteout(name) {
            // Notes of a file system about itself.
            Some(name) if name.starts_with(WHITEOUT) => None,
            Some(name) => Some(Change::Remove(name)),
            None => Some(Change::Add(name.to_vec(), entry, false)),
        },
        // A folder that has files may have no member of its own.
        [FOLDER, name, ..] => {
            let folder = Entry { node: Node::Folder, ..entry.clone() };
            Some(Change::Add(name.to_vec(), folder, false))
        }
        _ => None,
    })
}

/// The folder in which KubeVirt looks for the disk of a container image.
const FOLDER: &[u8] = b"disk";

/// Beginning of the name of a file that removes the one with the rest of the name.
const WHITEOUT: &[u8] = b".wh.";

/// Name of a file that removes everything in its folder.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Maximum number of symbolic links in all layers. Large container images have some ten thousand.
const MAX_LINKS: usize = 200_000;

/// Maximum number of files in the folder, and of changes in one layer.
const MAX_CHANGES: usize = 10_000;
