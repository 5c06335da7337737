//! The superblock of EROFS, which may have a CRC-32C.
//!
//! | offset from 1024 on | length | field, numbers in little endian |
//! |--:|--:|---|
//! | 0 | 4 | magic bytes |
//! | 4 | 4 | checksum from here to the end of the first block, with zeros in this field |
//! | 8 | 4 | features, of which bit 0 says that there is a checksum |
//! | 12 | 1 | size of a block as a power of two |

use crc_fast::{CrcAlgorithm, Digest};

use crate::finding::{Finding, FindingKind};
use crate::tally::{Tally, of_bytes};

/// Verifies the superblock. The rest of the file system has no checksums.
pub(super) fn verify(tally: &mut Tally<'_, '_>) -> crate::Result<()> {
    let bytes = match tally.window.read(OFFSET, 64 << 10) {
        Ok(bytes) => bytes,
        Err(error) => {
            tally.finding(of_bytes(error)?);
            return Ok(());
        }
    };
    let number = |at: usize| {
        let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
        field.map_or(0, |field| u32::from_le_bytes(*field))
    };
    let bits = u32::from(bytes.get(12).copied().unwrap_or_default());
    let block = 1_usize.checked_shl(bits).filter(|size| (512..=64 << 10).contains(size));
    let Some(block) = block else {
        let reason = format!("blocks of 2^{bits} bytes");
        tally.finding(Finding::new(FindingKind::Damaged, NAME, OFFSET, reason));
        return Ok(());
    };
    if number(8) & 1 == 0 {
        tally.remark("the superblock has no checksum");
        return Ok(());
    }
    // A block that does not reach past the beginning of the superblock is followed by the next ones.
    let length = if block > OFFSET as usize { block - OFFSET as usize } else { block };
    let Some(covered) = bytes.get(..length) else {
        let reason = "it lies past the end";
        tally.finding(Finding::new(FindingKind::Damaged, NAME, OFFSET, reason));
        return Ok(());
    };
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, 0xffff_ffff);
    digest.update(&covered[..4]);
    digest.update(&[0; 4]);
    digest.update(&covered[8..]);
    let (computed, stored) = (!(digest.finalize() as u32), number(4));
    if computed == stored {
        tally.matched(NAME, 1, length as u64);
    } else {
        let reason = format!("crc32c {computed:#010x}, stored {stored:#010x}");
        let finding = Finding::new(FindingKind::Mismatch, NAME, OFFSET, reason);
        tally.finding(Finding { length: length as u64, ..finding });
    }
    tally.row.unprotected = Some(tally.window.size().saturating_sub(length as u64));
    Ok(())
}

const NAME: &str = "superblock";
const OFFSET: u64 = 1024;
