//! Verification of the copies, of the log file's restart pages and of the blocks of indexes.

use super::attribute::{Attribute, Body, FileName, attributes, kind};
use super::boot::{BOOT_SIZE, Boot, is_marked, is_ntfs};
use super::content::{Content, NO_BUDGET, charge};
use super::index::{Entries, Index, block_defect, entries_of_block};
use super::mft::number;
use super::record::restore;
use super::walk::{CHUNK, Walk};
use crate::bytes::le32_at;
use crate::error::Result;
use crate::visitor::{Mismatch, ObjectId, Problem, ProblemKind};

impl Walk<'_> {
    /// Verifies the boot sector and its backup.
    pub fn check_boot(&mut self, bad: Option<&'static str>) -> Result<()> {
        let (boot, volume) = (&self.disk.boot, &self.disk.volume);
        let reason = bad.or(match volume.read(0, BOOT_SIZE) {
            Ok(sector) if is_marked(&sector) => None,
            _ => Some("no 0x55 0xaa at the end"),
        });
        self.verdict("boot sector", (0, boot.sector), None, reason.map(str::to_owned));
        if boot.size > volume.size() {
            let reason =
                format!("a volume of {} bytes in an image of {}", boot.size, volume.size());
            self.damaged("boot sector", 0, None, &reason);
        }
        let whole = boot.size + boot.sector;
        if bad.is_none() && whole <= volume.size() {
            let backup = match volume.read(boot.size, BOOT_SIZE.min(boot.sector as usize)) {
                Ok(backup) => backup,
                Err(error) => {
                    self.unreadable("backup boot sector", boot.size, None, &error);
                    return Ok(());
                }
            };
            // In a larger partition, or after one, there may be anything.
            if is_ntfs(&backup) || volume.size() == whole {
                let reason = match Boot::parse(&backup) {
                    Ok(other) if boot.agrees(&other) => None,
                    Ok(_) => Some("other sizes than in the boot sector".to_owned()),
                    Err(reason) => Some(reason.to_owned()),
                };
                self.verdict("backup boot sector", (boot.size, boot.sector), None, reason);
            }
        }
        self.advance(2 * BOOT_SIZE as u64)
    }

    /// Verifies the restart pages of the log file.
    pub fn check_log(&mut self) {
        let log = &self.state.log;
        // One of two pages may be torn in a crash, after which the other one counts.
        let is_spare = log.is_open() && log.pages.iter().any(|page| page.defect.is_none());
        for page in &log.pages {
            let reason = page.defect.map(|defect| defect.to_string());
            if reason.is_none() || !is_spare {
                let object = Some(number::LOG_FILE);
                self.verdict("log restart page", (page.offset, page.length), object, reason);
            }
        }
    }

    /// Compares the mirror of the MFT with the first records of it.
    pub fn check_mirror(&mut self) {
        let (boot, volume) = (&self.disk.boot, &self.disk.volume);
        let content = self.disk.content(number::MIRROR, kind::DATA, <[u8]>::is_empty);
        let size = boot.record as u64;
        let content = content.filter(|content| content.size() >= size);
        let Some(Content::NonResident(mirror)) = content else {
            self.damaged("MFT mirror", boot.mirror * boot.cluster, None, "no content");
            return;
        };
        let mut records = [vec![0; boot.record], vec![0; boot.record]];
        for number in 0..(mirror.size() / size).min(MIRRORED) {
            let at = number * size;
            let place = mirror.places(at, size).next().and_then(|place| place.offset);
            let offset = place.unwrap_or_default();
            let [copy, original] = &mut records;
            if let Err(error) = mirror.read_into(volume, copy, at) {
                self.unreadable("MFT mirror", offset, Some(number), &error);
                continue;
            }
            // A damaged original is reported as a record of the MFT.
            let original_read = self.disk.mft.read_into(volume, original, at).ok();
            let original_read = original_read.and_then(|()| restore(original, b"FILE").ok());
            let reason = match restore(copy, b"FILE") {
                Err(defect) => Some(defect.to_string()),
                // Before the log was replayed, one of them may be older.
                Ok(()) if original_read.is_none() || !self.state.is_clean() => None,
                Ok(()) if is_copy(copy, original) => None,
                Ok(()) => Some(format!("other content than MFT record {number}")),
            };
            self.verdict("MFT mirror", (offset, size), Some(number), reason);
        }
    }

    /// Verifies the blocks of the indexes of a file.
    pub fn check_indexes(&mut self, number: u64, records: &[&[u8]], is_torn: bool) {
        let mut seen: Vec<&[u8]> = vec![];
        for attribute in records.iter().flat_map(|record| attributes(record)).flatten() {
            let Attribute { kind: kind::INDEX_ALLOCATION, name, body: Body::NonResident(_) } =
                attribute
            else {
                continue;
            };
            if seen.contains(&name) || seen.len() == MAX_INDEXES {
                continue;
            }
            seen.push(name);
            match Index::find(records, name, &self.disk.boot) {
                Ok(Some(index)) => self.check_index(number, &index),
                Err(reason) if !is_torn && self.state.is_clean() => {
                    self.damaged("MFT record", self.mft_offset(number), Some(number), reason);
                }
                _ => {}
            }
        }
    }

    fn check_index(&mut self, number: u64, index: &Index) {
        let volume = &self.disk.volume;
        let block = index.block as u64;
        let count = index.blocks.size() / block;
        let object = Some(number);
        let bitmap_size = index.bitmap.size().min(count.div_ceil(8)).min(MAX_INDEX_BITMAP);
        if index.bitmap.stored_size() > 0 && !charge(&mut self.budget, bitmap_size) {
            return self.skipped_index(number);
        }
        let bitmap = match index.bitmap.read(volume, bitmap_size) {
            Ok(bitmap) => bitmap,
            Err(error) => {
                let offset = self.mft_offset(number);
                return self.unreadable("index bitmap", offset, object, &error);
            }
        };
        let is_used = |at: u64| {
            let byte = usize::try_from(at / 8).ok().and_then(|byte| bitmap.get(byte));
            byte.is_some_and(|byte| byte >> (at % 8) & 1 != 0)
        };
        if count > MAX_INDEX_BITMAP * 8 {
            self.skipped_index(number);
        }
        let count = count.min(bitmap.len() as u64 * 8);
        let (mut first, mut matched) = (0, 0);
        let mut buffer = std::mem::take(&mut self.block);
        while first < count {
            let stop = count.min(first + (CHUNK / index.block) as u64);
            let end = (first..stop).find(|at| !is_used(*at)).unwrap_or(stop);
            let length = (end - first) * block;
            if !charge(&mut self.budget, length) {
                self.skipped_index(number);
                break;
            }
            buffer.resize(length as usize, 0);
            if let Err(error) = index.blocks.read_into(volume, &mut buffer, first * block) {
                self.unreadable("index block", self.mft_offset(number), object, &error);
            } else {
                for (at, bytes) in (first..).zip(buffer.chunks_exact_mut(index.block)) {
                    matched += u64::from(self.check_block(number, index, at * block, bytes));
                }
            }
            first = end + 1;
        }
        self.block = buffer;
        if matched > 0 {
            self.visitor.matched("index block", matched, matched * block);
        }
    }

    /// Verifies a block. Returns whether it is right.
    fn check_block(&mut self, number: u64, index: &Index, at: u64, bytes: &mut [u8]) -> bool {
        let is_blank = !bytes.starts_with(b"INDX") && !bytes.starts_with(b"BAAD");
        let reason = match restore(bytes, b"INDX") {
            // Before the log was replayed, the block may not have been written.
            Err(_) if is_blank && !self.state.is_clean() => return false,
            Err(defect) => defect.to_string(),
            Ok(()) if index.is_at(bytes, at) => {
                match block_defect(bytes, index.is_directory) {
                    Some(reason) => {
                        self.damaged("index block", index.offset(at), Some(number), reason);
                    }
                    None if index.is_directory => {
                        self.names_in_index(number, entries_of_block(bytes));
                    }
                    None => {}
                }
                return true;
            }
            Ok(()) if !self.state.is_clean() => return false,
            Ok(()) => "the number of another block".to_owned(),
        };
        let (offset, length) = (index.offset(at), bytes.len() as u64);
        self.verdict("index block", (offset, length), Some(number), Some(reason));
        false
    }

    /// Notes the names in a part of the index of a directory.
    pub fn names_in_index(&mut self, directory: u64, entries: Entries<'_>) {
        let Some(balance) = &mut self.balance else { return };
        for (file, key) in entries {
            if let Some(name) = FileName::parse(key) {
                balance.subtract(directory, file, &name);
            }
        }
    }

    /// Verifies that directories have the names that the MFT has, if nothing else is wrong.
    pub fn check_names(&mut self) {
        let Some(balance) = self.balance.take() else { return };
        let is_exact = balance.modulus() >= self.disk.record_count();
        for number in balance.differences() {
            let object = is_exact.then_some(number);
            let reason = match object {
                Some(_) => "other names in the directory than in the MFT".to_owned(),
                None => format!(
                    "other names than in the MFT in a directory that is number {number} or larger by a multiple of {}",
                    balance.modulus()
                ),
            };
            self.damaged("directory", self.mft_offset(number), object, &reason);
        }
    }

    fn skipped_index(&mut self, number: u64) {
        self.problem(Problem {
            kind: ProblemKind::Skipped,
            structure: "index block",
            offset: self.mft_offset(number),
            object: Some(number),
            reason: NO_BUDGET.to_owned(),
        });
    }

    /// Reports a structure as right, or why it is not.
    pub fn verdict(
        &mut self,
        structure: &'static str,
        (offset, length): (u64, u64),
        object: Option<ObjectId>,
        reason: Option<String>,
    ) {
        match reason {
            None => self.visitor.matched(structure, 1, length),
            Some(reason) => {
                self.balance = None;
                self.visitor.mismatch(Mismatch { structure, offset, length, object, reason });
            }
        }
    }
}

/// Returns whether the used parts of two records are the same. They are written together, with the same update sequence.
fn is_copy(copy: &[u8], original: &[u8]) -> bool {
    let used = le32_at(original, 24).unwrap_or_default() as usize;
    let used = used.min(original.len());
    copy[..used] == original[..used]
}

/// Maximum number of records in the mirror, of which Windows has 4 or a cluster.
/// Limit in records.
const MIRRORED: u64 = 4096;

/// Maximum size of the bitmap of an index, which is enough for 32 GiB of blocks of 4 KiB.
/// Limit in bytes.
const MAX_INDEX_BITMAP: u64 = 1 << 20;

/// Maximum number of indexes of a file that are verified. Files of the file system have at most two. Limit in indexes.
const MAX_INDEXES: usize = 16;
