//! The header of a vdi image.

use crate::error::{ErrorKind, Result};
use crate::formats::empty::check_empty;
use crate::formats::fields::{Entry, Head, check_inside};
use crate::formats::table_cache::Table;
use crate::storage::HostFile;

/// A validated header.
pub(super) struct Header {
    /// Virtual size in bytes, rounded up to sectors as in QEMU.
    pub size: u64,
    /// The entries of the blocks within the virtual size.
    pub table: Table,
    /// Offset of block 0 in the file.
    pub data: u64,
}

impl Header {
    pub fn read(file: &HostFile) -> Result<Self> {
        if file.size() < HEADER as u64 {
            return Err(file.error(ErrorKind::Format, "is not a vdi image"));
        }
        let head = Head::read(file, 0, HEADER)?;
        if !head.bytes()[SIGNATURE_AT..].starts_with(b"\x7f\x10\xda\xbe") {
            return Err(file.error(ErrorKind::Format, "is not a vdi image"));
        }
        let unsupported =
            |at: u64, reason: String| Err(file.error(ErrorKind::Unsupported, reason).at(at));
        let version = head.le32(0x44);
        if version != VERSION {
            let reason = format!("vdi version {}.{} is not read", version >> 16, version & 0xffff);
            return unsupported(0x44, reason);
        }
        match head.le32(0x4c) {
            DYNAMIC | STATIC => {}
            UNDO | DIFFERENCE => {
                let reason = "is a difference to another disk, which is not read";
                return unsupported(0x4c, reason.into());
            }
            other => return unsupported(0x4c, format!("image type {other} is not known")),
        }
        let [map, data] = [0x154, 0x158].map(|at| u64::from(head.le32(at)));
        for (at, offset) in [(0x154, map), (0x158, data)] {
            if !offset.is_multiple_of(SECTOR) {
                return unsupported(at, format!("offset {offset} is not aligned to a sector"));
            }
        }
        let (sector, block, extra) = (head.le32(0x168), head.le32(0x178), head.le32(0x17c));
        if u64::from(sector) != SECTOR {
            return unsupported(0x168, format!("sectors of {sector} bytes are not read"));
        }
        if u64::from(block) != BLOCK {
            return unsupported(0x178, format!("blocks of {block} bytes are not read"));
        }
        // VirtualBox finds these bytes before each block, and QEMU ignores the field.
        if extra != 0 {
            return unsupported(
                0x17c,
                format!("blocks with {extra} bytes of their own are not read"),
            );
        }
        for (at, name) in [(LINK_AT, "link"), (PARENT_AT, "parent")] {
            if head.bytes()[at..at + 16] != [0; 16] {
                let reason = format!("names another disk ({name} UUID), which is not read");
                return unsupported(at as u64, reason);
            }
        }
        let (size, blocks) = (head.le64(0x170), u64::from(head.le32(0x180)));
        if blocks > MAX_BLOCKS {
            return unsupported(0x180, format!("more than {MAX_BLOCKS} blocks are not read"));
        }
        if size > MAX_BLOCKS * BLOCK {
            return unsupported(0x170, format!("virtual size {size} is too large"));
        }
        let size = size.next_multiple_of(SECTOR);
        let needed = size.div_ceil(BLOCK);
        if needed > blocks {
            return Err(file.corrupt("is larger than its table").at(0x170));
        }
        let table = Table { offset: map, length: needed * 4, entry: Entry::Le32 };
        check_inside(file, table.offset, table.length, "table")?;
        let whole = Table { length: blocks * 4, ..table };
        check_empty(file, size, whole, |entry| entry < DISCARDED)?;
        Ok(Self { size, table, data })
    }
}

/// Size of a block in bytes. QEMU reads no other.
pub(super) const BLOCK: u64 = 1 << 20;

const HEADER: usize = 512;
const SECTOR: u64 = 512;
const SIGNATURE_AT: usize = 0x40;
const LINK_AT: usize = 0x1a8;
const PARENT_AT: usize = 0x1b8;
/// Version 1.1.
const VERSION: u32 = 0x0001_0001;
/// Entry of a discarded block. The entry after it means a block that was never written. Both are
/// zero.
pub(super) const DISCARDED: u64 = 0xffff_fffe;
/// Limit of QEMU.
const MAX_BLOCKS: u64 = 0x3fff_ffff;

const DYNAMIC: u32 = 1;
const STATIC: u32 = 2;
const UNDO: u32 = 3;
const DIFFERENCE: u32 = 4;
