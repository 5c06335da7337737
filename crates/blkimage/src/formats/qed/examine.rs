//! Check of an image before qemu-nbd reads it: a backing file and two levels of tables.

use crate::error::Result;
use crate::formats::fields::{Budget, Entry, check_inside, for_each_entry};
use crate::formats::named::{Backing, Named, read_head};
use crate::probe::Format;
use crate::storage::HostFile;

pub(in crate::formats) fn examine(file: &HostFile) -> Result<Named> {
    let head = read_head(file, Format::Qed, b"QED\0", 0, 64)?;
    let (cluster, table, features) = (head.le32(4), head.le32(8), head.le64(16));
    let is_sane = cluster.is_power_of_two()
        && (4096..=64 << 20).contains(&cluster)
        && table.is_power_of_two()
        && table <= 16;
    if !is_sane {
        return Err(file.corrupt("has impossible sizes in its header"));
    }
    let size = head.le64(48);
    let cluster = u64::from(cluster);
    let entries = cluster * u64::from(table) / 8;
    let mut budget = Budget::new(file);
    for_each_entry(file, head.le64(40), entries, Entry::Le64, |table, offset| {
        if offset == 0 {
            return Ok(());
        }
        budget.take(entries * 8)?;
        for_each_entry(file, offset, entries, Entry::Le64, |index, offset| {
            // 0 is an unallocated cluster, 1 is a zero cluster.
            if offset <= 1 {
                return Ok(());
            }
            let guest = (table * entries + index).saturating_mul(cluster);
            check_inside(file, offset, cluster.min(size.saturating_sub(guest)), "cluster")
        })
    })?;
    if features & QED_BACKING == 0 {
        return Ok(Named::default());
    }
    let name = head.name("backing file", u64::from(head.le32(56)), head.le32(60))?;
    let format = (features & QED_BACKING_RAW != 0).then_some(Format::Raw);
    Ok(Named { backing: Some(Backing { name, format }), ..Named::default() })
}

const QED_BACKING: u64 = 1 << 0;
const QED_BACKING_RAW: u64 = 1 << 2;
