//! Checks the superblock, the copies of it and of group descriptors, and what else stands alone.

use super::checksum::{Check, Sums};
use super::layout::Head;
use super::map::File;
use super::run::Run;
use super::superblock::{OFFSET, SIZE, Superblock, compat, incompat, ro_compat};
use super::walk::Walk;
use crate::bytes::le32_at;
use crate::crc::crc32c;
use crate::error::Result;

impl Walk<'_> {
    /// Checks the superblock itself.
    pub fn check_superblock(&mut self) -> Result<()> {
        if !self.superblock.ro_compat(ro_compat::METADATA_CSUM) {
            return Ok(());
        }
        let block = OFFSET / self.superblock.block_size;
        let mut buffer = self.take_buffer();
        buffer.resize(self.superblock.block_size as usize, 0);
        if self.read(&mut buffer, block, "superblock", None)? {
            let start = (OFFSET - block * self.superblock.block_size) as usize;
            let check = buffer.get(start..start + SIZE).and_then(Check::superblock);
            self.check(check, "superblock", OFFSET, SIZE as u64, None);
        }
        self.give_buffer(buffer);
        if self.superblock.checksum_type != CRC32C {
            let reason = format!("there is no checksum {}", self.superblock.checksum_type);
            self.damaged("superblock", OFFSET, None, reason);
        }
        Ok(())
    }

    /// Checks the copies of the superblock and of group descriptors. They can be old, so each is only compared with
    /// its own checksum, and descriptors as the superblock before them says.
    pub fn check_backups(&mut self) -> Result<()> {
        if !self.superblock.has_uninitialised() {
            return Ok(());
        }
        let mut buffer = self.take_buffer();
        for group in 1..self.present_groups() {
            let head = self.superblock.head(group);
            if head.superblock.is_some() {
                self.check_backup(&head, &mut buffer)?;
            }
        }
        self.give_buffer(buffer);
        Ok(())
    }

    fn check_backup(&mut self, head: &Head, buffer: &mut Vec<u8>) -> Result<()> {
        let Some(place) = head.superblock else { return Ok(()) };
        let block_size = self.superblock.block_size;
        buffer.resize(block_size as usize, 0);
        if !self.superblock.contains(place, 1)
            || !self.read(buffer, place, "backup superblock", None)?
        {
            return Ok(());
        }
        let bytes = buffer.get(..SIZE).unwrap_or_default();
        let Ok(Some(backup)) = Superblock::parse(bytes) else { return Ok(()) };
        if backup.ro_compat(ro_compat::METADATA_CSUM) {
            let check = Check::superblock(bytes);
            let offset = place * block_size;
            self.check(check, "backup superblock", offset, SIZE as u64, None);
            if check.is_some_and(|check| check.is_match()) && self.is_like(&backup) {
                return self.check_backup_descriptors(&backup, head, buffer);
            }
        }
        Ok(())
    }

    /// Returns whether the descriptors after a copy of the superblock are where the current ones do.
    fn is_like(&self, backup: &Superblock) -> bool {
        let current = self.superblock;
        let is_sparse =
            backup.ro_compat(ro_compat::SPARSE_SUPER) || backup.compat(compat::SPARSE_SUPER2);
        is_sparse
            && !backup.incompat(incompat::META_BG)
            && backup.descriptor_size == current.descriptor_size
            && backup.blocks_per_group == current.blocks_per_group
            && backup.block_size == current.block_size
    }

    fn check_backup_descriptors(
        &mut self,
        backup: &Superblock,
        head: &Head,
        buffer: &mut [u8],
    ) -> Result<()> {
        let sums = Sums::new(backup);
        let groups = backup.groups.min(self.superblock.groups);
        let mut group = 0;
        for block in head.descriptors.clone() {
            if !self.superblock.contains(block, 1)
                || !self.read(buffer, block, "backup group descriptors", None)?
            {
                break;
            }
            let size = backup.descriptor_size;
            for (index, bytes) in buffer.chunks_exact(size).enumerate() {
                if group == groups {
                    return Ok(());
                }
                let check = sums.descriptor(group, bytes);
                let offset = block * self.superblock.block_size + (index * size) as u64;
                self.check(check, "backup group descriptor", offset, size as u64, None);
                group += 1;
            }
        }
        Ok(())
    }

    /// Checks the block of multiple mount protection.
    pub fn check_mmp(&mut self) -> Result<()> {
        let block = self.superblock.mmp_block;
        if !self.superblock.incompat(incompat::MMP) || !self.superblock.contains(block, 1) {
            return Ok(());
        }
        let mut buffer = self.take_buffer();
        buffer.resize(self.superblock.block_size as usize, 0);
        if self.read(&mut buffer, block, "MMP block", None)? {
            let check = self.sums.mmp(&buffer);
            let offset = block * self.superblock.block_size;
            self.check(check, "MMP block", offset, SIZE as u64, None);
        }
        self.give_buffer(buffer);
        Ok(())
    }

    /// Checks blocks of the orphan file.
    pub fn check_orphan_file(&mut self, file: &File, run: Run) -> Result<()> {
        if !self.wanted.checks || !self.sums.has_metadata() {
            return Ok(());
        }
        let block_size = self.superblock.block_size;
        let mut buffer = self.take_buffer();
        buffer.resize(block_size as usize, 0);
        for block in run.physical..run.physical + run.count {
            let object = Some(file.object);
            if !self.seen.content.insert(block)
                || !self.read(&mut buffer, block, "orphan file", object)?
            {
                break;
            }
            let seed = crc32c(file.seed, &block.to_le_bytes());
            let tail = buffer.len().saturating_sub(8);
            let covered = buffer.get(..tail).unwrap_or_default();
            let stored = le32_at(&buffer, tail + 4).unwrap_or_default();
            let check = Check::new(crc32c(seed, covered), stored);
            let offset = block * block_size;
            self.check(Some(check), "orphan file block", offset, block_size, object);
            if !check.is_match() {
                break;
            }
        }
        self.give_buffer(buffer);
        Ok(())
    }
}

/// The only type of checksums that there is.
const CRC32C: u8 = 1;
