//! VirtualBox disks: a map of blocks.

use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Entry, check_inside, for_each_entry};
use crate::formats::named::read_head;
use crate::probe::Format;
use crate::storage::HostFile;

pub(crate) fn examine(file: &HostFile) -> Result<()> {
    let head = read_head(file, Format::Vdi, b"\x7f\x10\xda\xbe", 64, 512)?;
    if !matches!(head.le32(0x4c), VDI_DYNAMIC | VDI_STATIC) {
        let reason = "is a difference to another disk, which is not read";
        return Err(file.error(ErrorKind::Unsupported, reason));
    }
    let (map, data) = (u64::from(head.le32(0x154)), u64::from(head.le32(0x158)));
    let (size, block) = (head.le64(0x170), u64::from(head.le32(0x178)));
    for_each_entry(file, map, u64::from(head.le32(0x180)), Entry::Le32, |index, entry| {
        if entry >= VDI_DISCARDED {
            return Ok(());
        }
        let length = block.min(size.saturating_sub(index * block));
        check_inside(file, data + entry * block, length, "block")
    })
}

const VDI_DYNAMIC: u32 = 1;
const VDI_STATIC: u32 = 2;
/// First entry value without data, for a block that was discarded or never written.
const VDI_DISCARDED: u64 = 0xffff_fffe;
