//! qcow, version 1, as in QEMU.
//!
//! Guest offsets are mapped to host offsets through two levels of tables ([`two_level`]), which are read
//! in windows on demand. No number in the file is trusted: tables and clusters must be inside the file.
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
use crate::formats::decompress::{Cluster, Compression};
use crate::formats::fields::check_inside;
use crate::formats::two_level::{L1Table, Rules, Tables};
use crate::layer::{GuestRange, Layer, Mapping, Purpose, Stored};
use crate::origin::{Encoding, Place};
use crate::storage::HostFile;

/// One qcow image of a chain.
struct Qcow1 {
    file: Arc<HostFile>,
    size: u64,
    geometry: Geometry,
    l1: L1Table,
    caches: LayerCaches,
}

/// Opens a file as a qcow image.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = image.file.clone();
    let Header { geometry, size, l1, backing } = Header::read(&file)?;
    let qcow1 = Qcow1 { file, size, geometry, l1, caches: chain.layer_caches() };
    let backing =
        backing.map(|name| BackingFile { name, format: None, check: None, other_name: Ok(None) });
    Ok(OpenedLayer { layer: Box::new(qcow1), backing })
}

impl Layer for Qcow1 {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        let Self { file, geometry: rules, l1, caches, .. } = self;
        Tables { file, caches, l1: *l1, rules }.map(file, range, purpose)
    }

    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        // The length is exact. Deflate has no checksum, so missing bytes might go unnoticed.
        check_inside(&self.file, stored.offset, stored.length, "compressed cluster")?;
        let size = self.geometry.cluster_size() as usize;
        let compression = Compression::Deflate;
        let cluster = Cluster { file: &self.file, stored, compression, size, least: size };
        self.caches.decompress(cluster, buf, offset as usize & (size - 1))
    }

    fn place(&self, stored: Stored, offset: u64) -> Option<Place> {
        let decoded = self.geometry.cluster_size();
        let method = Compression::Deflate.name();
        let encoding = Encoding { offset: stored.offset, length: stored.length, method, decoded };
        Some(Place::encoded(self.file.id()?, encoding, offset & (decoded - 1)))
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }

    /// A compressed cluster is always decompressed as a whole.
    fn granularity(&self) -> u64 {
        self.file.granularity().max(self.geometry.cluster_size())
    }
}
