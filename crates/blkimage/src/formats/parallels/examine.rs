//! Parallels disks: a table of clusters.

use crate::error::Result;
use crate::formats::fields::{Entry, Head, check_inside, for_each_entry};
use crate::formats::named::not_a;
use crate::probe::Format;
use crate::storage::HostFile;

pub(crate) fn examine(file: &HostFile) -> Result<()> {
    let head = Head::read(file, 0, 64)?;
    let unit = if head.starts_with(b"WithoutFreeSpace") {
        1
    } else if head.starts_with(b"WithouFreSpacExt") {
        u64::from(head.le32(28))
    } else {
        return Err(not_a(file, Format::Parallels));
    };
    let cluster = u64::from(head.le32(28));
    let size = if unit == 1 { head.le64(36) & 0xffff_ffff } else { head.le64(36) };
    let entries = u64::from(head.le32(32));
    // Past the end of the table, QEMU reads zeros up to any size.
    if size > entries * cluster {
        return Err(file.corrupt("is larger than its table").at(36));
    }
    for_each_entry(file, 64, entries, Entry::Le32, |index, entry| {
        if entry == 0 {
            return Ok(());
        }
        let sectors = cluster.min(size.saturating_sub(index * cluster));
        check_inside(file, entry.saturating_mul(unit * 512), sectors * 512, "cluster")
    })
}
