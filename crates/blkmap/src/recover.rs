//! Finds the last commit of a file whose writing was interrupted, and continues there.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::sync::Arc;

use crate::areas::{info, read_header, read_page};
use crate::commit::Commit;
use crate::directory::Directory;
use crate::last_commit::last_commit;
use crate::log::Log;
use crate::page::{PageHasher, sha256};
use crate::root::Root;
use crate::writer::{Counts, Tables};
use crate::{Error, Header, Key, MAGIC, Map, PAGE, PageRun, ReadAt, Result, Writer};

/// A map whose writing was interrupted, or that is finished.
#[derive(Debug)]
pub struct Recovered {
    file: File,
    header: Header,
    /// The last commit and its offset.
    last: Option<(u64, Commit)>,
}

impl Recovered {
    /// Finds the last commit of `file`, which may be followed by up to 4 GiB of anything: the last one is searched for in
    /// the last 4 GiB.
    ///
    /// # Errors
    ///
    /// Fails if the file does not begin like a map, or cannot be read.
    pub fn find(file: File) -> Result<Self> {
        let header = read_header(&file)?;
        let last = last_commit(&file, &header)?;
        Ok(Self { file, header, last })
    }

    /// Finds the last commit like [`find`](Self::find). Returns `None` for what a crash leaves of a map before its first commit: at
    /// most its header, and zeros. Nothing in it is lost if a map is written over it.
    ///
    /// # Errors
    ///
    /// Fails like `find`.
    pub fn find_begun(file: &File) -> Result<Option<Self>> {
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(None);
        }
        match Self::find(file.try_clone()?) {
            Err(Error::Magic | Error::Damaged { .. }) if is_torn(file, length) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns the parameters.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the last commit.
    pub fn commit(&self) -> Option<&Commit> {
        self.last.as_ref().map(|(_, commit)| commit)
    }

    /// Fails unless every commit up to the last one is sealed with `key`.
    ///
    /// # Errors
    ///
    /// Fails if one is not, or a commit cannot be read or is damaged.
    pub fn check_seals(&self, key: &Key) -> Result<()> {
        let Some((at, _)) = self.last else { return Ok(()) };
        for commit in Log::before(&self.file, self.header, at) {
            commit?.1.check_seal(&self.header, key)?;
        }
        Ok(())
    }

    /// Returns the info of the last commit.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read or is damaged.
    pub fn info(&self) -> Result<Option<String>> {
        self.last.as_ref().map(|(_, commit)| info(&self.file, commit)).transpose()
    }

    /// Returns the maps that have all that is known up to the last commit, the pages of each after the pages of the one
    /// before: the checkpoints, or, if the map is finished, itself.
    ///
    /// # Errors
    ///
    /// Fails if a commit cannot be read or is damaged. Each map is an error of its own if its tables are.
    pub fn maps(&self) -> Result<impl Iterator<Item = Result<Map>>> {
        let file: Arc<dyn ReadAt> = Arc::new(self.file.try_clone()?);
        let mut ends = Vec::new();
        if let Some((last, _)) = &self.last {
            for commit in Log::before(&self.file, self.header, *last) {
                let (at, commit) = commit?;
                if commit.is_final && at != *last {
                    return Err(Error::Unsupported("is an update that is not finished".into()));
                }
                ends.push(at);
                if commit.is_final {
                    break;
                }
            }
        }
        let header = self.header;
        Ok(ends.into_iter().rev().map(move |at| {
            let commit = Commit::parse(&read_page(&*file, at)?, at, &header)?;
            Map::of_commit(Arc::clone(&file), header, commit, at)
        }))
    }

    /// Cuts off what follows the last commit. Returns the file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn cut(self) -> Result<File> {
        self.file.set_len(self.end())?;
        Ok(self.file)
    }

    /// Cuts off what follows the last commit, and continues there with the map of an image of `image_size`
    /// bytes. Every page so far is read and compared with its hash.
    ///
    /// # Errors
    ///
    /// Fails if the map is finished, belongs to an image of another size, is damaged, or cannot be written.
    pub fn continued(self, image_size: u64) -> Result<Writer<File>> {
        let end = self.end();
        let header = self.header;
        let mut counts = Counts { position: end, ..Counts::default() };
        let mut continued = None;
        if let Some((at, commit)) = &self.last {
            if commit.image_size != image_size {
                let reason = format!("is the map of an image of {} bytes", commit.image_size);
                return Err(Error::Mismatch(reason));
            }
            let (tables, root) = self.walk(*at, &mut counts)?;
            continued = Some((tables, (*at, commit.sequence), root));
        }
        let mut file = self.file;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        let writer = Writer::with(file, header, image_size, counts);
        Ok(match continued {
            Some((tables, last, root)) => writer.behind(tables, last, root),
            None => writer,
        })
    }

    /// Offset after the last commit.
    fn end(&self) -> u64 {
        self.last.as_ref().map_or(0, |(at, _)| *at) + PAGE as u64
    }

    /// Returns the tables of all checkpoints, and the tree over their pages. Counts these.
    fn walk(&self, last: u64, counts: &mut Counts) -> Result<(Vec<Tables>, Option<Root>)> {
        let image_size = self.commit().map_or(0, |commit| commit.image_size);
        let mut commits = Vec::new();
        for commit in Log::before(&self.file, self.header, last) {
            let (at, commit) = commit?;
            if commit.is_final {
                return Err(Error::Unsupported("is finished: there is nothing to continue".into()));
            }
            if image_size != commit.image_size {
                return Err(Error::damaged(at, "checkpoints of images of different sizes"));
            }
            commits.push(at);
        }
        commits.reverse();
        let zero_block = self.header.leaf().zero_block();
        let mut root = Some(Root::new(&self.header, &zero_block));
        let mut tables = Vec::new();
        for at in commits {
            let record = read_page(&self.file, at)?;
            let commit = Commit::parse(&record, at, &self.header)?;
            let hashes = self.table(&commit, at)?;
            for run in Directory::new(&self.file, &self.header, &commit) {
                let run = run?;
                if run.first < counts.page {
                    return Err(Error::damaged(at, "a checkpoint has pages of the one before"));
                }
                if run.first > counts.page {
                    root = None;
                }
                self.check_pages(run, &hashes)?;
                let per_page = self.header.blocks_per_page();
                let blocks = (run.end() * per_page).min(commit.blocks) - run.first * per_page;
                counts.known += blocks;
                counts.zero_blocks += if run.is_zero() { blocks } else { 0 };
                counts.stored_pages += if run.is_zero() { 0 } else { run.count };
                counts.page = run.end();
                match &mut root {
                    Some(root) if run.is_zero() => root.zero_blocks(blocks),
                    Some(root) => {
                        let length = run.count as usize * 32;
                        root.hashes(&hashes[run.first_hash as usize * 32..][..length]);
                    }
                    None => {}
                }
            }
            tables.push(Tables { directory: commit.directory, page_hashes: commit.page_hashes });
        }
        Ok((tables, root))
    }

    /// Compares the pages of a run with their hashes.
    fn check_pages(&self, run: PageRun, hashes: &[u8]) -> Result<()> {
        let count = if run.is_zero() { 0 } else { run.count };
        let (hasher, mut buffer) = (PageHasher::new(), Vec::new());
        let mut done = 0;
        while done < count {
            let part = (count - done).min(PART as u64 / PAGE as u64);
            buffer.resize(part as usize * PAGE, 0);
            let offset = run.offset + done * PAGE as u64;
            ReadAt::read_exact_at(&self.file, &mut buffer, offset)?;
            let expected = &hashes[(run.first_hash + done) as usize * 32..][..part as usize * 32];
            let found = hasher.hash_all(&buffer);
            let mut pairs = found.chunks_exact(32).zip(expected.chunks_exact(32));
            if let Some(bad) = pairs.position(|(one, other)| one != other) {
                let at = offset + (bad * PAGE) as u64;
                return Err(Error::damaged(at, "a page has another hash"));
            }
            done += part;
        }
        Ok(())
    }

    /// Returns the page hashes of a checkpoint, after checking both tables.
    fn table(&self, commit: &Commit, at: u64) -> Result<Vec<u8>> {
        let areas = [(commit.directory, PageRun::SIZE), (commit.page_hashes, 32)];
        let mut bytes = Vec::new();
        for ((area, size), hash) in areas.into_iter().zip(&commit.hashes[1..]) {
            // A checkpoint is written after 2 MiB of hashes, but another program may write fewer.
            if area.count > MAX_ENTRIES {
                return Err(Error::damaged(at, "a checkpoint has too many pages"));
            }
            bytes.resize(area.count as usize * size, 0);
            ReadAt::read_exact_at(&self.file, &mut bytes, area.offset)?;
            if sha256(&bytes) != *hash {
                return Err(Error::damaged(area.offset, "a table has another hash"));
            }
        }
        Ok(bytes)
    }
}

/// Returns whether a file of this length is at most the header of a map, and zeros.
fn is_torn(file: &File, length: u64) -> bool {
    let mut bytes = vec![0; length.min(MAX_TORN + 1) as usize];
    let is_read = ReadAt::read_exact_at(file, &mut bytes, 0).is_ok();
    let (header, rest) = bytes.split_at(bytes.len().min(PAGE));
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let is_header = header.iter().zip(&MAGIC).all(|(one, other)| one == other);
    is_read && length <= MAX_TORN && is_zero(rest) && (is_header || is_zero(header))
}

/// More zeros may be something else than the beginning of a map.
const MAX_TORN: u64 = 1 << 20;

/// Bytes that are read at once.
const PART: usize = 1 << 20;

/// Maximum number of entries in a table of a checkpoint, when a map is continued. They take 32 MiB.
/// Limit in entries.
const MAX_ENTRIES: u64 = 1 << 20;
