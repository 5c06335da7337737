//! Opens a map.

use std::sync::{Arc, OnceLock};

use blkhash::Digest;

use crate::areas::{info, read_header, read_page};
use crate::bytes::is_zero;
use crate::commit::{Area, Commit};
use crate::directory::{Directory, Index, find_run};
use crate::last_commit::last_commit;
use crate::log::Log;
use crate::page::sha256;
use crate::page_run::PageRun;
use crate::root::Root;
use crate::table::{Table, TableHasher};
use crate::{Error, Header, Key, PAGE, ReadAt, Result};

/// A map.
#[derive(Clone)]
pub struct Map {
    bytes: Arc<dyn ReadAt>,
    header: Header,
    commit: Commit,
    /// Offset of the commit.
    end: u64,
    zero_block: Digest,
    /// Digest of a last block of zeros that is short.
    short_zeros: OnceLock<Digest>,
    /// The directory, which was checked.
    index: Arc<Index>,
    /// The page hashes, once they and the root were checked.
    page_hashes: OnceLock<Arc<Table>>,
}

impl Map {
    /// Opens the last state of a map. Checks the commit and the directory.
    ///
    /// What follows the commit belongs to an update that was interrupted or is being written. [`rest`](Self::rest) is its
    /// length.
    ///
    /// # Errors
    ///
    /// Fails if the file is not a map, is not finished, or is damaged.
    pub fn open(bytes: impl ReadAt + 'static) -> Result<Self> {
        let header = read_header(&bytes)?;
        let (end, commit) = last_state(&bytes, &header)?;
        Self::at(Arc::new(bytes), header, commit, end)
    }

    /// Opens an older state of a map, which ends with the commit that has this number.
    ///
    /// # Errors
    ///
    /// Fails if there is no such commit, and like [`open`](Self::open).
    pub fn open_state(bytes: impl ReadAt + 'static, sequence: u64) -> Result<Self> {
        let header = read_header(&bytes)?;
        let (end, _) = last_state(&bytes, &header)?;
        for commit in Log::before(&bytes, header, end) {
            let (end, commit) = commit?;
            if commit.sequence == sequence {
                return Self::at(Arc::new(bytes), header, commit, end);
            }
        }
        Err(Error::Mismatch(format!("has no commit with the number {sequence}")))
    }

    fn at(bytes: Arc<dyn ReadAt>, header: Header, commit: Commit, end: u64) -> Result<Self> {
        if !commit.is_final {
            return Err(Error::Unfinished);
        }
        let map = Self::of_commit(bytes, header, commit, end)?;
        map.info()?;
        Ok(map)
    }

    /// Returns what the tables of a commit hold, which may be a checkpoint.
    pub(crate) fn of_commit(
        bytes: Arc<dyn ReadAt>,
        header: Header,
        commit: Commit,
        end: u64,
    ) -> Result<Self> {
        if commit.hashes[0] != sha256(&header.to_bytes()) {
            return Err(Error::damaged(0, "the header has another hash than the commit says"));
        }
        let zero_block = header.leaf().zero_block();
        let (digest, rest) = commit.zero_block.split_at(header.algorithm.digest_size());
        if digest != zero_block.as_bytes() || !is_zero(rest) {
            return Err(Error::damaged(end + 304, "the digest of a zero block is wrong"));
        }
        let index = Arc::new(check_directory(&*bytes, &header, &commit)?);
        let (short_zeros, page_hashes) = (OnceLock::new(), OnceLock::new());
        Ok(Self { bytes, header, commit, end, zero_block, short_zeros, index, page_hashes })
    }

    /// Returns the parameters.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns what the map holds.
    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Returns the digest of a whole zero block.
    pub fn zero_block(&self) -> &Digest {
        &self.zero_block
    }

    /// Returns whether an entry stands for a whole block of zeros.
    pub(crate) fn is_zero(&self, entry: &[u8]) -> bool {
        entry[..self.header.algorithm.digest_size()] == *self.zero_block.as_bytes()
    }

    /// Returns whether the entry of this block stands for zeros. The last block may be short.
    pub fn is_zero_block(&self, block: u64, entry: &[u8]) -> bool {
        let length = self.block_length(block);
        if length == self.header.block_size.get() {
            return self.is_zero(entry);
        }
        let zeros = self.short_zeros.get_or_init(|| self.header.leaf().hash(&vec![0; length]));
        entry[..self.header.algorithm.digest_size()] == *zeros.as_bytes()
    }

    /// Returns the length of a block in bytes.
    pub(crate) fn block_length(&self, block: u64) -> usize {
        let block_size = u64::from(self.header.block_size);
        (self.commit.image_size - block * block_size).min(block_size) as usize
    }

    /// Returns the number of bytes after the commit, which belong to no state.
    ///
    /// # Errors
    ///
    /// Fails if the system does not know the length of the file.
    pub fn rest(&self) -> Result<u64> {
        Ok(self.bytes.length()?.saturating_sub(self.end + PAGE as u64))
    }

    /// Returns the number of pages of the image.
    pub fn pages(&self) -> u64 {
        self.commit.blocks.div_ceil(self.header.blocks_per_page())
    }

    /// Returns whether every block is known.
    pub fn is_complete(&self) -> bool {
        self.commit.root.is_some()
    }

    /// Returns the digest of the last block padded with zeros to a whole one, if it is short and known.
    pub fn padded_last(&self) -> Option<Digest> {
        let bytes = &self.commit.padded_last[..self.header.algorithm.digest_size()];
        (!is_zero(bytes)).then(|| Digest::try_from(bytes).expect("at most 64 bytes"))
    }

    /// Returns the info, a JSON object.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, is longer than [`MAX_INFO`](crate::MAX_INFO), or is damaged.
    pub fn info(&self) -> Result<String> {
        info(&*self.bytes, &self.commit)
    }

    /// Fails unless the map is sealed with `key`.
    ///
    /// # Errors
    ///
    /// Fails if it is not sealed, or with another key.
    pub fn check_seal(&self, key: &Key) -> Result<()> {
        self.commit.check_seal(&self.header, key)
    }

    /// Fails unless the map is sealed with `key`, and every older commit that names this key, too.
    ///
    /// # Errors
    ///
    /// Fails if one is not, or a commit cannot be read or is damaged.
    pub fn check_seals(&self, key: &Key) -> Result<()> {
        self.check_seal(key)?;
        for commit in self.log() {
            let (_, commit) = commit?;
            if commit.seal.is_some_and(|seal| seal.key_id == key.id()) {
                commit.check_seal(&self.header, key)?;
            }
        }
        Ok(())
    }

    /// Fails unless the next state of the map can be written with `key`. Checks the hashes of all pages, but not the pages.
    ///
    /// # Errors
    ///
    /// Fails if the map does not know every block, cannot be read, or is damaged, and unless it is sealed with the key, or
    /// not sealed if there is none.
    pub fn check_base(&self, key: Option<&Key>) -> Result<()> {
        match key {
            Some(key) => self.check_seal(key)?,
            None if self.commit.seal.is_some() => return Err(Error::Sealed),
            None => {}
        }
        if !self.is_complete() {
            let Commit { known, blocks, .. } = self.commit;
            return Err(Error::Incomplete { known, blocks });
        }
        self.check_hashes()
    }

    /// Returns the commits up to this state, from the last one back.
    pub fn log(&self) -> Log<'_> {
        Log::before(&*self.bytes, self.header, self.end)
    }

    /// Returns the state before this one in the file, or `None` if this is the first. Checkpoints are no states.
    ///
    /// # Errors
    ///
    /// Fails if a commit or the directory before cannot be read or is damaged.
    pub fn previous_state(&self) -> Result<Option<Self>> {
        for commit in self.log().skip(1) {
            let (end, commit) = commit?;
            if commit.is_final {
                return Self::at(self.bytes.clone(), self.header, commit, end).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the runs of pages that the map knows, in order.
    pub fn page_runs(&self) -> impl Iterator<Item = Result<PageRun>> + '_ {
        self.directory()
    }

    /// Checks the hashes of all pages and the root, but not the pages. Checks them once: what is read afterwards has to be the
    /// same.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read or are damaged.
    pub fn check_hashes(&self) -> Result<()> {
        if self.page_hashes.get().is_some() {
            return Ok(());
        }
        let Area { offset, count } = self.commit.page_hashes;
        let per_page = self.header.blocks_per_page();
        let mut whole = TableHasher::new(offset);
        let mut root = self.commit.root.map(|_| Root::new(&self.header, &self.zero_block));
        let mut part = vec![0; PART];
        for run in self.page_runs() {
            let run = run?;
            if run.is_zero() {
                let end = (run.end() * per_page).min(self.commit.blocks);
                if let Some(root) = &mut root {
                    root.zero_blocks(end - run.first * per_page);
                }
                continue;
            }
            let (mut at, mut left) = (run.first_hash * 32, run.count * 32);
            while left > 0 {
                let part = &mut part[..left.min(PART as u64) as usize];
                self.bytes.read_exact_at(part, offset + at)?;
                whole.update(part);
                if let Some(root) = &mut root {
                    root.hashes(part);
                }
                at += part.len() as u64;
                left -= part.len() as u64;
            }
        }
        debug_assert_eq!(count, self.commit.stored_pages);
        let (whole, table) = whole.finish();
        if whole != self.commit.hashes[2] {
            return Err(Error::damaged(offset, "the page hashes have another hash"));
        }
        if let Some(root) = root
            && Some(root.finish()) != self.commit.root
        {
            return Err(Error::damaged(self.end + 272, "the pages have another root"));
        }
        let _ = self.page_hashes.set(Arc::new(table));
        Ok(())
    }

    /// Fails unless the file ends with the commit, so that another one can be appended.
    pub(crate) fn check_end(&self) -> Result<()> {
        match self.rest()? {
            0 => Ok(()),
            _ => Err(Error::Content("the file does not end with the map".into())),
        }
    }

    pub(crate) fn bytes(&self) -> &Arc<dyn ReadAt> {
        &self.bytes
    }

    /// Returns the entries of the directory, which was checked.
    pub(crate) fn directory(&self) -> Directory<'_> {
        Directory::new(&*self.bytes, &self.header, &self.commit).checked(&self.index)
    }

    /// Returns the entry of a page, or the first one after the page, or `None` at the end of the directory.
    pub(crate) fn find_run(&self, page: u64) -> Result<Option<PageRun>> {
        find_run(&*self.bytes, self.commit.directory, &self.index, page)
    }

    /// Fills `buf` with page hashes from `index` on.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read, or are not those that were checked, if they were.
    pub(crate) fn read_hashes(&self, buf: &mut [u8], index: u64) -> Result<()> {
        let at = self.commit.page_hashes.offset + index * 32;
        match self.page_hashes.get() {
            Some(table) => table.read(&*self.bytes, buf, at),
            None => Ok(self.bytes.read_exact_at(buf, at)?),
        }
    }

    /// Offset of the commit in the file.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}

/// Checks every entry of the directory, its hash, and the numbers in the commit.
fn check_directory(bytes: &dyn ReadAt, header: &Header, commit: &Commit) -> Result<Index> {
    let at = commit.directory.offset;
    let mut whole = TableHasher::new(at);
    let per_page = header.blocks_per_page();
    let (mut known, mut zeros, mut count, mut firsts) = (0, 0, 0, Vec::new());
    let mut directory = Directory::new(bytes, header, commit);
    while let Some(run) = directory.next_run(Some(&mut whole))? {
        let blocks = (run.end() * per_page).min(commit.blocks) - run.first * per_page;
        known += blocks;
        zeros += if run.is_zero() { blocks } else { 0 };
        if count % Index::PER_PART == 0 {
            firsts.push(run.first);
        }
        count += 1;
    }
    directory.end()?;
    let (whole, table) = whole.finish();
    if whole != commit.hashes[1] {
        return Err(Error::damaged(at, "the directory has another hash"));
    }
    if (known, zeros) != (commit.known, commit.zero_blocks) {
        return Err(Error::damaged(at, "the directory has another number of blocks"));
    }
    Ok(Index { table, firsts })
}

/// Finds the commit of the last state, and its offset.
fn last_state(bytes: &dyn ReadAt, header: &Header) -> Result<(u64, Commit)> {
    let length = bytes.length()?;
    if length.is_multiple_of(PAGE as u64) && length >= 2 * PAGE as u64 {
        let end = length - PAGE as u64;
        match Commit::parse(&read_page(bytes, end)?, end, header) {
            Err(Error::Unfinished) => {}
            parsed => return Ok((end, parsed?)),
        }
    }
    let last = last_commit(bytes, header)?;
    last.filter(|(_, commit)| commit.is_final).ok_or(Error::Unfinished)
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { header, commit, .. } = self;
        f.debug_struct("Map")
            .field("header", header)
            .field("commit", commit)
            .finish_non_exhaustive()
    }
}

/// Bytes of tables that are read at once, a multiple of the sizes of their entries.
const PART: usize = 128 << 10;
