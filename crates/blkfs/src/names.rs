//! Paths of objects, from the names in directories.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::file_system::FileSystem;
use crate::visitor::{Entry, EntryKind, Extent, Mismatch, ObjectId, Problem, Visitor, Wanted};

/// The names in all directories of a file system, from which paths of objects are made.
#[derive(Debug, Default)]
pub struct Names {
    /// Sorted by object, then parent, then name.
    links: Vec<Link>,
    text: Vec<u8>,
    root: ObjectId,
    /// Whether names are missing, because directories could not be read or there are too many.
    is_partial: bool,
}

/// A name of an object.
#[derive(Clone, Copy, Debug)]
struct Link {
    object: ObjectId,
    parent: ObjectId,
    start: u32,
    length: u16,
    kind: EntryKind,
}

impl Names {
    /// Reads the names of a file system.
    ///
    /// # Errors
    ///
    /// Fails if the file system cannot be read at all.
    pub fn read(file_system: &FileSystem) -> Result<Self> {
        let mut names = Self { root: file_system.root(), ..Self::default() };
        file_system.walk(Wanted { names: true, ..Wanted::default() }, &mut names)?;
        names.sort();
        Ok(names)
    }

    /// Returns the names of a file system that cannot be read.
    pub(crate) fn unknown() -> Self {
        Self { is_partial: true, ..Self::default() }
    }

    /// Returns whether objects may have names that are not known.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the paths of an object from the top directory on, which is `/` itself, sorted, at most `limit`. Names that do not
    /// lead to the top are left out.
    pub fn paths(&self, object: ObjectId, limit: usize) -> Vec<Vec<u8>> {
        if object == self.root {
            return vec![b"/".to_vec()];
        }
        let mut paths: Vec<_> =
            self.links(object).iter().take(limit).filter_map(|link| self.path(*link)).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    fn links(&self, object: ObjectId) -> &[Link] {
        let start = self.links.partition_point(|link| link.object < object);
        let count = self.links[start..].partition_point(|link| link.object == object);
        &self.links[start..start + count]
    }

    /// Returns the path that ends with a link. Of a directory with several links, which is damaged, the first counts.
    fn path(&self, last: Link) -> Option<Vec<u8>> {
        let mut links = vec![last];
        let mut length = usize::from(last.length) + 1;
        while let Some(link) = links.last()
            && link.parent != self.root
        {
            let next = *self.links(link.parent).first()?;
            length += usize::from(next.length) + 1;
            // This also ends circles, as no name is empty.
            if length > MAX_PATH {
                return None;
            }
            links.push(next);
        }
        let mut path = Vec::with_capacity(length);
        for link in links.iter().rev() {
            match link.kind {
                EntryKind::Child if path.is_empty() => {}
                EntryKind::Child => path.push(b'/'),
                EntryKind::Stream => path.push(b':'),
            }
            let start = link.start as usize;
            path.extend_from_slice(&self.text[start..start + usize::from(link.length)]);
        }
        Some(path)
    }

    fn sort(&mut self) {
        let (mut links, text) = (std::mem::take(&mut self.links), &self.text);
        let name = |link: &Link| &text[link.start as usize..][..usize::from(link.length)];
        links.sort_unstable_by(|a, b| {
            (a.object, a.parent).cmp(&(b.object, b.parent)).then_with(|| name(a).cmp(name(b)))
        });
        self.links = links;
    }
}

impl Visitor for Names {
    fn extent(&mut self, _: Extent) {}
    fn matched(&mut self, _: &'static str, _: u64, _: u64) {}
    fn mismatch(&mut self, _: Mismatch) {}

    fn entry(&mut self, entry: Entry<'_>) {
        let (length, start) = (u16::try_from(entry.name.len()), u32::try_from(self.text.len()));
        match (length, start) {
            (Ok(length @ 1..), Ok(start))
                if self.links.len() < MAX_NAMES
                    && self.text.len() + entry.name.len() <= MAX_TEXT =>
            {
                let Entry { parent, object, kind, .. } = entry;
                self.text.extend_from_slice(entry.name);
                self.links.push(Link { object, parent, start, length, kind });
            }
            _ => self.is_partial = true,
        }
    }

    fn problem(&mut self, _: Problem) {
        self.is_partial = true;
    }

    fn advance(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Maximum number of names that are kept, of 32 bytes each.
/// Limit in names.
const MAX_NAMES: usize = 1 << 23;

/// Maximum size of all names together.
/// Limit in bytes.
const MAX_TEXT: usize = 256 << 20;

/// Maximum length of a path, as in Linux. Limit in bytes.
const MAX_PATH: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(entries: &[(u64, u64, &str)]) -> Names {
        let mut names = Names { root: 2, ..Names::default() };
        for (parent, object, name) in entries {
            let (name, kind) = (name.as_bytes(), EntryKind::Child);
            names.entry(Entry { parent: *parent, object: *object, name, kind });
        }
        names.sort();
        names
    }

    #[test]
    fn links_are_paths() {
        let mut names = names(&[(2, 12, "b"), (2, 11, "a"), (11, 12, "hard"), (12, 13, "in file")]);
        assert_eq!(names.paths(12, 16), [b"a/hard".to_vec(), b"b".to_vec()]);
        assert_eq!(names.paths(12, 1).len(), 1);
        assert_eq!(names.paths(2, 16), [b"/".to_vec()]);
        assert!(names.paths(14, 16).is_empty());
        let (name, kind) = (&b"stream"[..], EntryKind::Stream);
        names.entry(Entry { parent: 11, object: 99, name, kind });
        names.sort();
        assert_eq!(names.paths(99, 16), [b"a:stream".to_vec()]);
    }

    #[test]
    fn circles_and_strays_have_no_path() {
        let names = names(&[(21, 20, "a"), (20, 21, "b"), (30, 31, "c"), (31, 32, "")]);
        for object in [20, 21, 31, 32] {
            assert!(names.paths(object, 16).is_empty());
        }
        assert!(names.is_partial());
    }
}
