//! QEMU enhanced disks, as in their specification and in QEMU.
//!
//! Guest offsets are mapped to host offsets through two levels of tables ([`two_level`]), which are read
//! in windows on demand. An entry is the offset of a table or a cluster. No number in the file is
//! trusted.
//!
//! [`two_level`]: crate::formats::two_level

mod header;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::header::{Geometry, Header};
use crate::caches::LayerCaches;
use crate::chain::{BackingFile, Candidate, Chain, OpenedLayer};
use crate::error::Result;
use crate::formats::two_level::{L1Table, Tables};
use crate::layer::{GuestRange, Layer, Mapping, Purpose};
use crate::storage::HostFile;

/// One qed image of a chain.
struct Qed {
    file: Arc<HostFile>,
    size: u64,
    geometry: Geometry,
    l1: L1Table,
    caches: LayerCaches,
}

/// Opens a file as a qed image.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = &image.file;
    let Header { geometry, size, l1, backing, needs_check } = Header::read(file)?;
    if needs_check {
        let reason =
            "was not closed and never checked: what can be read may not be what was written";
        chain.warn(file.warning(reason));
    }
    let qed = Qed { file: file.clone(), size, geometry, l1, caches: chain.layer_caches() };
    let backing = backing.map(|(name, format)| BackingFile {
        name,
        format: format.map(|format| format.name().into()),
        check: None,
        other_name: Ok(None),
    });
    Ok(OpenedLayer { layer: Box::new(qed), backing })
}

impl Layer for Qed {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        let Self { file, geometry: rules, l1, caches, .. } = self;
        Tables { file, caches, l1: *l1, rules }.map(file, range, purpose)
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}
