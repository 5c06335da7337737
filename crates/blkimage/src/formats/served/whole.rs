//! Checks that images of formats that are not native are whole. QEMU reads zeros where they were cut off.

use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Entry, Head, check_inside, for_each_entry};
use crate::hint::Hint;
use crate::probe::Format;
use crate::storage::HostFile;

/// Fails if an image was cut off, as far as that can be seen.
pub(super) fn check(file: &HostFile, format: Format) -> Result<()> {
    match format {
        Format::Bochs => check_bochs(file),
        Format::Luks => {
            check_luks(file)?;
            whole_sectors(file)
        }
        _ => Ok(()),
    }
}

/// Offset of the version of LUKS, and the length up to its end.
const LUKS_VERSION_AT: usize = 6;
const LUKS_HEAD: usize = 8;

/// Fails if the version is one that QEMU does not read. This needs no secret.
fn check_luks(file: &HostFile) -> Result<()> {
    let head = file.read_head(LUKS_HEAD)?;
    match head.get(LUKS_VERSION_AT..) {
        Some([high, low]) if u16::from_be_bytes([*high, *low]) != 1 => {
            let version = u16::from_be_bytes([*high, *low]);
            let reason = format!(
                "is encrypted with LUKS{version}, and only LUKS1 is read: open it with cryptsetup, and read the device"
            );
            let error = file.error(ErrorKind::Unsupported, reason);
            Err(error.at(LUKS_VERSION_AT as u64).with_hint(Hint::Raw))
        }
        _ => Ok(()),
    }
}

/// Fails unless the file size is a multiple of a sector. QEMU rounds up, and reads zeros
/// in the last sector.
fn whole_sectors(file: &HostFile) -> Result<()> {
    if file.size().is_multiple_of(512) {
        return Ok(());
    }
    let reason = "ends within a sector: it was probably cut off";
    Err(file.corrupt(reason).at(file.size()))
}

/// Checks the extents of a disk, each with its bitmap.
///
/// An extent may end after its last written sector. Its bitmap shows which sectors are present.
fn check_bochs(file: &HostFile) -> Result<()> {
    if !file.read_head(MAGIC.len())?.starts_with(MAGIC) {
        return Err(file.error(ErrorKind::Format, "is not a bochs image"));
    }
    let head = Head::read(file, 0, 512)?;
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

const MAGIC: &[u8] = b"Bochs Virtual HD Image";

/// Maximum size of the bitmap of a Bochs extent, for one of 256 MiB. Bochs creates extents of about 1 MiB.
/// Limit in bytes.
const MAX_BITMAP: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::builder::Bytes;

    fn checked(image: Bytes, format: Format) -> Result<()> {
        let file = HostFile::new("x".into(), Box::new(crate::Memory(image.0)), Default::default());
        check(&file, format)
    }

    fn cut_off(image: Bytes) -> bool {
        checked(image, Format::Bochs)
            .is_err_and(|error| error.reason().contains("past the end of the file"))
    }

    #[test]
    fn offset_past_2_to_the_64() {
        // With extents of 4 GiB and bitmaps of 512 bytes, the product wraps to just before
        // the end of the catalog.
        let (catalog, entry) = (262_652, u32::MAX - 511);
        let image = |entry| {
            Bytes::new(514 * 512)
                .put(0, b"Bochs Virtual HD Image")
                .le32(68, catalog)
                .le32(72, 1)
                .le32(76, 512)
                .le32(80, u32::MAX)
                .le32(catalog as usize, entry)
        };
        assert!(cut_off(image(entry)));
        assert!(cut_off(image(u32::MAX - 1)));
        checked(image(u32::MAX), Format::Bochs).unwrap();
    }

    #[test]
    fn images_that_end_within_a_sector() {
        let luks = |size| Bytes::new(size).put(6, &[0, 1]);
        checked(luks(1024), Format::Luks).unwrap();
        let error = checked(luks(1023), Format::Luks).unwrap_err();
        assert!(error.reason().contains("within a sector"), "{error}");
    }
}
