//! The image formats. Each opens a file as a [`Layer`](crate::layer::Layer) of a chain.
//! docs/inside/decisions/native-formats.md says why they are not left to QEMU.
//!
//! A native format needs a folder, its `mod` and its line in [`open`]. All other formats are left to a
//! program that [`served`] runs. This folder also holds the code that formats share: windows of tables
//! and decoders of compressed clusters.

mod block_table;
#[cfg(test)]
mod builder;
pub(crate) mod decompress;
mod dmg;
mod empty;
mod ewf;
mod fields;
mod parallels;
mod partclone;
mod qcow1;
pub(crate) mod qcow2;
mod qed;
mod raw;
mod rbd;
#[cfg(feature = "qemu-nbd")]
mod served;
mod simg;
pub(crate) mod table_cache;
mod two_level;
mod vdi;
pub(crate) mod vhdx;
pub(crate) mod vmdk;
mod vpc;

use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::check::{Summary, Visitor};
use crate::error::{ErrorKind, Result};
#[cfg(feature = "qemu-nbd")]
use crate::hint::Hint;
use crate::options::OpenOptions;
#[cfg(feature = "qemu-nbd")]
use crate::options::Reader;
use crate::probe::Format;
use crate::storage::HostFile;

/// Opens a file as an image of its format.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    #[cfg(feature = "qemu-nbd")]
    if chain.options.reader == Reader::Qemu && image.format != Format::Raw {
        if matches!(image.format, Format::Ewf | Format::Partclone | Format::Rbd | Format::Simg) {
            let reason = format!("is of the format {}, which qemu-nbd does not read", image.format);
            return Err(image.file.error(ErrorKind::Unsupported, reason).with_hint(Hint::Reader));
        }
        return served::open(chain, image);
    }
    match open_native(chain, image) {
        Some(opened) => opened,
        #[cfg(feature = "qemu-nbd")]
        None => served::open(chain, image),
        #[cfg(not(feature = "qemu-nbd"))]
        None => {
            let reason = format!("is a {} image, which this build does not read", image.format);
            Err(image.file.error(ErrorKind::Unsupported, reason))
        }
    }
}

/// Opens a file as an image of a native format. Returns `None` if its format is not native.
fn open_native(chain: &mut Chain<'_>, image: &Candidate) -> Option<Result<OpenedLayer>> {
    Some(match image.format {
        Format::Raw => Ok(raw::open(image)),
        Format::Qcow2 => qcow2::open(chain, image),
        Format::Qcow1 => qcow1::open(chain, image),
        Format::Vdi => vdi::open(chain, image),
        Format::Vpc => vpc::open(chain, image),
        Format::Qed => qed::open(chain, image),
        Format::Parallels => parallels::open(chain, image),
        Format::Vmdk => vmdk::open(chain, image),
        Format::Vhdx => vhdx::open(chain, image),
        Format::Ewf => ewf::open(chain, image),
        Format::Partclone => partclone::open(image),
        Format::Rbd => rbd::open(image),
        Format::Simg => simg::open(image),
        Format::Dmg => dmg::open(image),
        Format::Luks | Format::Bochs | Format::Cloop => return None,
    })
}

/// Checks the structure of a file of this format. Returns `None` if the format has no checks.
pub(crate) fn check(
    file: &HostFile,
    format: Format,
    visitor: &mut dyn Visitor,
) -> Result<Option<Summary>> {
    match format {
        Format::Qcow2 => qcow2::check::check(file, visitor).map(Some),
        _ => Ok(None),
    }
}

/// Returns whether snapshots of images of this format can be read with these options.
pub(crate) fn has_snapshots(options: &OpenOptions, format: Format) -> bool {
    #[cfg(feature = "qemu-nbd")]
    if options.reader == Reader::Qemu {
        return false;
    }
    let _ = options;
    format == Format::Qcow2
}
