//! The links in all layers of a container image. What is extracted through one may become a disk.

use std::collections::BTreeSet;
use std::mem::take;
use std::ops::Bound::{Excluded, Unbounded};

use super::change::{Change, parts};
use super::files::Files;
use crate::error::{ErrorKind, Result};
use crate::tar::{Entry, Node};

/// The symbolic links in the layers that were applied, and the hard links to them, by path without what a path need not have.
#[derive(Default)]
pub(super) struct Links {
    lower: BTreeSet<Vec<u8>>,
    /// The links of the layer with the index `layer`, which whiteouts in it do not concern.
    own: BTreeSet<Vec<u8>>,
    layer: usize,
    /// Number of bytes of the paths.
    size: usize,
    /// A member in a folder that is a link.
    through: Option<Vec<u8>>,
}

impl Links {
    /// Returns a member in a folder that is a link.
    pub fn through(&self) -> Option<&[u8]> {
        self.through.as_deref()
    }

    /// Takes the next member of a layer. Fails if there are too many links.
    pub fn apply(
        &mut self,
        files: &Files,
        entry: &Entry,
        name: &[&[u8]],
        change: Change<'_>,
        layer: usize,
    ) -> Result<()> {
        if self.layer != layer {
            self.lower.append(&mut take(&mut self.own));
            self.layer = layer;
        }
        let path = name.join(&b'/');
        if self.through.is_none() && self.leads_through(&path) {
            self.through = Some(entry.name.clone());
        }
        let folder = &name[..name.len().saturating_sub(1)];
        match change {
            Change::Hide => forget(&mut self.lower, &folder.join(&b'/'), &mut self.size),
            Change::Remove(name) => {
                let path = [folder, &[name]].concat().join(&b'/');
                remove(&mut self.lower, &path, &mut self.size);
                forget(&mut self.lower, &path, &mut self.size);
            }
            Change::Add => {
                let is_link = self.is_link(entry);
                for paths in [&mut self.lower, &mut self.own] {
                    remove(paths, &path, &mut self.size);
                    if entry.node != Node::Folder {
                        forget(paths, &path, &mut self.size);
                    }
                }
                if is_link {
                    self.insert(files, path)?;
                }
            }
        }
        Ok(())
    }

    fn has(&self, path: &[u8]) -> bool {
        self.lower.contains(path) || self.own.contains(path)
    }

    /// Returns whether a member is a symbolic link, or another name of one.
    fn is_link(&self, entry: &Entry) -> bool {
        match (entry.node, &entry.target) {
            (Node::Special(b'2'), _) | (Node::Special(b'1'), None) => true,
            (Node::Special(b'1'), Some(target)) => {
                let parts = parts(target);
                let path = parts.join(&b'/');
                parts.contains(&&b".."[..]) || self.has(&path) || self.leads_through(&path)
            }
            _ => false,
        }
    }

    /// Returns whether a folder of this path is a link.
    fn leads_through(&self, path: &[u8]) -> bool {
        let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let has_links = !self.lower.is_empty() || !self.own.is_empty();
        has_links && slashes.any(|(at, _)| self.has(&path[..at]))
    }

    fn insert(&mut self, files: &Files, path: Vec<u8>) -> Result<()> {
        let count = self.lower.len() + self.own.len();
        if count == MAX_LINKS || self.size + path.len() > MAX_SIZE {
            let reason = format!(
                "has more than {MAX_LINKS} symbolic links in layers, or {} MiB of their names",
                MAX_SIZE >> 20
            );
            return Err(files.error(ErrorKind::Unsupported, reason));
        }
        self.size += path.len();
        self.own.insert(path);
        Ok(())
    }
}

fn remove(paths: &mut BTreeSet<Vec<u8>>, path: &[u8], size: &mut usize) {
    if paths.remove(path) {
        *size -= path.len();
    }
}

/// Removes what is in a folder.
fn forget(paths: &mut BTreeSet<Vec<u8>>, folder: &[u8], size: &mut usize) {
    let mut start = folder.to_vec();
    if !start.is_empty() {
        start.push(b'/');
    }
    loop {
        let mut inner = paths.range::<[u8], _>((Excluded(&*start), Unbounded));
        let Some(path) = inner.next().filter(|path| path.starts_with(&start)).cloned() else {
            return;
        };
        remove(paths, &path, size);
    }
}

/// Maximum number of symbolic links in layers, and of hard links to them. Large container images have some ten
/// thousand.
/// Limit in links.
const MAX_LINKS: usize = 200_000;

/// Maximum size of the paths of all links in layers.
/// Limit in bytes.
const MAX_SIZE: usize = 32 << 20;
