//! Bochs disks: extents, each with its bitmap.

use super::fields::{Entry, check_inside, for_each_entry, whole_sectors};
use super::named::read_head;
use crate::error::Result;
use crate::probe::Format;
use crate::storage::HostFile;

/// An extent may end after its last written sector. Its bitmap shows which sectors are present.
pub(super) fn examine(file: &HostFile) -> Result<()> {
    let head = read_head(file, Format::Bochs, b"Bochs Virtual HD Image", 0, 512)?;
    let (start, count) = (u64::from(head.le32(68)), u64::from(head.le32(72)));
    let (bitmap, extent) = (u64::from(head.le32(76)), u64::from(head.le32(80)));
    if bitmap > MAX_BITMAP {
        return Err(file.corrupt("has impossible sizes in its header"));
    }
    let round_up = |bytes: u64| bytes.div_ceil(512) * 512;
    let stride = round_up(bitmap) + round_up(extent);
    let data = start + count * 4;
    whole_sectors(file)?;
    for_each_entry(file, start, count, Entry::Le32, |_, entry| {
        if entry == u64::from(u32::MAX) {
            return Ok(());
        }
        // An entry may lead past 2^64, which is also past the end of the file.
        let offset = data.saturating_add(stride.saturating_mul(entry));
        if offset.saturating_add(stride) <= file.size() {
            return Ok(());
        }
        check_inside(file, offset, round_up(bitmap), "bitmap")?;
        let mut bits = vec![0; bitmap as usize];
        file.read_exact_at(&mut bits, offset)?;
        let Some(byte) = bits.iter().rposition(|byte| *byte != 0) else { return Ok(()) };
        let sectors = byte as u64 * 8 + u64::from(8 - bits[byte].leading_zeros());
        check_inside(file, offset + round_up(bitmap), sectors.min(extent / 512) * 512, "sector")
    })
}

/// Maximum size of a bitmap in bytes, for an extent of 256 MiB. Bochs creates extents of about 1 MiB.
const MAX_BITMAP: u64 = 64 << 10;
