//! The second header of dynamic and differencing disks.

use super::footer::{FOOTER, VERSION, check_sum};
use crate::error::{ErrorKind, Result};
use crate::formats::empty::not_empty;
use crate::formats::fields::{Entry, Head, check_inside, for_each_entry};
use crate::formats::table_cache::Table;
use crate::hint::Hint;
use crate::storage::HostFile;

/// A validated header.
pub(super) struct Header {
    /// Size of a block in bytes, without its bitmap.
    pub block: u64,
    /// Size in bytes of the bitmap before each block.
    pub bitmap: u64,
    /// The entries of the blocks within the virtual size.
    pub table: Table,
}

impl Header {
    /// Reads the header at `offset` of a disk with `size` bytes of content.
    pub fn read(file: &HostFile, offset: u64, size: u64) -> Result<Self> {
        let head = Head::read(file, offset, HEADER)?;
        if !head.starts_with(b"cxsparse") {
            return Err(file.corrupt("dynamic disk has no second header").at(offset));
        }
        check_sum(file, &head, 36, offset)?;
        let version = head.be32(24);
        if version != VERSION {
            let reason = format!("vpc version {version:#x} is not known");
            return Err(file.error(ErrorKind::Unsupported, reason).at(offset + 24));
        }
        let (entries, block) = (head.be32(28), head.be32(32));
        if !block.is_power_of_two() {
            return Err(file.corrupt(format!("block size {block} is not valid")).at(offset + 32));
        }
        if block < MIN_BLOCK {
            let reason = format!("blocks of {block} bytes are not read");
            return Err(file.error(ErrorKind::Unsupported, reason).at(offset + 32));
        }
        if entries > MAX_ENTRIES {
            let reason = format!("table has more than {MAX_ENTRIES} entries");
            return Err(file.corrupt(reason).at(offset + 28));
        }
        let block = u64::from(block);
        let needed = size.div_ceil(block);
        if needed > u64::from(entries) {
            return Err(file
                .corrupt("is larger than its table")
                .at(offset + 28)
                .with_hint(Hint::VpcSize));
        }
        let table = Table { offset: head.be64(16), length: needed * 4, entry: Entry::Be32 };
        check_inside(file, table.offset, u64::from(entries) * 4, "table")?;
        let bitmap = (block / (SECTOR * 8)).next_multiple_of(SECTOR);
        let header = Self { block, bitmap, table };
        // Entries past the virtual size map no guest bytes. QEMU checks them as well.
        let (rest, count) = (table.offset + table.length, u64::from(entries) - needed);
        for_each_entry(file, rest, count, table.entry, |index, entry| match Self::locate(entry) {
            Some(_) if size == 0 => {
                Err(not_empty(file, table.offset + index * 4).with_hint(Hint::VpcSize))
            }
            Some(start) => header.check_block(file, start),
            None => Ok(()),
        })?;
        Ok(header)
    }

    /// Returns the offset of a block, which begins with its bitmap, or `None` if it is not stored.
    pub fn locate(entry: u64) -> Option<u64> {
        (entry != UNUSED).then_some(entry * SECTOR)
    }

    /// Fails unless the file holds a whole block at `start`, before its footer.
    pub fn check_block(&self, file: &HostFile, start: u64) -> Result<()> {
        check_inside(file, start, self.bitmap + self.block + FOOTER as u64, "block")
    }
}

/// Size of the header in bytes.
pub(super) const HEADER: usize = 1024;

const SECTOR: u64 = 512;
/// Entry of a block that is not stored.
const UNUSED: u64 = 0xffff_ffff;
/// QEMU misses the bitmaps of smaller blocks.
const MIN_BLOCK: u32 = 4096;
/// Limit of QEMU.
const MAX_ENTRIES: u32 = i32::MAX as u32 / 4;
