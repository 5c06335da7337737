//! The log of a journal, read as for its replay.

use std::collections::{BTreeMap, HashMap};

use super::blocks::{MAGIC, Patch};
use super::checksum::Check;
use super::journal::Journal;
use super::journal_superblock::{JournalSuperblock, SIZE};
use super::run::Run;
use crate::bytes::{be32_at, be64_at, le16_at, le32_at};
use crate::crc::crc32c;
use crate::error::Result;
use crate::volume::Volume;

/// Reads the journal with the blocks `runs`. If it is to be replayed, finds what would be written to the first `blocks`
/// blocks.
pub(super) fn read(
    volume: &Volume,
    block_size: u64,
    runs: &[Run],
    replay: Option<u64>,
) -> Result<Journal> {
    let mut journal = Journal::default();
    let Some(run) = runs.first().filter(|run| run.logical == 0) else {
        journal.fail(0, replay, "it has no blocks");
        return Ok(journal);
    };
    let offset = run.physical * block_size;
    let bytes = volume.read(offset, SIZE)?;
    let Some(superblock) = JournalSuperblock::parse(&bytes) else {
        journal.fail(offset, replay, "its superblock is invalid");
        return Ok(journal);
    };
    journal.check(superblock.check(&bytes), "journal superblock", offset, SIZE as u64);
    if let Some(kind) = superblock.unknown_checksum(&bytes) {
        journal.fail(offset, replay, &format!("there is no checksum {kind}"));
    }
    let log_end = runs.last().map_or(0, |run| run.logical + run.count);
    if superblock.block_size != block_size || superblock.length > log_end {
        journal.fail(offset, replay, "its size is invalid");
    } else if let Some(blocks) = replay
        && superblock.start != 0
    {
        Log::new(volume, &superblock, runs, blocks).read(&mut journal)?;
    }
    Ok(journal)
}

/// The log of a journal.
struct Log<'a> {
    volume: &'a Volume,
    superblock: &'a JournalSuperblock,
    /// The blocks of the journal.
    runs: &'a [Run],
    /// Number of blocks of the file system.
    blocks: u64,
    /// The next block of the log.
    next: u64,
    /// Number of blocks of the log that were passed.
    passed: u64,
    block: Vec<u8>,
}

/// A copy of a block in the log.
#[derive(Clone, Copy)]
struct Tag {
    block: u64,
    /// Its checksum in the tag, if there is one.
    stored: Option<u32>,
    is_escaped: bool,
    offset: u64,
    /// The place of its transaction in the log.
    transaction: u32,
}

/// What a transaction consists of.
#[derive(Default)]
struct Transaction {
    tags: Vec<Tag>,
    revoked: Vec<u64>,
    /// A descriptor block whose checksum does not match.
    bad: Option<(Check, u64)>,
    /// Matching descriptor and revocation blocks.
    good: u64,
}

impl<'a> Log<'a> {
    pub fn new(
        volume: &'a Volume,
        superblock: &'a JournalSuperblock,
        runs: &'a [Run],
        blocks: u64,
    ) -> Self {
        let block = vec![0; superblock.block_size as usize];
        Self { volume, superblock, runs, blocks, next: superblock.start, passed: 0, block }
    }

    /// Reads all transactions up to the last one that was committed.
    pub fn read(mut self, journal: &mut Journal) -> Result<()> {
        let mut tags = Vec::new();
        let mut revoked = HashMap::new();
        let mut last_time = 0;
        let mut number = 0;
        while let Some(transaction) = self.transaction(number, &mut last_time, journal)? {
            for block in transaction.revoked {
                revoked.insert(block, number);
            }
            tags.extend(transaction.tags);
            number += 1;
            if tags.len() > MAX_TAGS {
                journal.is_unsettled = true;
                journal.damaged(0, "it holds too many blocks");
                return Ok(());
            }
        }
        let mut patches = BTreeMap::new();
        for tag in tags {
            let is_revoked = revoked.get(&tag.block).is_some_and(|by| *by >= tag.transaction);
            if is_revoked || tag.block >= self.blocks || !self.verify(&tag, journal)? {
                continue;
            }
            let Tag { block, offset, is_escaped, .. } = tag;
            patches.insert(block, Patch { block, offset, is_escaped });
        }
        journal.patches = patches.into_values().collect();
        let sequence = self.superblock.sequence.wrapping_add(number);
        journal.has_fast_commits = self.has_fast_commits(sequence)?;
        Ok(())
    }

    /// Reads a transaction. Returns `None` if it was not committed.
    fn transaction(
        &mut self,
        number: u32,
        last_time: &mut u64,
        journal: &mut Journal,
    ) -> Result<Option<Transaction>> {
        let sequence = self.superblock.sequence.wrapping_add(number);
        let mut transaction = Transaction::default();
        while let Some(offset) = self.advance() {
            let mut block = std::mem::take(&mut self.block);
            let is_read = self.volume.read_into(&mut block, offset);
            let kind = kind(&block, sequence);
            match kind {
                _ if is_read.is_err() => {}
                Some(DESCRIPTOR) => self.descriptor(&block, number, offset, &mut transaction),
                Some(REVOCATION) => self.revocation(&block, offset, &mut transaction),
                Some(COMMIT) => {
                    let time = be64_at(&block, 0x30).unwrap_or_default();
                    let check = self.check(&block, 16);
                    self.block = block;
                    let is_stale = time < *last_time;
                    *last_time = time;
                    let is_good =
                        self.is_committed(transaction.bad, check, is_stale, offset, journal);
                    let size = self.superblock.block_size;
                    for _ in 0..if is_good && check.is_some() { transaction.good } else { 0 } {
                        let check = Some(Check::new(0, 0));
                        journal.check(check, "journal descriptor block", offset, size);
                    }
                    return Ok(is_good.then_some(transaction));
                }
                _ => {}
            }
            self.block = block;
            is_read?;
            if !matches!(kind, Some(DESCRIPTOR | REVOCATION)) {
                break;
            }
        }
        Ok(None)
    }

    /// Returns whether a transaction with a commit block is to be replayed. Blocks that were in the log before can look like
    /// one, but they are older.
    fn is_committed(
        &self,
        bad: Option<(Check, u64)>,
        commit: Option<Check>,
        is_stale: bool,
        offset: u64,
        journal: &mut Journal,
    ) -> bool {
        let size = self.superblock.block_size;
        let is_good = bad.is_none() && commit.is_none_or(|check| check.is_match());
        if !is_good && is_stale {
            return false;
        }
        if let Some((check, offset)) = bad {
            return journal.check(Some(check), "journal descriptor block", offset, size);
        }
        journal.check(commit, "journal commit block", offset, size)
    }

    fn descriptor(
        &mut self,
        bytes: &[u8],
        number: u32,
        offset: u64,
        transaction: &mut Transaction,
    ) {
        let end = self.check_tail(bytes, offset, transaction);
        let (wide, size) = (self.superblock.is_wide(), self.superblock.tag_size());
        let mut at = HEADER;
        while at + size <= end {
            let word = |position| be32_at(bytes, at + position).unwrap_or_default();
            let (low, half) = (word(4) & 0xffff, word(4) >> 16);
            let (flags, stored) = match self.superblock.has_version_3() {
                true => (word(4), Some(word(12))),
                false => (low, self.superblock.has_sums().then_some(half)),
            };
            let block = u64::from(word(0)) | if wide { u64::from(word(8)) << 32 } else { 0 };
            let is_escaped = flags & ESCAPED != 0;
            let Some(offset) = self.advance() else { return };
            transaction.tags.push(Tag { block, stored, is_escaped, offset, transaction: number });
            at += size + if flags & SAME_UUID != 0 { 0 } else { 16 };
            if flags & LAST != 0 {
                return;
            }
        }
    }

    fn revocation(&self, bytes: &[u8], offset: u64, transaction: &mut Transaction) {
        let end = self.check_tail(bytes, offset, transaction);
        let used = be32_at(bytes, HEADER).unwrap_or_default() as usize;
        let numbers = bytes.get(HEADER + 4..used.min(end)).unwrap_or_default();
        transaction.revoked.extend(match self.superblock.is_wide() {
            true => numbers.as_chunks().0.iter().map(|it| u64::from_be_bytes(*it)).collect(),
            false => {
                let (numbers, _) = numbers.as_chunks();
                numbers.iter().map(|it| u32::from_be_bytes(*it).into()).collect::<Vec<_>>()
            }
        });
    }

    /// Checks the last bytes of a descriptor or revocation block. Returns where they begin.
    fn check_tail(&self, bytes: &[u8], offset: u64, transaction: &mut Transaction) -> usize {
        match self.check(bytes, bytes.len() - 4) {
            None => bytes.len(),
            Some(check) => {
                match check.is_match() {
                    true => transaction.good += 1,
                    false => transaction.bad = transaction.bad.or(Some((check, offset))),
                }
                bytes.len() - 4
            }
        }
    }

    /// Checks a block with its checksum at `at`.
    fn check(&self, bytes: &[u8], at: usize) -> Option<Check> {
        let check = || Check::within(self.superblock.seed, bytes, at).map(Check::big_endian);
        self.superblock.has_sums().then(check).flatten()
    }

    /// Returns whether the copy of a block matches the checksum in its tag. If not, replay leaves it out.
    fn verify(&mut self, tag: &Tag, journal: &mut Journal) -> Result<bool> {
        let Some(stored) = tag.stored else { return Ok(true) };
        self.volume.read_into(&mut self.block, tag.offset)?;
        let sequence = self.superblock.sequence.wrapping_add(tag.transaction);
        let seed = crc32c(self.superblock.seed, &sequence.to_be_bytes());
        let computed = crc32c(seed, &self.block);
        let check = match self.superblock.has_version_3() {
            true => Check::new(computed, stored),
            false => Check::low(computed, stored),
        };
        let size = self.superblock.block_size;
        Ok(journal.check(Some(check), "journal data block", tag.offset, size))
    }

    /// Takes the next block of the log. Returns its offset in the volume, or `None` after the whole log.
    fn advance(&mut self) -> Option<u64> {
        let JournalSuperblock { first, last, block_size, .. } = *self.superblock;
        let block = self.next;
        if !(first..last).contains(&block) || self.passed >= last - first {
            return None;
        }
        self.passed += 1;
        self.next = if block + 1 == last { first } else { block + 1 };
        self.place(block).map(|place| place * block_size)
    }

    /// Returns where a block of the journal is.
    fn place(&self, block: u64) -> Option<u64> {
        let index = self.runs.partition_point(|run| run.logical + run.count <= block);
        let run = self.runs.get(index).filter(|run| run.logical <= block)?;
        Some(run.physical + (block - run.logical))
    }

    /// Returns whether fast commits follow the last transaction.
    fn has_fast_commits(&mut self, sequence: u32) -> Result<bool> {
        let JournalSuperblock { last, length, block_size, .. } = *self.superblock;
        if last == length {
            return Ok(false);
        }
        // The kernel leaves one block between.
        let Some(place) = self.place(last + 1) else { return Ok(false) };
        self.volume.read_into(&mut self.block, place * block_size)?;
        let is_head = le16_at(&self.block, 0) == Some(FAST_COMMIT_HEAD);
        Ok(is_head && le32_at(&self.block, 8) == Some(sequence))
    }
}

/// Returns the kind of a block of the log, if it belongs to the transaction.
fn kind(bytes: &[u8], sequence: u32) -> Option<u32> {
    let is_part = be32_at(bytes, 0) == Some(MAGIC) && be32_at(bytes, 8) == Some(sequence);
    be32_at(bytes, 4).filter(|_| is_part)
}

const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const REVOCATION: u32 = 5;

const ESCAPED: u32 = 1;
const SAME_UUID: u32 = 2;
const LAST: u32 = 8;

/// Tag of the first record of a fast commit.
const FAST_COMMIT_HEAD: u16 = 9;

/// Size of the header of a block of the log.
const HEADER: usize = 12;

/// Maximum number of copies of blocks in a journal that are kept in memory, of 40 bytes each.
/// Limit in copies.
const MAX_TAGS: usize = 1 << 22;

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use super::*;

    /// Returns a block of a journal, with words in big endian at its beginning.
    fn block(words: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.resize(1024, 0);
        bytes
    }

    /// Replays a journal of blocks that begin at block 10 of a volume.
    fn replay(blocks: &[Vec<u8>]) -> Journal {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[0; 10 * 1024]).unwrap();
        blocks.iter().for_each(|block| file.write_all(block).unwrap());
        let image =
            blkimage::OpenOptions::new().format(blkimage::Format::Raw).open(file.path()).unwrap();
        let volume = Volume::new(Arc::new(image));
        let count = blocks.len() as u64;
        let runs = [Run { logical: 0, physical: 10, count, is_written: true }];
        read(&volume, 1024, &runs, Some(1000)).unwrap()
    }

    fn superblock(length: u32, start: u32) -> Vec<u8> {
        block(&[MAGIC, 4, 0, 1024, length, 1, 7, start])
    }

    /// Returns a descriptor block of two blocks, the second of which is escaped.
    fn descriptor(sequence: u32, first: u32, second: u32) -> Vec<u8> {
        let uuid = [0; 4];
        let head = [MAGIC, DESCRIPTOR, sequence, first, 0];
        let last = [second, ESCAPED | SAME_UUID | LAST];
        block(&[&head[..], &uuid, &last].concat())
    }

    fn commit(sequence: u32) -> Vec<u8> {
        block(&[MAGIC, COMMIT, sequence])
    }

    fn patch(block: u64, journal: u64, is_escaped: bool) -> Patch {
        Patch { block, offset: (10 + journal) * 1024, is_escaped }
    }

    #[test]
    fn newest_copies_of_committed_transactions() {
        let blocks = [
            superblock(11, 1),
            descriptor(7, 100, 101),
            block(&[]),
            block(&[]),
            commit(7),
            descriptor(8, 101, 102),
            block(&[]),
            block(&[]),
            commit(8),
            // It was not committed.
            descriptor(9, 103, 104),
            block(&[]),
        ];
        let journal = replay(&blocks);
        let expected = [patch(100, 2, false), patch(101, 6, false), patch(102, 7, true)];
        assert_eq!(journal.patches, expected);
        assert!(journal.problems.is_empty() && journal.mismatches.is_empty());
    }

    #[test]
    fn revoked_blocks_stay_in_place() {
        let blocks = [
            superblock(9, 1),
            descriptor(7, 100, 101),
            block(&[]),
            block(&[]),
            commit(7),
            block(&[MAGIC, REVOCATION, 8, 20, 101]),
            commit(8),
            block(&[]),
            block(&[]),
        ];
        assert_eq!(replay(&blocks).patches, [patch(100, 2, false)]);
    }

    #[test]
    fn log_goes_on_at_its_beginning() {
        let blocks = [
            superblock(6, 4),
            block(&[]),
            commit(7),
            descriptor(8, 1, 2),
            descriptor(7, 100, 2000),
            block(&[]),
        ];
        // Block 2000 does not exist.
        assert_eq!(replay(&blocks).patches, [patch(100, 5, false)]);
    }

    #[test]
    fn superblocks_that_cannot_be() {
        for bad in [block(&[]), superblock(200, 1)] {
            let journal = replay(&[bad, commit(7)]);
            assert!(journal.is_unsettled && journal.problems.len() == 1);
        }
    }
}
