//! Reads and checks the directory of a commit.

use crate::commit::{Area, Commit};
use crate::page_run::PageRun;
use crate::table::{self, Table, TableHasher};
use crate::{Error, Header, PAGE, ReadAt, Result};

/// Checks the entries of a directory one by one.
#[derive(Clone, Debug)]
pub(crate) struct Checker {
    /// Offset of the directory in the file.
    pub(crate) at: u64,
    /// Number of pages of the image.
    pub(crate) pages: u64,
    /// Number of page hashes.
    pub(crate) hashes: u64,
    /// Whether the last block of the image is short.
    pub(crate) has_short_block: bool,
    /// Number of the first page that the next entry may have.
    pub(crate) page: u64,
    /// Index of the next page hash.
    pub(crate) hash: u64,
    /// The entry before.
    pub(crate) last: Option<PageRun>,
}

impl Checker {
    /// Parses the next entry, whose offset in the file is `at`.
    pub(crate) fn next(&mut self, bytes: &[u8], at: u64) -> Result<PageRun> {
        let run = PageRun::parse(bytes);
        let fail = |reason: &str| Err(Error::damaged(at, reason));
        let end = run.first.checked_add(run.count).filter(|end| *end <= self.pages);
        let Some(end) = end.filter(|_| run.count > 0 && run.first >= self.page) else {
            return fail("pages that are not in order, or not in the image");
        };
        if run.is_zero() {
            if run.first_hash != 0 {
                return fail("zero pages with hashes");
            }
            if self.has_short_block && end == self.pages {
                return fail("zero pages with the short block at the end of the image");
            }
        } else {
            let length = run.count.checked_mul(PAGE as u64);
            let end = length.and_then(|length| run.offset.checked_add(length));
            let is_inside = end.is_some_and(|end| end <= self.at);
            if !run.offset.is_multiple_of(PAGE as u64) || run.offset < PAGE as u64 || !is_inside {
                return fail("pages that do not lie in the file before the directory");
            }
            if run.first_hash != self.hash || run.count > self.hashes - self.hash {
                return fail("pages without hashes");
            }
            self.hash += run.count;
        }
        if self.last.is_some_and(|last| last.goes_on_in(&run)) {
            return fail("two entries that should be one");
        }
        self.page = end;
        self.last = Some(run);
        Ok(run)
    }

    /// Checks that no page hash is left.
    pub(crate) fn end(&self) -> Result<()> {
        if self.hash != self.hashes {
            return Err(Error::damaged(self.at, "hashes without pages"));
        }
        Ok(())
    }
}

/// The entries of a directory, read part by part.
pub(crate) struct Directory<'a> {
    bytes: &'a dyn ReadAt,
    /// What it has to be, if it was checked before.
    table: Option<&'a Table>,
    area: Area,
    checker: Checker,
    /// Number of the next entry.
    next: u64,
    part: Vec<u8>,
}

impl<'a> Directory<'a> {
    /// Returns the directory of a commit, whose area is in the file.
    pub(crate) fn new(bytes: &'a dyn ReadAt, header: &Header, commit: &Commit) -> Self {
        let checker = Checker {
            at: commit.directory.offset,
            pages: commit.blocks.div_ceil(header.blocks_per_page()),
            hashes: commit.page_hashes.count,
            has_short_block: !commit.image_size.is_multiple_of(header.block_size.into()),
            page: 0,
            hash: 0,
            last: None,
        };
        Self { bytes, table: None, area: commit.directory, checker, next: 0, part: Vec::new() }
    }

    /// Returns the same directory, which has to be as it was when it was checked.
    pub(crate) fn checked(self, index: &'a Index) -> Self {
        Self { table: Some(&index.table), ..self }
    }

    /// Fails if page hashes are left after the last entry.
    pub(crate) fn end(&self) -> Result<()> {
        self.checker.end()
    }

    /// Returns the next entry. Adds the bytes that are read to `whole`.
    pub(crate) fn next_run(&mut self, whole: Option<&mut TableHasher>) -> Result<Option<PageRun>> {
        if self.next == self.area.count {
            return Ok(None);
        }
        let per_part = (PART / PageRun::SIZE) as u64;
        let index = (self.next % per_part) as usize;
        if index == 0 {
            let count = per_part.min(self.area.count - self.next) as usize;
            self.part.resize(count * PageRun::SIZE, 0);
            let at = self.area.offset + self.next * PageRun::SIZE as u64;
            match self.table {
                Some(table) => table.read(self.bytes, &mut self.part, at)?,
                None => self.bytes.read_exact_at(&mut self.part, at)?,
            }
            if let Some(whole) = whole {
                whole.update(&self.part);
            }
        }
        let at = self.area.offset + self.next * PageRun::SIZE as u64;
        let entry = &self.part[index * PageRun::SIZE..][..PageRun::SIZE];
        self.next += 1;
        self.checker.next(entry, at).map(Some)
    }
}

/// A directory that was checked.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) table: Table,
    /// Numbers of the first pages of the first entries of its parts.
    pub(crate) firsts: Vec<u64>,
}

impl Index {
    /// Number of entries of a part.
    pub(crate) const PER_PART: u64 = table::PART / PageRun::SIZE as u64;
}

/// Returns the entry of a page, or the first one after the page, or `None` at the end of the directory. Reads few
/// entries of a long directory.
pub(crate) fn find_run(
    bytes: &dyn ReadAt,
    area: Area,
    index: &Index,
    page: u64,
) -> Result<Option<PageRun>> {
    let Index { table, firsts } = index;
    let part = firsts.partition_point(|first| *first <= page).saturating_sub(1) as u64;
    // The entry is in this part, or begins the next one.
    for part in part..(part + 2).min(firsts.len() as u64) {
        let first = part * Index::PER_PART;
        let count = Index::PER_PART.min(area.count - first) as usize;
        let mut entries = vec![0; count * PageRun::SIZE];
        let at = area.offset + first * PageRun::SIZE as u64;
        table.read(bytes, &mut entries, at)?;
        let mut runs = entries.chunks_exact(PageRun::SIZE).map(PageRun::parse);
        if let Some(run) = runs.find(|run| run.end() > page) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

impl Iterator for Directory<'_> {
    type Item = Result<PageRun>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_run(None).transpose()
    }
}

/// Bytes that are read at once, a multiple of the size of an entry.
const PART: usize = 128 << 10;
