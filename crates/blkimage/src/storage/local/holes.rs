//! Holes of a file, as its file system reports them.
//!
//! A walk through a file costs one system call for each extent, even with small steps. An image may store
//! its content in any order, so known extents are kept for a return, but only once offsets jump. A file
//! that shrinks is an error, even though its lost tail would look like a hole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::page_cache::is_resident;
use crate::sys::{self, FileSystem};
use crate::{Extent, ExtentKind};

/// The extents of one file that are known so far.
pub(super) struct Holes(Mutex<Known>);

struct Known {
    /// The extent that was used last. Empty at first.
    last: Extent,
    /// Other extents by their offset. They may overlap. Empty as long as offsets do not jump.
    others: BTreeMap<u64, Extent>,
    is_flushed: bool,
    /// Length of the next query of the page cache, a power of two, on a file system in memory. 0 disables
    /// the query.
    step: Option<u64>,
    /// Whether the file has a page for each of its bytes, on a file system in memory.
    is_full: bool,
}

impl Holes {
    /// `size` is the size of `file` when it was opened.
    pub fn new(file: &File, size: u64, file_system: FileSystem) -> Self {
        Self(Mutex::new(Known {
            last: Extent { offset: 0, length: 0, kind: ExtentKind::Data },
            others: BTreeMap::new(),
            is_flushed: file_system.knows_dirty_holes,
            step: file_system.is_memory.then_some(MIN_STEP),
            is_full: file_system.is_memory && is_full(file, size),
        }))
    }

    /// Returns the extent of `file` from `offset` on, which is below `size`, the size of the file when it was opened.
    pub fn extent(&self, file: &File, size: u64, offset: u64) -> io::Result<Extent> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.find(file, size, offset)?;
        Ok(Extent { offset, length: found.end() - offset, kind: found.kind })
    }
}

impl Known {
    /// Returns an extent that contains the byte at `offset`.
    fn find(&mut self, file: &File, size: u64, offset: u64) -> io::Result<Extent> {
        if self.last.contains(offset) {
            return Ok(self.last);
        }
        let is_jump = offset != self.last.end();
        if is_jump || !self.others.is_empty() {
            self.keep_last();
            let before = self.others.range(..=offset).next_back();
            if let Some((_, known)) = before.filter(|(_, known)| known.contains(offset)) {
                self.last = *known;
                return Ok(self.last);
            }
        }
        if !std::mem::replace(&mut self.is_flushed, true) {
            let _ = file.sync_all();
        }
        let found = self.seek(file, size, offset)?;
        self.last = joined(self.last, found).unwrap_or(found);
        Ok(self.last)
    }

    fn keep_last(&mut self) {
        if self.last.length == 0 {
            return;
        }
        if self.others.len() >= MAX_KNOWN {
            self.others.clear();
        }
        self.others.insert(self.last.offset, self.last);
    }

    fn seek(&mut self, file: &File, size: u64, offset: u64) -> io::Result<Extent> {
        let to_end = Extent { offset, length: size - offset, kind: ExtentKind::Data };
        // The end of a hole is the start of data.
        let is_behind_hole = self.last.kind == ExtentKind::Zero && self.last.end() == offset;
        let data = if is_behind_hole { Ok(Some(offset)) } else { sys::seek_data(file, offset) };
        match data {
            Ok(Some(data)) if data > offset => {
                Ok(Extent { length: data.min(size) - offset, kind: ExtentKind::Zero, ..to_end })
            }
            Ok(Some(_)) => Ok(self.data(file, size, offset)),
            Ok(None) if sys::stamp(file)?.size < size => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(None) => Ok(Extent { kind: ExtentKind::Zero, ..to_end }),
            // The file system does not support the query, so everything has to be read.
            Err(_) => Ok(to_end),
        }
    }

    /// Returns the data around `offset`, as far as it is known.
    ///
    /// On tmpfs, a search for a hole walks all pages up to it, which delays the first read. The page
    /// cache is queried instead, in steps that grow while there is only data. After a jump, the query
    /// begins at a multiple of the step, so that a file in disorder takes no more queries than another.
    ///
    /// The query walks the pages as well, so a full file omits it. Its steps remain, because pages that
    /// fallocate reserved are holes, and the search for data at the next step finds them. Zeros within
    /// a step are read.
    fn data(&mut self, file: &File, size: u64, offset: u64) -> Extent {
        let data = |start: u64, end: u64| Extent {
            offset: start,
            length: end - start,
            kind: ExtentKind::Data,
        };
        if let Some(step) = self.step.as_mut().filter(|step| **step > 0) {
            let is_jump = offset != self.last.end();
            let start = if is_jump { offset - offset % *step } else { offset };
            let length = (*step).min(size - start);
            if self.is_full || is_resident(file, start, length as usize) {
                *step = MAX_STEP.min(2 * *step);
                return data(start, start + length);
            }
        }
        let end = match sys::seek_hole(file, offset) {
            Ok(Some(hole)) if hole > offset => hole.min(size),
            _ => size,
        };
        // Where extents are short, the query of the page cache is not worth it.
        let is_long = end - offset >= MIN_STEP;
        self.step = self.step.map(|_| if is_long { MIN_STEP } else { 0 });
        data(offset, end)
    }
}

/// Returns whether a file on a file system in memory has as many pages as its size takes. They include
/// reserved pages, also past its end, so some bytes may still be holes.
fn is_full(file: &File, size: u64) -> bool {
    let page = rustix::param::page_size() as u64;
    sys::stored(file).is_some_and(|stored| stored >= size.next_multiple_of(page))
}

/// Returns both extents as one if the second continues the first.
fn joined(first: Extent, second: Extent) -> Option<Extent> {
    let continues = first.kind == second.kind && first.end() == second.offset;
    continues.then(|| Extent { length: first.length + second.length, ..first })
}

/// Minimum length of a query of the page cache in bytes. Shorter extents are found as
/// fast by a search for holes.
const MIN_STEP: u64 = 256 << 10;

/// Maximum length of a query: worth a system call, but short enough that no other thread waits for it.
const MAX_STEP: u64 = 4 << 20;

/// Maximum number of extents of a file that are kept, in about 256 KiB. The extents of a file that is read in disorder
/// are many. Limit in extents.
const MAX_KNOWN: usize = 4096;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::FallocateFlags;

    use super::*;

    fn page_size() -> u64 {
        rustix::param::page_size() as u64
    }

    /// Creates a file in `folder` of `pages` pages, with data in those for which `has_data` says so.
    fn file(folder: &str, pages: u64, has_data: impl Fn(u64) -> bool) -> File {
        let file = tempfile::tempfile_in(folder).unwrap();
        file.set_len(pages * page_size()).unwrap();
        for page in (0..pages).filter(|page| has_data(*page)) {
            file.write_all_at(&vec![1; page_size() as usize], page * page_size()).unwrap();
        }
        file
    }

    /// Asks for all pages in the order of `order`. Fails if data is called zero. Returns the number of
    /// pages that are called data.
    fn data(file: &File, pages: u64, order: impl Fn(u64) -> u64) -> usize {
        let size = pages * page_size();
        let holes = Holes::new(file, size, sys::file_system(file));
        let mut byte = [0];
        let mut is_data = |index| {
            let offset = order(index) * page_size();
            let extent = holes.extent(file, size, offset).unwrap();
            assert!(extent.offset == offset && extent.length > 0);
            let end = offset + extent.length.min(8 * page_size());
            for at in (offset..end).step_by(page_size() as usize) {
                file.read_exact_at(&mut byte, at).unwrap();
                assert!(extent.kind == ExtentKind::Data || byte == [0], "{at}: {extent:?}");
            }
            extent.kind == ExtentKind::Data
        };
        (0..pages).filter(|index| is_data(*index)).count()
    }

    #[test]
    fn extents_in_any_order() {
        let pages = 4099;
        let temporary = std::env::temp_dir();
        for folder in [temporary.to_str().unwrap(), "/dev/shm"] {
            // Runs of 1 to 300 pages.
            let has_data = |page: u64| page / (1 + page / 128 * 9) % 2 == 1;
            let some = file(folder, pages, has_data);
            let full = file(folder, pages, |_| true);
            let stored = (0..pages).filter(|page| has_data(*page)).count();
            let orders: [fn(u64) -> u64; 3] = [|i| i, |i| 4098 - i, |i| i * 1009 % 4099];
            for order in orders {
                assert_eq!(data(&some, pages, order), stored, "{folder}");
                assert_eq!(data(&full, pages, order), pages as usize, "{folder}");
            }
        }
    }

    #[test]
    fn memory_is_limited() {
        let pages = 3 * MAX_KNOWN as u64;
        let file = file("/dev/shm", pages, |page| page % 2 == 1);
        let holes = Holes::new(&file, pages * page_size(), sys::file_system(&file));
        for index in 0..pages {
            let page = index * 1009 % pages;
            let extent = holes.extent(&file, pages * page_size(), page * page_size()).unwrap();
            assert_eq!(
                (extent.length, extent.kind == ExtentKind::Data),
                (page_size(), page % 2 == 1)
            );
            assert!(holes.0.lock().unwrap().others.len() <= MAX_KNOWN);
        }
    }

    #[test]
    fn a_walk_keeps_nothing() {
        let file = file("/dev/shm", 1000, |page| page % 2 == 1);
        let holes = Holes::new(&file, 1000 * page_size(), sys::file_system(&file));
        for page in 0..1000 {
            holes.extent(&file, 1000 * page_size(), page * page_size()).unwrap();
        }
        assert!(holes.0.lock().unwrap().others.is_empty());
    }

    #[test]
    fn a_full_file_in_memory_has_all_pages() {
        let full = file("/dev/shm", 9, |_| true);
        let size = 9 * page_size();
        assert!(is_full(&full, size));
        full.set_len(size - 1).unwrap();
        assert!(is_full(&full, size - 1));
        // The last page is a hole.
        full.set_len(size + 1).unwrap();
        assert!(!is_full(&full, size + 1));
        assert!(!is_full(&file("/dev/shm", 9, |page| page != 4), size));
        // On other file systems, blocks are not pages.
        let on_disk = file(env!("CARGO_MANIFEST_DIR"), 9, |_| true);
        let file_system = sys::file_system(&on_disk);
        let holes = Holes::new(&on_disk, size, file_system);
        assert_eq!(holes.0.lock().unwrap().is_full, file_system.is_memory);
    }

    #[test]
    #[cfg_attr(blkhash_portable, should_panic)] // cache
    fn reserved_pages_are_holes() {
        let pages = 8 * MAX_STEP / page_size();
        let size = pages * page_size();
        // Reserved are all pages, or as many past the end as there are holes.
        for (offset, length) in [(0, size), (size, size)] {
            let file = file("/dev/shm", pages, |page| page % 300 < 3 && page < pages / 2);
            let flags = FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&file, flags, offset, length).unwrap();
            let holes = Holes::new(&file, size, sys::file_system(&file));
            assert!(holes.0.lock().unwrap().is_full);
            let middle = holes.extent(&file, size, size / 2 + 2 * MAX_STEP).unwrap();
            assert_eq!((middle.end(), middle.kind), (size, ExtentKind::Zero));
            for order in [|i, _| i, |i, pages| pages - 1 - i] as [fn(u64, u64) -> u64; 2] {
                let found = data(&file, pages, |index| order(index, pages)) as u64;
                assert!((1..=pages / 2 + MAX_STEP / page_size()).contains(&found), "{found}");
            }
        }
    }
}
