//! The image formats. Each opens a file as a [`Layer`](crate::layer::Layer) of a chain.
//!
//! A native format needs a folder, its `mod` and its line in [`open`]. All other formats are left to a
//! program that [`served`] runs. This folder also holds the code that formats share: windows of tables
//! and decoders of compressed clusters.

mod block_table;
#[cfg(feature = "qemu-nbd")]
mod bochs;
#[cfg(test)]
mod builder;
pub(crate) mod decompress;
#[cfg(feature = "qemu-nbd")]
mod examine;
// Native formats use only a part of it.
#[cfg_attr(not(feature = "qemu-nbd"), allow(dead_code))]
mod fields;
#[cfg(feature = "qemu-nbd")]
mod named;
mod parallels;
mod qcow1;
pub(crate) mod qcow2;
mod qed;
mod raw;
#[cfg(feature = "qemu-nbd")]
mod served;
pub(crate) mod table_cache;
mod two_level;
mod vdi;
mod vhdx;
mod vmdk;
mod vpc;

use crate::chain::{Candidate, Chain, OpenedLayer};
#[cfg(not(feature = "qemu-nbd"))]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::probe::Format;

/// Opens a file as an image of its format.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    match image.format {
        Format::Raw => Ok(raw::open(chain, image)),
        Format::Qcow2 => qcow2::open(chain, image),
        Format::Vdi => vdi::open(chain, image),
        Format::Vpc => vpc::open(chain, image),
        Format::Parallels => parallels::open(chain, image),
        Format::Qcow1 => qcow1::open(chain, image),
        Format::Qed => qed::open(chain, image),
        Format::Vmdk => vmdk::open(chain, image),
        Format::Vhdx => vhdx::open(chain, image),
        #[cfg(feature = "qemu-nbd")]
        _ => served::open(chain, image),
        #[cfg(not(feature = "qemu-nbd"))]
        other => {
            let reason = format!("is a {other} image, which this build does not read");
            Err(image.file.error(ErrorKind::Unsupported, reason))
        }
    }
}

/// Returns whether snapshots of images of this format can be read.
pub(crate) fn has_snapshots(format: Format) -> bool {
    format == Format::Qcow2
}
