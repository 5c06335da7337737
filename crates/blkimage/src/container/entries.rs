//! The members of an archive by name.
//!
//! A program that extracts an archive writes one member after another, each to where the earlier ones lead.
//! If a member is written over another, through it or outside of the folder, the result depends on the program.
//! Such an archive is refused, so each member is the file or folder of its name, in any order.
//!
//! Archives of container images may have links, which are never followed and through which no other
//! member is extracted.

use std::collections::BTreeMap;

use crate::error::{ErrorKind, Result, excerpt};
use crate::storage::HostFile;
use crate::tar::{Entry, Node, Reader};

/// The members of an archive, and where to find each.
#[derive(Clone, Default)]
pub(crate) struct Entries {
    all: Vec<Entry>,
    /// Indices by [`key`]. A folder with several members has the index of the first.
    by_key: BTreeMap<Vec<u8>, usize>,
}

/// The members that an archive may have.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub max_headers: u32,
    /// Whether links, devices and FIFOs are allowed.
    pub special: bool,
    /// Whether files with holes are read.
    pub sparse: bool,
}

impl Rules {
    pub fn reader(self, file: &HostFile) -> Reader<'_> {
        let reader = Reader::new(file, self.max_headers);
        let reader = if self.sparse { reader.with_sparse() } else { reader };
        if self.special { reader.for_runtimes() } else { reader }
    }
}

impl Entries {
    /// Reads the headers of an archive.
    pub fn new(file: &HostFile, rules: Rules) -> Result<Self> {
        let mut reader = rules.reader(file);
        let mut entries = Self::default();
        while let Some(entry) = reader.entry()? {
            entries.add(file, entry, rules)?;
        }
        entries.check_folders(file)?;
        Ok(entries)
    }

    /// Returns the regular files.
    pub fn files(&self) -> impl Iterator<Item = &Entry> {
        self.all.iter().filter(|entry| entry.is_file())
    }

    /// Returns the regular file with this name.
    pub fn find(&self, name: &[u8]) -> Option<&Entry> {
        let index = self.by_key.get(&key(name)).filter(|_| !name.contains(&0))?;
        Some(&self.all[*index]).filter(|entry| entry.is_file())
    }

    /// Returns whether there is a member of any type with this name.
    pub fn has(&self, name: &[u8]) -> bool {
        self.by_key.contains_key(&key(name))
    }

    /// Adds a member. Fails if it is not a file or folder of its own beneath the folder of the archive.
    pub fn add(&mut self, file: &HostFile, entry: Entry, rules: Rules) -> Result<()> {
        let is_allowed = match entry.node {
            Node::File | Node::Folder => true,
            Node::Special(_) | Node::Global => rules.special,
            Node::Unknown(_) => false,
        };
        // What is extracted after a link may go where it leads.
        if !is_allowed {
            let what = entry.node.describe(&excerpt(&entry.name));
            let reason = format!(
                "has the {what} in a tar archive, of which only files and folders are read"
            );
            return Err(file.error(ErrorKind::Unsupported, reason).at(entry.header()));
        }
        if let Some(reason) = refusal(&entry.name, entry.node == Node::Folder) {
            let reason = format!("has the member \"{}\", {reason}", excerpt(&entry.name));
            return Err(file.error(ErrorKind::Unsupported, reason).at(entry.header()));
        }
        let index = *self.by_key.entry(key(&entry.name)).or_insert(self.all.len());
        // A folder may be there more than once, which changes no file.
        if let Some(first) = self.all.get(index)
            && (first.node, entry.node) != (Node::Folder, Node::Folder)
        {
            let reason = format!("has two members with the name \"{}\"", excerpt(&entry.name));
            return Err(file.corrupt(reason).at(entry.header()));
        }
        self.all.push(entry);
        Ok(())
    }

    /// Fails if another member is in a folder that is a file.
    pub fn check_folders(&self, file: &HostFile) -> Result<()> {
        let is_folder = |index: usize| self.all[index].node == Node::Folder;
        let Some((outer, inner)) = beneath_file(&self.by_key, is_folder) else { return Ok(()) };
        let (outer, inner) = (&self.all[outer], &self.all[inner]);
        let what = outer.node.describe(&excerpt(&outer.name));
        let inner_name = excerpt(&inner.name);
        let reason = format!("has the {what}, and \"{inner_name}\" in a folder of this name");
        Err(file.corrupt(reason).at(outer.header().max(inner.header())))
    }
}

/// Returns why programs extract a member to different places, if they do.
pub(super) fn refusal(name: &[u8], is_folder: bool) -> Option<&'static str> {
    let mut components = name.split(|byte| *byte == b'/');
    let last = components.clone().next_back();
    if name.starts_with(b"/") {
        Some("whose name is absolute")
    } else if components.any(|component| component == b"..") {
        Some("whose name has the component \"..\"")
    } else if !is_folder && matches!(last, Some(b"" | b".")) {
        Some("a file with the name of a folder")
    } else {
        None
    }
}

/// Returns a member that is no folder, and another one in a folder of its name. `by_key` has the index of each by its [`key`].
pub(super) fn beneath_file(
    by_key: &BTreeMap<Vec<u8>, usize>,
    is_folder: impl Fn(usize) -> bool,
) -> Option<(usize, usize)> {
    // What is in a folder follows it in the order of keys.
    let mut pairs = by_key.iter().zip(by_key.iter().skip(1));
    let is_beneath = |outer: &[u8], inner: &[u8]| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with(SEPARATOR))
    };
    let found = pairs.find(|((outer_key, outer), (inner_key, _))| {
        !is_folder(**outer) && is_beneath(outer_key, inner_key)
    });
    found.map(|((_, outer), (_, inner))| (*outer, *inner))
}

/// Returns a name without components that lead nowhere. Joined by [`SEPARATOR`], names are in the order of folders.
pub(super) fn key(name: &[u8]) -> Vec<u8> {
    let components = name.split(|byte| *byte == b'/');
    let components = components.filter(|component| !matches!(*component, b"" | b"."));
    components.collect::<Vec<_>>().join(SEPARATOR)
}

/// Sorts before every other byte, and is in no name of a member.
const SEPARATOR: &[u8] = b"\0";
