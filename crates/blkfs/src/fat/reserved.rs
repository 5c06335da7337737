//! The reserved sectors of FAT32: the backup boot sector and the FS information sector.

use super::boot::{self, BootSector};
use super::clusters::{Report, Structure};
use crate::bytes::le32_at;
use crate::volume::Volume;

/// Reports the owners of the sectors before the clusters.
pub(super) fn owners(boot: &BootSector, report: &mut Report<'_>) {
    let mut special = [
        Some((0, "boot sector")),
        boot.information.map(|offset| (offset, "FS information sector")),
        boot.backup.map(|offset| (offset, "backup boot sector")),
    ];
    special.sort_unstable();
    let mut end = 0;
    for (offset, name) in special.into_iter().flatten() {
        report.metadata("reserved sectors", end, offset);
        report.metadata(name, offset, offset + boot.sector_size);
        end = offset + boot.sector_size;
    }
    report.metadata("reserved sectors", end, boot.table.start);
    report.metadata("FAT", boot.table.start, boot.table.end());
}

/// Verifies the backup boot sector and the FS information sector.
pub(super) fn check(volume: &Volume, boot: &BootSector, report: &mut Report<'_>) {
    if let Some(offset) = boot.backup {
        check_backup(volume, offset, report);
    }
    if let Some(offset) = boot.information {
        check_information(volume, offset, report);
    }
}

fn check_backup(volume: &Volume, offset: u64, report: &mut Report<'_>) {
    let structure = Structure::new("backup boot sector", offset);
    match difference(volume, offset) {
        Err(error) => report.failed(structure, &error),
        Ok(Difference::Bytes(count)) => {
            let reason = format!("{count} bytes differ from the boot sector");
            report.mismatch(structure, boot::SIZE as u64, reason);
        }
        Ok(Difference::None | Difference::Code) => {
            report.matched(structure.name, 1, boot::SIZE as u64);
        }
    }
}

fn check_information(volume: &Volume, offset: u64, report: &mut Report<'_>) {
    let structure = Structure::new("FS information sector", offset);
    let bytes = match volume.read(offset, boot::SIZE) {
        Ok(bytes) => bytes,
        Err(error) => return report.failed(structure, &error),
    };
    match SIGNATURES.iter().find(|(at, value)| le32_at(&bytes, *at) != Some(*value)) {
        None => report.matched(structure.name, 1, boot::SIZE as u64),
        Some((at, value)) => {
            let stored = le32_at(&bytes, *at).unwrap_or_default();
            let reason = format!("signature {value:#010x}, stored {stored:#010x}");
            report.mismatch(structure, boot::SIZE as u64, reason);
        }
    }
}

/// How a backup boot sector differs from the boot sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// In nothing, or only in the bits for the state, which systems set only in the first one.
    None,
    /// In the whole code, as after the installation of a boot loader, which does not write the backup.
    Code,
    /// In this number of bytes.
    Bytes(usize),
}

/// Compares the backup boot sector at an offset with the boot sector.
///
/// # Errors
///
/// Fails if one cannot be read.
pub(super) fn difference(volume: &Volume, offset: u64) -> crate::error::Result<Difference> {
    let (main, backup) = (volume.read(0, boot::SIZE)?, volume.read(offset, boot::SIZE)?);
    Ok(compare(&main, &backup))
}

fn compare(main: &[u8], backup: &[u8]) -> Difference {
    let (mut fields, mut code) = (0, 0);
    for (at, _) in main.iter().zip(backup).enumerate().filter(|(_, (a, b))| a != b) {
        match at {
            STATE => {}
            0..3 | CODE.. => code += 1,
            _ => fields += 1,
        }
    }
    match (fields, code) {
        (0, 0) => Difference::None,
        (0, MIN_CODE..) => Difference::Code,
        _ => Difference::Bytes(fields + code),
    }
}

/// Offset of the bits for the state of the volume.
const STATE: usize = 0x41;

/// Offset of the code.
const CODE: usize = 0x5a;

/// Number of differing bytes of code from which on they are another program rather than damage.
const MIN_CODE: usize = 48;

/// Offsets and values of the signatures of an FS information sector.
const SIGNATURES: [(usize, u32); 3] = [(0, 0x4161_5252), (484, 0x6141_7272), (508, 0xaa55_0000)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_loaders_and_states_are_no_damage() {
        let main = [0x11; boot::SIZE];
        let with = |range: std::ops::Range<usize>| {
            let mut backup = main;
            backup[range].fill(0x22);
            compare(&main, &backup)
        };
        assert_eq!(with(0..0), Difference::None);
        assert_eq!(with(STATE..STATE + 1), Difference::None);
        assert_eq!(with(CODE..boot::SIZE - 2), Difference::Code);
        assert_eq!(with(300..301), Difference::Bytes(1));
        assert_eq!(with(0x20..0x24), Difference::Bytes(4));
        assert_eq!(with(3..boot::SIZE), Difference::Bytes(boot::SIZE - 4));
    }
}
