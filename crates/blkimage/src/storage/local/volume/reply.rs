//! Turns the reply of a file system to a query of extents into origins.

use std::ops::Range;

use crate::identity::VolumeId;
use crate::origin::{Origin, OriginKind, Place};
use crate::sys::{Reply, VolumeExtent};

/// Returns the origins of `range`, or of the start of it if the reply had no room for more.
///
/// A reply whose extents do not follow each other is not trusted at all.
pub(super) fn origins(reply: &Reply, volume: VolumeId, range: Range<u64>) -> Vec<Origin> {
    let other = |range: Range<u64>| Origin {
        offset: range.start,
        length: range.end - range.start,
        kind: OriginKind::Other,
    };
    let mut origins = Vec::new();
    let (mut position, mut last_end) = (range.start, 0);
    for extent in &reply.extents {
        let end = extent.logical.checked_add(extent.length);
        let Some(end) = end.filter(|end| last_end <= extent.logical && extent.logical < *end)
        else {
            return vec![other(range)];
        };
        last_end = end;
        let (start, end) = (extent.logical.max(position), end.min(range.end));
        if start >= end {
            continue;
        }
        if start > position {
            other(position..start).append_to(&mut origins);
        }
        let distance = start - extent.logical;
        let kind = match address(extent) {
            Some(address) => OriginKind::Stored(Place::on_volume(volume, address + distance)),
            None => OriginKind::Other,
        };
        Origin { offset: start, length: end - start, kind }.append_to(&mut origins);
        position = end;
    }
    let is_cut = reply.is_full && position > range.start;
    if position < range.end && !is_cut {
        other(position..range.end).append_to(&mut origins);
    }
    origins
}

/// Returns the address of bytes that are on the volume as they are, in an extent that several files have.
fn address(extent: &VolumeExtent) -> Option<u64> {
    let is_aligned = (extent.logical | extent.physical | extent.length).is_multiple_of(SECTOR);
    let is_plain = extent.flags & !LAST == SHARED && is_aligned && extent.physical > 0;
    let is_on_volume = extent.physical.checked_add(extent.length).is_some();
    (is_plain && is_on_volume).then_some(extent.physical)
}

/// `FIEMAP_EXTENT_LAST`, which says nothing about the bytes.
const LAST: u32 = 0x1;

/// `FIEMAP_EXTENT_SHARED`.
const SHARED: u32 = 0x2000;

/// Every extent of a file system is a multiple of this, except in its metadata.
const SECTOR: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Volume;

    const K: u64 = 1024;

    fn extent(logical: u64, physical: u64, length: u64, flags: u32) -> VolumeExtent {
        VolumeExtent { logical, physical, length, flags }
    }

    fn volume() -> VolumeId {
        Volume::Xfs(7).into()
    }

    /// Returns length in KiB and address of each origin of `range`, which is in KiB. The extents are
    /// `(logical, physical, length, flags)`.
    fn found(
        extents: &[(u64, u64, u64, u32)],
        is_full: bool,
        range: Range<u64>,
    ) -> Vec<(u64, Option<u64>)> {
        let extents = extents.iter();
        let extents = extents.map(|it| extent(it.0 * K, it.1 * K, it.2 * K, it.3));
        let reply = Reply { extents: extents.collect(), is_full };
        let origins = origins(&reply, volume(), range.start * K..range.end * K);
        let mut end = range.start * K;
        let mut list = Vec::new();
        for origin in origins {
            assert_eq!(origin.offset, end);
            end = origin.end();
            list.push((origin.length / K, address(origin.kind)));
        }
        list
    }

    fn address(kind: OriginKind) -> Option<u64> {
        let is_at = |at: &u64| kind == OriginKind::Stored(Place::on_volume(volume(), at * K));
        let address = (0..10_000).find(is_at);
        assert!(address.is_some() || kind == OriginKind::Other);
        address
    }

    #[test]
    fn shared_extents_have_a_place() {
        let extents = [(0, 100, 8, SHARED), (8, 108, 4, SHARED), (16, 300, 8, SHARED | LAST)];
        let all = [(12, Some(100)), (4, None), (8, Some(300)), (76, None)];
        assert_eq!(found(&extents, false, 0..100), all);
        assert_eq!(found(&extents, false, 6..20), [(6, Some(106)), (4, None), (4, Some(300))]);
        assert_eq!(found(&extents, false, 20..21), [(1, Some(304))]);
        assert_eq!(found(&[], false, 5..9), [(4, None)]);
        // More extents may follow.
        assert_eq!(found(&extents, true, 0..100), all[..3]);
        assert_eq!(found(&[], true, 5..9), [(4, None)]);
        assert_eq!(found(&extents, true, 50..60), [(10, None)]);
    }

    #[test]
    fn other_extents_have_none() {
        // UNKNOWN, DELALLOC, ENCODED, DATA_ENCRYPTED, NOT_ALIGNED, DATA_INLINE, DATA_TAIL, UNWRITTEN, MERGED, and unknown ones.
        for bit in (1..32).filter(|bit| 1 << bit != SHARED) {
            let extents = [(0, 100, 8, SHARED | 1 << bit), (8, 108, 8, SHARED)];
            assert_eq!(found(&extents, false, 0..16), [(8, None), (8, Some(108))]);
        }
        assert_eq!(found(&[(0, 100, 8, LAST), (8, 0, 8, SHARED)], false, 0..16), [(16, None)]);
    }

    #[test]
    fn replies_in_disorder_are_not_believed() {
        let first = (0, 100, 8, SHARED);
        for extents in [
            [first, (8, 200, 0, SHARED)],
            [first, (4, 200, 8, SHARED)],
            [(8, 200, 8, SHARED), first],
            [first, first],
        ] {
            assert_eq!(found(&extents, false, 0..16), [(16, None)], "{extents:?}");
        }
    }

    #[test]
    fn hostile_numbers() {
        let whole = |extent: VolumeExtent, range: Range<u64>| {
            let reply = Reply { extents: vec![extent], is_full: false };
            let origins = origins(&reply, volume(), range.clone());
            let [origin] = origins.as_slice() else { return false };
            assert_eq!(origin.offset..origin.end(), range);
            origin.kind == OriginKind::Other
        };
        let end = u64::MAX - 511;
        for extent in [
            extent(512, 512, u64::MAX, SHARED),
            extent(u64::MAX, 512, 512, SHARED),
            extent(0, end, 1024, SHARED),
            extent(0, 1, 1024, SHARED),
            extent(0, 512, 1023, SHARED),
            extent(1, 512, 1024, SHARED),
        ] {
            assert!(whole(extent, 0..1000), "{extent:?}");
            assert!(whole(extent, 1_000_000..u64::MAX), "{extent:?}");
        }
        assert!(!whole(extent(0, 512, end - 512, SHARED), 0..end - 512));
    }
}
