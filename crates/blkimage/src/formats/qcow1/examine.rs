//! Check of an image before qemu-nbd reads it: a backing file and two levels of tables.

use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Budget, Entry, check_inside, for_each_entry};
use crate::formats::named::{Backing, Named, read_head};
use crate::probe::Format;
use crate::storage::HostFile;

pub(in crate::formats) fn examine(file: &HostFile) -> Result<Named> {
    let head = read_head(file, Format::Qcow1, b"QFI\xfb\0\0\0\x01", 0, 48)?;
    if head.be32(36) != 0 {
        return Err(file.error(ErrorKind::Unsupported, "is encrypted, which is not read"));
    }
    let [cluster_bits, l2_bits] = [head.bytes()[32], head.bytes()[33]];
    let size = head.be64(24);
    if !(9..=16).contains(&cluster_bits) || !(6..=13).contains(&l2_bits) || size >= 1 << 62 {
        return Err(file.corrupt("has impossible sizes in its header"));
    }
    let (cluster, entries) = (1_u64 << cluster_bits, 1_u64 << l2_bits);
    let mut budget = Budget::new(file);
    let tables = size.div_ceil(cluster * entries);
    for_each_entry(file, head.be64(40), tables, Entry::Be64, |table, offset| {
        if offset == 0 {
            return Ok(());
        }
        budget.take(entries * 8)?;
        for_each_entry(file, offset, entries, Entry::Be64, |index, entry| {
            if entry == 0 {
                return Ok(());
            }
            let guest = (table * entries + index).saturating_mul(cluster);
            if entry >> 63 == 0 {
                return check_inside(
                    file,
                    entry,
                    cluster.min(size.saturating_sub(guest)),
                    "cluster",
                );
            }
            // Raw deflate has no checksum, so missing bytes would go unnoticed.
            let length = entry >> (63 - cluster_bits) & (cluster - 1);
            check_inside(file, entry & ((1 << (63 - cluster_bits)) - 1), length, "cluster")
        })
    })?;
    let offset = head.be64(8);
    if offset == 0 {
        return Ok(Named::default());
    }
    let name = head.name("backing file", offset, head.be32(16))?;
    Ok(Named { backing: Some(Backing { name, format: None }), ..Named::default() })
}
