//! Compares chunks, devices and device extents, each of which refers to the other two.

use std::collections::BTreeMap;

use super::space::Space;
use crate::superblock::DeviceItem;
use crate::tree::object;
use crate::verify::finding::Subject;
use crate::verify::job::Job;

pub(super) fn compare(job: &Job<'_>, space: &Space) {
    let items = job.filesystem.device_items();
    let mut left = space.dev_extents.clone();
    let mut used: BTreeMap<u64, u64> = BTreeMap::new();
    for chunk in job.filesystem.chunks().iter() {
        let report = |reason: String| {
            job.report_contradiction(Subject::Chunk, Some(chunk.logical), chunk.length, reason);
        };
        if !space.groups.contains_key(&chunk.logical) {
            report("there is no block group of it".into());
        }
        for stripe in &chunk.stripes {
            let (device, offset) = (stripe.device, stripe.offset);
            match items.get(&device) {
                None => report(format!("a stripe is on device {device}, which there is none of")),
                Some(item) if item.uuid != stripe.device_uuid => report(format!(
                    "a stripe is on device {device} with the UUID {}, which has {}",
                    stripe.device_uuid, item.uuid
                )),
                Some(_) => {}
            }
            let expected = (chunk.stripe_share(), chunk.logical);
            match left.remove(&(device, offset)) {
                Some(found) if found == expected => {}
                Some((length, logical)) => report(format!(
                    "a stripe is at {offset} of device {device}, whose tree has {length} bytes of \
                     the chunk {logical} there"
                )),
                None => report(format!(
                    "a stripe is at {offset} of device {device}, whose tree has none there, or \
                     another chunk has it"
                )),
            }
        }
    }
    for ((device, offset), (length, logical)) in left {
        let reason = format!(
            "{length} bytes at {offset} of device {device} are said to be of it, and are not"
        );
        job.report_contradiction(Subject::Chunk, Some(logical), 0, reason);
    }
    let mut end = (0, 0);
    for (&(device, offset), &(length, logical)) in &space.dev_extents {
        if end.0 == device && end.1 > offset {
            let reason = format!("another one is at {offset} of device {device} as well");
            job.report_contradiction(Subject::Chunk, Some(logical), length, reason);
        }
        end = (device, offset.saturating_add(length));
        let sum = used.entry(device).or_default();
        *sum = sum.saturating_add(length);
        if let Some(item) = items.get(&device).filter(|item| end.1 > item.total_bytes) {
            let reason =
                format!("ends at {} of device {device}, which has {}", end.1, item.total_bytes);
            job.report_contradiction(Subject::Chunk, Some(logical), length, reason);
        }
    }
    compare_items(job, items, &used);
}

fn compare_items(job: &Job<'_>, items: &BTreeMap<u64, DeviceItem>, used: &BTreeMap<u64, u64>) {
    let superblock = job.filesystem.superblock();
    let tree = |reason: String| {
        job.report_contradiction(Subject::Tree(object::CHUNK_TREE), None, 0, reason);
    };
    for (device, item) in items {
        let found = used.get(device).copied().unwrap_or_default();
        if item.bytes_used != found {
            tree(format!(
                "device {device} has {} bytes in use, its extents have {found}",
                item.bytes_used
            ));
        }
    }
    let total = items.values().fold(0u64, |sum, item| sum.saturating_add(item.total_bytes));
    if superblock.total_bytes != total {
        tree(format!("devices have {total} bytes, the superblock says {}", superblock.total_bytes));
    }
    if superblock.device_count != items.len() as u64 {
        let count = superblock.device_count;
        tree(format!("there are {} devices, the superblock says {count}", items.len()));
    }
    for device in job.filesystem.devices().keys() {
        let own = job.filesystem.own_item(*device);
        match (items.get(device), own) {
            (None, _) if *device == 0 && job.filesystem.is_replacing() => {}
            (None, _) => tree(format!("device {device} is not one of this file system")),
            (Some(item), Some(own)) if item != own && own.fsid == superblock.metadata_uuid => {
                tree(format!("device {device} says something else of itself in its superblock"));
            }
            _ => {}
        }
    }
}
