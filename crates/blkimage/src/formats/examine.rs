//! Checks of image headers before QEMU opens the images, format by format.
//!
//! Finds the files that a header names and rejects features that QEMU misreads or does not support.
//! QEMU reads zeros where a cluster lies past the end of its file. If the driver of a format does not
//! check for this, the tables are walked here, once, before QEMU sees them.

use super::fields::whole_sectors;
use super::named::Named;
use super::{bochs, parallels, qcow1, qed, vdi, vmdk, vpc};
use crate::error::{ErrorKind, Result};
use crate::probe::Format;
use crate::storage::HostFile;

/// Examines the header of an image before QEMU does. Fails for formats that are not left to QEMU.
pub(crate) fn examine(file: &HostFile, format: Format) -> Result<Named> {
    match format {
        Format::Vmdk => vmdk::examine(file),
        Format::Qed => qed::examine::examine(file),
        Format::Qcow1 => qcow1::examine::examine(file),
        Format::Vdi => vdi::examine::examine(file).map(|()| Named::default()),
        Format::Parallels => parallels::examine::examine(file).map(|()| Named::default()),
        Format::Vpc => vpc::examine::examine(file),
        Format::Bochs => bochs::examine(file).map(|()| Named::default()),
        Format::Vhdx | Format::Luks => whole_sectors(file).map(|()| Named::default()),
        Format::Raw | Format::Cloop | Format::Dmg => Ok(Named::default()),
        // QEMU never gets an image that was not examined.
        _ => {
            let reason = format!(
                "is a {format} image beneath one of another format, which is not read: convert the \
                 image on top with qemu-img"
            );
            Err(file.error(ErrorKind::Unsupported, reason))
        }
    }
}

#[cfg(test)]
mod tests;
