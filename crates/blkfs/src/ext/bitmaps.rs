//! Bitmaps of blocks and inodes.

use super::group::Group;
use super::superblock::incompat;
use super::walk::Walk;
use crate::error::Result;
use crate::visitor::Owner;

/// Bitmaps that were read ahead.
#[derive(Default)]
pub(super) struct Ahead {
    bytes: Vec<u8>,
    first: u64,
    is_read: bool,
}

impl Walk<'_> {
    /// Checks the block bitmaps, and reports free blocks.
    pub fn read_block_bitmaps(&mut self) -> Result<()> {
        let mut ahead = Ahead::default();
        let metadata = self.places();
        for number in 0..self.groups.len() {
            let group = self.groups[number];
            if group.has_no_block_bitmap() {
                self.free_but_metadata(number as u64, &metadata);
                continue;
            }
            if group.block_bitmap == 0 {
                continue;
            }
            let next = |group: &Group| group.block_bitmap;
            if let Some(bitmap) = self.bitmap(&mut ahead, number, next, "block bitmap")? {
                let clusters = self.superblock.blocks_per_group / self.superblock.cluster_blocks;
                let covered = bitmap.get(..clusters as usize / 8).unwrap_or_default();
                self.check_bitmap(&group, covered, "block bitmap");
                self.free_bits(number as u64, bitmap);
            }
        }
        Ok(())
    }

    /// Returns the inode bitmap of a group, if it has one.
    pub fn inode_bitmap<'b>(
        &mut self,
        ahead: &'b mut Ahead,
        number: usize,
    ) -> Result<Option<&'b [u8]>> {
        let group = self.groups[number];
        if group.has_no_inodes() || group.inode_bitmap == 0 {
            return Ok(None);
        }
        let next = |group: &Group| group.inode_bitmap;
        let bitmap = self.bitmap(ahead, number, next, "inode bitmap")?;
        if let Some(bitmap) = bitmap {
            let length = self.superblock.inodes_per_group as usize / 8;
            self.check_bitmap(&group, bitmap.get(..length).unwrap_or_default(), "inode bitmap");
        }
        Ok(bitmap)
    }

    /// Reads the bitmap of a group, together with later ones if they belong to the next groups.
    fn bitmap<'b>(
        &mut self,
        ahead: &'b mut Ahead,
        number: usize,
        place: impl Fn(&Group) -> u64,
        structure: &'static str,
    ) -> Result<Option<&'b [u8]>> {
        let block_size = self.superblock.block_size;
        let block = place(&self.groups[number]);
        let count = ahead.bytes.len() as u64 / block_size;
        if !ahead.is_read || !(ahead.first..ahead.first + count).contains(&block) {
            let following = self.groups[number..].iter().map(place);
            let count = following
                .zip(block..)
                .take(self.blocks_per_read() as usize / 4)
                .take_while(|(place, next)| place == next)
                .count();
            ahead.bytes.resize(count * block_size as usize, 0);
            ahead.first = block;
            ahead.is_read = self.read(&mut ahead.bytes, block, structure, None)?;
        }
        let start = ((block - ahead.first) * block_size) as usize;
        let bytes = ahead.bytes.get(start..start + block_size as usize);
        Ok(bytes.filter(|_| ahead.is_read))
    }

    fn check_bitmap(&mut self, group: &Group, bytes: &[u8], structure: &'static str) {
        if !self.wanted.checks {
            return;
        }
        let (place, stored) = match structure {
            "block bitmap" => (group.block_bitmap, group.block_bitmap_sum),
            _ => (group.inode_bitmap, group.inode_bitmap_sum),
        };
        let check = self.sums.bitmap(bytes, stored);
        let offset = place * self.superblock.block_size;
        self.check(check, structure, offset, bytes.len() as u64, None);
    }

    /// Reports the clusters of a group whose bits are clear.
    fn free_bits(&mut self, group: u64, bitmap: &[u8]) {
        if !self.wanted.extents {
            return;
        }
        let (start, blocks) =
            (self.superblock.group_start(group), self.superblock.group_blocks(group));
        let ratio = self.superblock.cluster_blocks;
        let clusters = blocks.div_ceil(ratio);
        let mut at = 0;
        while at < clusters {
            let free = next_bit(bitmap, at, clusters, false);
            at = next_bit(bitmap, free, clusters, true);
            let end = (at * ratio).min(blocks);
            self.free(start + (free * ratio).min(blocks), start + end);
        }
    }

    /// Reports the blocks from `start` to `end` as free.
    fn free(&mut self, start: u64, end: u64) {
        self.emit_blocks(start, end.saturating_sub(start), Owner::Free);
    }

    /// Reports as free the blocks of a group that has no bitmap: all that are not metadata of some group.
    fn free_but_metadata(&mut self, group: u64, metadata: &[(u64, u64)]) {
        if !self.wanted.extents {
            return;
        }
        let ratio = self.superblock.cluster_blocks;
        let start = self.superblock.group_start(group);
        let end = start + self.superblock.group_blocks(group);
        let mut next = start;
        let first = metadata.partition_point(|(_, last)| *last <= start);
        for (first, last) in metadata[first..].iter().take_while(|(first, _)| *first < end) {
            // A cluster with metadata is in use as a whole.
            let first = start + first.saturating_sub(start) / ratio * ratio;
            self.free(next, first);
            next = next.max(start + (last - start).next_multiple_of(ratio));
        }
        self.free(next, end);
    }

    /// Returns the blocks of metadata of all groups, sorted: the first and the one after the last.
    fn places(&self) -> Vec<(u64, u64)> {
        if !self.wanted.extents || !self.groups.iter().any(Group::has_no_block_bitmap) {
            return Vec::new();
        }
        let heads = (0..self.present_groups()).map(|number| {
            let head = self.superblock.head(number);
            let start = head.superblock.unwrap_or(head.descriptors.start);
            (start, head.reserved.end)
        });
        let table = self.superblock.table_blocks();
        let mut places: Vec<_> = heads.collect();
        for group in &self.groups {
            let parts =
                [(group.block_bitmap, 1), (group.inode_bitmap, 1), (group.inode_table, table)];
            places.extend(parts.map(|(start, count)| (start, start + count)));
        }
        if self.superblock.incompat(incompat::MMP) {
            let block = self.superblock.mmp_block;
            places.push((block, block.saturating_add(1)));
        }
        places.retain(|(start, end)| start < end);
        places.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (start, end) in places {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        joined
    }
}

/// Returns the first bit from `at` on that is `wanted`, or `end`. Bits past the end of the bytes are set.
fn next_bit(bitmap: &[u8], mut at: u64, end: u64, wanted: bool) -> u64 {
    while at < end {
        let start = at as usize / 64 * 8;
        let word = match bitmap.get(start..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => u64::MAX,
        };
        let word = (if wanted { word } else { !word }) & (u64::MAX << (at % 64));
        if word != 0 {
            return end.min(at / 64 * 64 + u64::from(word.trailing_zeros()));
        }
        at = (at / 64 + 1) * 64;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits() {
        let mut bitmap = [0xff; 1024];
        bitmap[2] = 0xe3;
        bitmap[9] = 0x7f;
        assert_eq!(next_bit(&bitmap, 0, 8192, false), 18);
        assert_eq!(next_bit(&bitmap, 18, 8192, true), 21);
        assert_eq!(next_bit(&bitmap, 21, 8192, false), 79);
        assert_eq!(next_bit(&bitmap, 21, 60, false), 60);
        assert_eq!(next_bit(&bitmap, 79, 8192, true), 80);
        assert_eq!(next_bit(&bitmap, 80, 9000, false), 9000);
    }
}
