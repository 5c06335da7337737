//! The formats of images: each opens a file as a [`Layer`](crate::layer::Layer) of a chain.
//!
//! A format that is read here is a folder, its `mod` and its line in [`open`]. Everything else is left to
//! a program that [`served`] runs. Beside the formats lies what they share: windows of their tables,
//! decoders of compressed clusters.

mod bochs;
pub(crate) mod decompress;
mod examine;
mod fields;
mod named;
mod parallels;
mod qcow1;
pub(crate) mod qcow2;
mod qed;
mod raw;
mod served;
pub(crate) mod table_cache;
mod vdi;
mod vmdk;
mod vpc;

use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::error::Result;
use crate::probe::Format;

/// Opens a file as an image of its format.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    match image.format {
        Format::Raw => Ok(raw::open(chain, image)),
        Format::Qcow2 => qcow2::open(chain, image),
        _ => served::open(chain, image),
    }
}

/// Whether images of a format have snapshots that are read here.
pub(crate) fn has_snapshots(format: Format) -> bool {
    format == Format::Qcow2
}
