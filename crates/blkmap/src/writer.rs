//! Writes a map from the digests of blocks, in order.
//! docs/inside/decisions/append-only-maps.md says why a map is not renamed when it is complete.

use std::mem;
use std::time::{Duration, Instant};

use blkhash::{Algorithm, BlockDigests, Digest, Digester, Run, Sink, SinkError, State};

use crate::bytes::put;
use crate::commit::{Area, Commit};
use crate::page::{Hash, Page, PageHasher, sha256, to_hash};
use crate::page_run::PageRun;
use crate::root::Root;
use crate::{Error, Header, Key, MAX_INFO, Map, Output, PAGE, Result};

/// A sink for the digests of blocks that writes a map. It only appends, so a map can go through a pipe.
///
/// With checkpoints, memory does not grow with the map. Otherwise it is 32 bytes for each page.
pub struct Writer<O> {
    output: O,
    header: Header,
    image_size: u64,
    zero_block: Digest,
    hasher: PageHasher,
    page: Page,
    /// The content of the next commit.
    next: Pending,
    /// The checkpoints so far.
    checkpoints: Vec<Tables>,
    /// Offset and number of the last commit.
    last: Option<(u64, u64)>,
    counts: Counts,
    /// The tree over the pages, unless some are skipped.
    root: Option<Root>,
    interval: Option<Interval>,
    padded_last: Option<Digest>,
    key: Option<Key>,
}

/// Where the tables of a checkpoint are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) directory: Area,
    pub(crate) page_hashes: Area,
}

/// Pages that no commit holds yet.
#[derive(Default)]
struct Pending {
    runs: Vec<PageRun>,
    hashes: Vec<Hash>,
    held: Held,
}

/// The content of the pages of a directory.
#[derive(Clone, Copy, Default)]
struct Held {
    /// Number of blocks.
    known: u64,
    /// Number of blocks in zero pages.
    zero_blocks: u64,
    /// Whether the last block of the image is among them.
    has_last: bool,
}

/// The state of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Offset of the next byte.
    pub(crate) position: u64,
    /// Number of the next page of the image.
    pub(crate) page: u64,
    pub(crate) known: u64,
    pub(crate) zero_blocks: u64,
    pub(crate) stored_pages: u64,
}

/// When to write a checkpoint.
struct Interval {
    info: String,
    time: Duration,
    last: Instant,
}

impl<O: Output> Writer<O> {
    /// Begins a map of an image of `image_size` bytes.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be written.
    pub fn new(mut output: O, header: Header, image_size: u64) -> Result<Self> {
        output.append(&header.to_bytes())?;
        let counts = Counts { position: PAGE as u64, ..Counts::default() };
        Ok(Self::with(output, header, image_size, counts))
    }

    pub(crate) fn with(output: O, header: Header, image_size: u64, counts: Counts) -> Self {
        let zero_block = header.leaf().zero_block();
        Self {
            output,
            header,
            image_size,
            zero_block,
            hasher: PageHasher::new(),
            page: Page::new(&header),
            next: Pending::default(),
            checkpoints: Vec::new(),
            last: None,
            counts,
            root: Some(Root::new(&header, &zero_block)),
            interval: None,
            padded_last: None,
            key: None,
        }
    }

    /// Begins the next state of `base`, which the output ends with.
    pub(crate) fn after(base: &Map, output: O, image_size: u64) -> Self {
        let position = base.end() + PAGE as u64;
        let counts = Counts { position, ..Counts::default() };
        let mut writer = Self::with(output, *base.header(), image_size, counts);
        writer.last = Some((base.end(), base.commit().sequence));
        writer
    }

    /// Continues after these checkpoints. `last` is the offset and the number of the last one's commit, and
    /// `root` has the pages so far, unless some are skipped.
    pub(crate) fn behind(
        mut self,
        checkpoints: Vec<Tables>,
        last: (u64, u64),
        root: Option<Root>,
    ) -> Self {
        self.checkpoints = checkpoints;
        self.last = Some(last);
        self.root = root;
        self
    }

    /// Continues with another output, which has what was written so far.
    #[must_use]
    pub fn with_output<P: Output>(self, wrap: impl FnOnce(O) -> P) -> Writer<P> {
        let Self { output, header, image_size, zero_block, hasher, page, next, .. } = self;
        let Self { checkpoints, last, counts, root, interval, padded_last, key, .. } = self;
        Writer {
            output: wrap(output),
            header,
            image_size,
            zero_block,
            hasher,
            page,
            next,
            checkpoints,
            last,
            counts,
            root,
            interval,
            padded_last,
            key,
        }
    }

    /// Writes a checkpoint with this info whenever `time` has passed since the last one, or 256 MiB of pages
    /// were written, if the output can be read again.
    #[must_use]
    pub fn checkpoint_every(mut self, time: Duration, info: String) -> Self {
        self.interval = Some(Interval { info, time, last: Instant::now() });
        self
    }

    /// Seals every commit with `key`.
    #[must_use]
    pub fn sealed_with(mut self, key: Option<Key>) -> Self {
        self.key = key;
        self
    }

    /// Sets the digest of the last block padded with zeros to a whole one, if it is short and in the map.
    pub fn set_padded_last(&mut self, digest: Option<Digest>) {
        self.padded_last = digest;
    }

    /// Returns the parameters.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the number of the page that the next block belongs to.
    pub fn page(&self) -> u64 {
        self.counts.page
    }

    /// Leaves out the pages before `page`. The map does not know their blocks.
    ///
    /// # Errors
    ///
    /// Fails if pages up to there were written, or a page is not full.
    pub fn skip_to(&mut self, page: u64) -> Result<()> {
        if self.page.filled() > 0 || page < self.counts.page {
            return Err(Error::Content("pages are left out in the middle of blocks".into()));
        }
        if page > self.counts.page {
            self.root = None;
            self.counts.page = page;
        }
        Ok(())
    }

    /// Appends stored pages with their hashes, one after the other.
    pub(crate) fn push_pages(&mut self, pages: &[u8], hashes: &[u8]) -> Result<()> {
        let offset = self.counts.position;
        self.output.append(pages)?;
        self.counts.position += pages.len() as u64;
        self.push_stored(offset, hashes);
        Ok(())
    }

    /// Appends pages with these hashes, which are in the file from `offset` on.
    pub(crate) fn push_stored(&mut self, offset: u64, hashes: &[u8]) {
        let first = self.counts.page;
        let count = (hashes.len() / 32) as u64;
        if let Some(root) = &mut self.root {
            root.hashes(hashes);
        }
        let first_hash = self.next.hashes.len() as u64;
        self.next.push(PageRun { first, count, offset, first_hash });
        self.next
            .hashes
            .extend(hashes.chunks_exact(32).map(|hash| *hash.first_chunk().expect("a hash")));
        self.counts.stored_pages += count;
        self.count(self.blocks_in(first, count), 0, count);
    }

    /// Appends pages of zero blocks.
    pub(crate) fn push_zero_pages(&mut self, count: u64) {
        let first = self.counts.page;
        let blocks = self.blocks_in(first, count);
        if let Some(root) = &mut self.root {
            root.zero_blocks(blocks);
        }
        self.next.push(PageRun { first, count, offset: 0, first_hash: 0 });
        self.count(blocks, blocks, count);
    }

    fn count(&mut self, known: u64, zero_blocks: u64, pages: u64) {
        self.counts.known += known;
        self.counts.zero_blocks += zero_blocks;
        self.counts.page += pages;
        let has_last = self.counts.page * self.header.blocks_per_page() >= self.blocks();
        let held = &mut self.next.held;
        held.known += known;
        held.zero_blocks += zero_blocks;
        held.has_last = has_last;
    }

    pub(crate) fn image_size(&self) -> u64 {
        self.image_size
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.image_size.div_ceil(self.header.block_size.into())
    }

    /// Returns the number of blocks in `count` pages of the image from the page `first` on.
    fn blocks_in(&self, first: u64, count: u64) -> u64 {
        let per_page = self.header.blocks_per_page();
        ((first + count) * per_page).min(self.blocks()) - first * per_page
    }

    /// Returns the number of the block that comes next.
    pub(crate) fn next_block(&self) -> u64 {
        self.counts.page * self.header.blocks_per_page() + self.page.filled() as u64
    }

    /// Fails if `count` more blocks are more than the image has.
    fn check_room(&self, count: u64) -> Result<()> {
        if count > self.blocks().saturating_sub(self.next_block()) {
            return Err(Error::Content("there are more blocks than the image has".into()));
        }
        Ok(())
    }

    pub(crate) fn digests(&mut self, mut digests: &[u8]) -> Result<()> {
        let size = self.header.algorithm.digest_size();
        self.check_room((digests.len() / size) as u64)?;
        while !digests.is_empty() {
            let count = self.page.push_many(digests);
            digests = &digests[count * size..];
            self.end_page_if_full()?;
        }
        Ok(())
    }

    pub(crate) fn zeros(&mut self, mut count: u64) -> Result<()> {
        self.check_room(count)?;
        let per_page = self.header.blocks_per_page();
        while count > 0 {
            if self.page.filled() == 0 && count >= per_page {
                self.push_zero_pages(count / per_page);
                count %= per_page;
                continue;
            }
            let added = count.min(self.page.room() as u64);
            self.page.push_zeros(&self.zero_block, added as usize);
            count -= added;
            self.end_page_if_full()?;
        }
        Ok(())
    }

    fn end_page_if_full(&mut self) -> Result<()> {
        let is_end = self.next_block() == self.blocks();
        if self.page.room() == 0 || (self.page.filled() > 0 && is_end) {
            self.end_page()?;
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<()> {
        let is_short = self.next_block() == self.blocks()
            && !self.image_size.is_multiple_of(u64::from(self.header.block_size));
        // Data may have the digest of zeros if the digest is not cryptographic.
        if self.page.is_zero() || (!is_short && self.page.has_only(&self.zero_block)) {
            self.push_zero_pages(1);
        } else {
            let hash = self.hasher.hash(self.page.bytes());
            let bytes = *self.page.bytes();
            self.push_pages(&bytes, &hash)?;
        }
        self.page.clear();
        Ok(())
    }

    /// Writes a checkpoint, from which the map can be continued. Blocks of a page that is not full are not in
    /// it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written, or the output cannot be read again.
    pub fn checkpoint(&mut self, info: &str) -> Result<()> {
        if self.output.written().is_none() {
            return Err(Error::Content("checkpoints need an output that can be read again".into()));
        }
        let Pending { runs, hashes, held } = mem::take(&mut self.next);
        let mut directory = self.table();
        for run in runs {
            directory.append(&mut self.output, &run.to_bytes())?;
        }
        let directory = self.end_table(directory, PageRun::SIZE)?;
        let mut page_hashes = self.table();
        page_hashes.append(&mut self.output, hashes.as_flattened())?;
        let page_hashes = self.end_table(page_hashes, HASH_SIZE)?;
        let commit = self.record([directory, page_hashes], info)?;
        let Held { known, zero_blocks, has_last } = held;
        let stored_pages = page_hashes.0.count;
        let commit = Commit { is_final: false, known, zero_blocks, stored_pages, ..commit };
        self.append_commit(if has_last {
            commit
        } else {
            Commit { padded_last: [0; 64], ..commit }
        })?;
        self.checkpoints.push(Tables { directory: directory.0, page_hashes: page_hashes.0 });
        Ok(())
    }

    /// Ends the map. `info` is a JSON object.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or the digests end in the middle of a page.
    pub fn finish(self, info: &str) -> Result<(O, Commit)> {
        self.finish_if(info, |_| Ok(()))
    }

    /// Ends the map like [`finish`](Self::finish), unless `check` refuses its commit. The map is not finished then.
    ///
    /// # Errors
    ///
    /// Fails like `finish` and `check`.
    pub fn finish_if(
        mut self,
        info: &str,
        check: impl FnOnce(&Commit) -> Result<()>,
    ) -> Result<(O, Commit)> {
        if self.page.filled() > 0 {
            return Err(Error::Content("the digests end in the middle of a page".into()));
        }
        let tables = [self.whole_directory()?, self.whole_page_hashes()?];
        let mut commit = self.record(tables, info)?;
        if commit.known == commit.blocks {
            let root = self.root.take();
            let incomplete = || Error::Content("the tree over the pages is not complete".into());
            commit.root = Some(root.ok_or_else(incomplete)?.finish());
        }
        check(&commit)?;
        let commit = self.append_commit(commit)?;
        Ok((self.output, commit))
    }

    /// Writes the directories of all checkpoints and of the pages after them as one.
    fn whole_directory(&mut self) -> Result<(Area, Hash)> {
        let mut directory = self.table();
        // A run may continue after a checkpoint.
        let mut last: Option<PageRun> = None;
        let mut hashes_before = 0;
        let runs = mem::take(&mut self.next.runs);
        for index in 0..self.checkpoints.len() {
            let Tables { directory: area, page_hashes } = self.checkpoints[index];
            let (mut at, end) = (area.offset, area.offset + area.count * PageRun::SIZE as u64);
            let mut part = vec![0; PART];
            while at < end {
                let part = &mut part[..(end - at).min(PART as u64) as usize];
                self.read_back(part, at)?;
                at += part.len() as u64;
                for entry in part.chunks_exact(PageRun::SIZE) {
                    let run = PageRun::parse(entry).behind(hashes_before);
                    if let Some(done) = join(&mut last, run) {
                        directory.append(&mut self.output, &done.to_bytes())?;
                    }
                }
            }
            hashes_before += page_hashes.count;
        }
        for run in runs {
            if let Some(done) = join(&mut last, run.behind(hashes_before)) {
                directory.append(&mut self.output, &done.to_bytes())?;
            }
        }
        if let Some(run) = last {
            directory.append(&mut self.output, &run.to_bytes())?;
        }
        self.end_table(directory, PageRun::SIZE)
    }

    /// Writes the page hashes of all checkpoints and of the pages after them.
    fn whole_page_hashes(&mut self) -> Result<(Area, Hash)> {
        let mut table = self.table();
        let mut part = vec![0; PART];
        for index in 0..self.checkpoints.len() {
            let area = self.checkpoints[index].page_hashes;
            let (mut at, end) = (area.offset, area.offset + area.count * HASH_SIZE as u64);
            while at < end {
                let part = &mut part[..(end - at).min(PART as u64) as usize];
                self.read_back(part, at)?;
                at += part.len() as u64;
                table.append(&mut self.output, part)?;
            }
        }
        let hashes = mem::take(&mut self.next.hashes);
        table.append(&mut self.output, hashes.as_flattened())?;
        self.end_table(table, HASH_SIZE)
    }

    fn read_back(&self, buf: &mut [u8], at: u64) -> Result<()> {
        let written = self.output.written().expect("checkpoints are read again");
        Ok(written.read_exact_at(buf, at)?)
    }

    fn table(&self) -> Table {
        let state = Digester::new(Algorithm::Sha256).start();
        Table { offset: self.counts.position, length: 0, state }
    }

    /// Pads a table whose entries have `size` bytes. Returns its place, and its hash.
    fn end_table(&mut self, table: Table, size: usize) -> Result<(Area, Hash)> {
        let Table { offset, length, state } = table;
        let padding = length.next_multiple_of(PAGE as u64) - length;
        self.output.append(&[0; PAGE][..padding as usize])?;
        self.counts.position += length + padding;
        Ok((Area { offset, count: length / size as u64 }, to_hash(&state.finalize())))
    }

    /// Writes the info, and returns a final commit without a root.
    fn record(&mut self, tables: [(Area, Hash); 2], info: &str) -> Result<Commit> {
        if info.len() as u64 > MAX_INFO {
            return Err(Error::Content(format!("an info of {} bytes is too long", info.len())));
        }
        let mut table = self.table();
        table.append(&mut self.output, info.as_bytes())?;
        let info = self.end_table(table, 1)?;
        let [directory, page_hashes] = tables;
        let per_page = self.header.blocks_per_page();
        let (mut zero_block, mut padded_last) = ([0; 64], [0; 64]);
        put(&mut zero_block, 0, self.zero_block.as_bytes());
        if let Some(digest) =
            self.padded_last.filter(|_| self.counts.page * per_page >= self.blocks())
        {
            put(&mut padded_last, 0, digest.as_bytes());
        }
        Ok(Commit {
            is_final: true,
            file_id: self.header.file_id,
            sequence: self.last.map_or(1, |(_, sequence)| sequence + 1),
            previous: self.last.map_or(0, |(at, _)| at),
            image_size: self.image_size,
            blocks: self.blocks(),
            known: self.counts.known,
            zero_blocks: self.counts.zero_blocks,
            stored_pages: self.counts.stored_pages,
            directory: directory.0,
            page_hashes: page_hashes.0,
            info: info.0,
            hashes: [sha256(&self.header.to_bytes()), directory.1, page_hashes.1, info.1],
            root: None,
            zero_block,
            padded_last,
            seal: None,
        })
    }

    fn append_commit(&mut self, mut commit: Commit) -> Result<Commit> {
        if let Some(key) = &self.key {
            commit = commit.sealed(&self.header, key);
        }
        // The commit says that the rest is there, so the rest has to be there before.
        self.output.sync()?;
        self.last = Some((self.counts.position, commit.sequence));
        self.output.append(&commit.to_bytes(&self.header))?;
        self.counts.position += PAGE as u64;
        self.output.sync()?;
        Ok(commit)
    }
}

impl<O: Output> Sink<BlockDigests> for Writer<O> {
    fn take(&mut self, digests: &BlockDigests) -> std::result::Result<(), SinkError> {
        for run in digests.runs() {
            match run {
                Run::Digests { digests, .. } => self.digests(digests)?,
                Run::Zeros { count } => self.zeros(count)?,
            }
        }
        let is_due = |interval: &Interval| {
            self.next.hashes.len() >= CHECKPOINT_PAGES || interval.last.elapsed() >= interval.time
        };
        // Without a page, nothing could continue after it.
        if !self.next.runs.is_empty() && self.interval.as_ref().is_some_and(is_due) {
            let mut interval = self.interval.take().expect("an interval");
            self.checkpoint(&interval.info)?;
            interval.last = Instant::now();
            self.interval = Some(interval);
        }
        Ok(())
    }
}

impl Pending {
    fn push(&mut self, run: PageRun) {
        match self.runs.pop() {
            Some(last) => {
                let mut last = Some(last);
                let done = join(&mut last, run);
                self.runs.extend(done);
                self.runs.extend(last);
            }
            None => self.runs.push(run),
        }
    }
}

/// Extends `last` by `run` if they are adjacent. Otherwise replaces `last` with it, and returns the old
/// value.
fn join(last: &mut Option<PageRun>, run: PageRun) -> Option<PageRun> {
    if let Some(before) = last.as_mut().filter(|before| before.goes_on_in(&run)) {
        before.count += run.count;
        return None;
    }
    last.replace(run)
}

/// A table that is being written.
struct Table {
    offset: u64,
    length: u64,
    state: State,
}

impl Table {
    fn append(&mut self, output: &mut impl Output, bytes: &[u8]) -> Result<()> {
        output.append(bytes)?;
        self.state.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Length of a page hash in bytes.
const HASH_SIZE: usize = 32;

/// Pages after which a checkpoint is due, 256 MiB of them.
const CHECKPOINT_PAGES: usize = 1 << 16;

/// Bytes of tables that are read again at once, a multiple of the sizes of their entries.
const PART: usize = 128 << 10;
