//! Tables: the offsets of chunks, usually of one section `sectors`, and a copy of them.

use std::sync::{Arc, OnceLock};

use libdeflater::Adler32;

use super::section::Section;
use super::volume::Volume;
use crate::error::Result;
use crate::formats::fields::Entry;
use crate::formats::table_cache;
use crate::storage::HostFile;

/// A table of a segment.
pub(super) struct Table {
    /// Index of the segment.
    pub segment: usize,
    /// Index of its first chunk.
    pub first: u64,
    /// Number of its chunks, not 0.
    pub count: u64,
    /// Offset of its entries.
    entries: u64,
    /// Whether the Adler-32 of the entries follows them.
    is_summed: bool,
    /// Offset of the entries of the copy.
    copy: Option<u64>,
    /// Offset that entries count from.
    base: u64,
    /// Offset of the byte after its last chunk.
    end: u64,
    /// What the entries are, once they were read.
    checked: OnceLock<Result<u64, Flaw>>,
}

/// The reason why a table is damaged, and the offset.
type Flaw = (&'static str, u64);

/// The place of a chunk in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub offset: u64,
    pub length: u64,
    pub is_compressed: bool,
}

impl Table {
    /// Reads the header of a section `table`. Returns `None` if it has no chunks.
    pub fn read(
        section: &Section<'_>,
        volume: &Volume,
        segment: usize,
        first: u64,
    ) -> Result<Option<Self>> {
        let (count, base) = header(section)?;
        let is_summed = !volume.is_short;
        let entries = section.start() + HEADER;
        let length = count * WIDTH + if is_summed { 4 } else { 0 };
        if length > section.end - entries {
            return Err(section.invalid("has more entries than fit"));
        }
        if base > section.file().size() {
            return Err(section.invalid("counts from past the end of the file"));
        }
        // Chunks are in the section before, or after the entries. The first one says where.
        let end = match count {
            0 => return Ok(None),
            _ => {
                let raw = u64::from(section.head(HEADER + WIDTH)?.le32(HEADER as usize));
                let is_before = base + (raw & OFFSET) < section.offset;
                if is_before { section.offset } else { section.end }
            }
        };
        let (copy, checked) = (None, OnceLock::new());
        Ok(Some(Self { segment, first, count, entries, is_summed, copy, base, end, checked }))
    }

    /// Reads the header of a section `table2`, which must equal the header of the table before it.
    pub fn add_copy(&mut self, section: &Section<'_>) -> Result<()> {
        let (count, base) = header(section)?;
        let entries = section.start() + HEADER;
        if (count, base) != (self.count, self.base) || self.copy.is_some() {
            return Err(section.invalid("is not the copy of the table before it"));
        }
        if count * WIDTH + 4 > section.end - entries {
            return Err(section.invalid("has more entries than fit"));
        }
        self.copy = Some(entries);
        Ok(())
    }

    /// Returns the entries for a cache.
    pub fn cached(&self) -> table_cache::Table {
        table_cache::Table { offset: self.entries, length: self.count * WIDTH, entry: Entry::Le32 }
    }

    /// Compares the checksums of the entries and the copy, the first time. Returns the index of the first entry
    /// whose highest bit is a part of the offset.
    pub fn check(&self, file: &Arc<HostFile>) -> Result<u64> {
        // An error of reading is not kept, because the next read may succeed.
        if self.checked.get().is_none() {
            let found = self.scan(file)?;
            let _ = self.checked.set(found);
        }
        match self.checked.get() {
            Some(Ok(wide)) => Ok(*wide),
            Some(Err((reason, offset))) => Err(file.corrupt(*reason).at(*offset)),
            None => Ok(self.count),
        }
    }

    /// Reads all entries and their copy.
    fn scan(&self, file: &HostFile) -> Result<Result<u64, Flaw>> {
        let length = self.count * WIDTH;
        let (mut sum, mut sum_of_copy) = (Adler32::new(), Adler32::new());
        let (mut wide, mut last) = (self.count, None);
        for start in (0..length).step_by(WINDOW) {
            let mut bytes = vec![0; (length - start).min(WINDOW as u64) as usize];
            file.read_exact_at(&mut bytes, self.entries + start)?;
            sum.update(&bytes);
            if let Some(copy) = self.copy {
                let mut copied = vec![0; bytes.len()];
                file.read_exact_at(&mut copied, copy + start)?;
                sum_of_copy.update(&copied);
                if copied != bytes {
                    return Ok(Err(("its table and the copy of it (table2) differ", copy + start)));
                }
            }
            for (index, raw) in (start / WIDTH..).zip(Entry::Le32.decode_all::<Vec<_>>(&bytes)) {
                // EnCase 6.7 writes more than 2 GiB for one table, whose last entries have no flag.
                if wide == self.count && last.is_some_and(|last| raw & OFFSET <= last) {
                    wide = index;
                }
                let offset = if index < wide { raw & OFFSET } else { raw };
                if last.is_some_and(|last| offset <= last) {
                    let at = self.entries + index * WIDTH;
                    return Ok(Err(("the offsets of its chunks do not ascend", at)));
                }
                last = Some(offset);
            }
        }
        let stored = |offset: u64| -> Result<u32> {
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, offset)?;
            Ok(u32::from_le_bytes(bytes))
        };
        if self.is_summed && stored(self.entries + length)? != sum.sum() {
            return Ok(Err(("its table does not match its Adler-32", self.entries)));
        }
        if let Some(copy) = self.copy
            && self.is_summed
            && stored(copy + length)? != sum_of_copy.sum()
        {
            return Ok(Err(("the copy of its table (table2) does not match its Adler-32", copy)));
        }
        if last.is_some_and(|last| self.base.saturating_add(last) >= self.end) {
            let at = self.entries + length - WIDTH;
            return Ok(Err(("its last chunk lies past the end of its section", at)));
        }
        Ok(Ok(wide))
    }

    /// Returns the place of a chunk from its entry, the next one if there is one, and the result of [`check`](Self::check).
    /// `index` is the chunk's in the table.
    pub fn place(&self, index: u64, raw: u64, next: Option<u64>, wide: u64) -> Place {
        let offset = |index, raw| self.base + if index < wide { raw & OFFSET } else { raw };
        let start = offset(index, raw);
        let end = next.map_or(self.end, |next| offset(index + 1, next));
        let is_compressed = index < wide && raw & COMPRESSED != 0;
        Place { offset: start, length: end.saturating_sub(start), is_compressed }
    }
}

/// Reads the number of entries and the offset that they count from.
fn header(section: &Section<'_>) -> Result<(u64, u64)> {
    let head = section.summed(HEADER)?;
    Ok((u64::from(head.le32(0)), head.le64(8)))
}

/// Size of the header of a table in bytes.
const HEADER: u64 = 24;

/// Size of an entry in bytes.
const WIDTH: u64 = 4;

/// The flag of an entry that says that its chunk is compressed.
const COMPRESSED: u64 = 1 << 31;

const OFFSET: u64 = COMPRESSED - 1;

/// Number of bytes of a table that are read at once.
const WINDOW: usize = 64 << 10;
