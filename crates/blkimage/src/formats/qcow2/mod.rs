//! qcow2, versions 2 and 3, as in the specification and in QEMU.
//!
//! Guest offsets are mapped to host offsets through two levels of tables, which are read in windows
//! on demand. Reference counts are read by checks only (`check/`). No number in the file is trusted: sums are checked,
//! tables and clusters must be inside the file, and an allocation by a length from the file is always bounded by a
//! constant.

mod bitmaps;
pub(crate) mod check;
mod entry;
mod extensions;
mod header;
mod snapshot;

#[cfg(test)]
pub(crate) mod builder;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::caches::LayerCaches;
use crate::chain::{BackingFile, Candidate, Chain, OpenedLayer};
use crate::check::{Summary, Visitor};
use crate::error::{ErrorKind, Result, excerpt};
use crate::formats::decompress::{Cluster, Compression};
use crate::formats::two_level::{L1Table, Rules, Tables};
use crate::layer::{GuestRange, Layer, Mapping, Purpose, Stored};
use crate::origin::{Encoding, Place};
use crate::snapshot::Snapshot;
use crate::storage::HostFile;

use self::bitmaps::Directory;
use self::entry::Geometry;
use self::header::{Header, SnapshotTable};

/// One qcow2 image of a chain.
pub(crate) struct Qcow2 {
    file: Arc<HostFile>,
    /// External data file that holds the guest clusters, if any.
    data_file: Option<Arc<HostFile>>,
    size: u64,
    geometry: Geometry,
    compression: Compression,
    l1: L1Table,
    snapshots: SnapshotTable,
    bitmaps: Option<Directory>,
    has_stale_bitmaps: bool,
    /// Size of the active state. Old snapshots omit theirs, and have this one.
    active_size: u64,
    caches: LayerCaches,
}

/// Reads the header and checks all structures that must be valid before the image is read.
pub(crate) fn read_header(file: &HostFile) -> Result<Header> {
    let header = Header::read(file)?;
    snapshot::check(file, &header)?;
    if let Some(directory) = &header.bitmaps {
        bitmaps::check(file, directory, header.size, header.geometry().cluster_size())?;
    }
    Ok(header)
}

/// Opens a file as a qcow2 image, with its data file.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = &image.file;
    let header = read_header(file)?;
    if header.is_corrupt {
        let reason = "is marked as corrupt: what can be read may not be what was written";
        chain.warn(file.warning(reason));
    }
    let data_file = match &header.data_file {
        Some(name) => Some(chain.follow(image, "data file", name)?.0),
        None => None,
    };
    chain.add_files(data_file.iter().cloned());
    let snapshot = chain.snapshot();
    let qcow2 = Qcow2::new(file.clone(), &header, data_file, snapshot, chain.layer_caches())?;
    if snapshot.is_some() && qcow2.size != header.size {
        let reason = format!(
            "was resized after the snapshot was taken: the snapshot has {} bytes, and qemu-img \
             convert -l gives {}",
            qcow2.size, header.size
        );
        chain.warn(file.warning(reason));
    }
    let format = header.backing_format;
    let backing = header.backing_file.map(|name| BackingFile {
        name,
        format,
        check: None,
        other_name: Ok(None),
    });
    Ok(OpenedLayer { layer: Box::new(qcow2), backing })
}

impl Qcow2 {
    /// Creates a layer from the active state of the image, or of one of its snapshots.
    pub fn new(
        file: Arc<HostFile>,
        header: &Header,
        data_file: Option<Arc<HostFile>>,
        snapshot: Option<&str>,
        caches: LayerCaches,
    ) -> Result<Self> {
        let geometry = header.geometry();
        let (size, l1) = match snapshot {
            None => (header.size, header.l1),
            Some(wanted) => snapshot::find(&file, header, wanted)?,
        };
        // Entries past the virtual size map no guest bytes, and may be outside of the file.
        let needed = size.div_ceil(1 << geometry.l1_span_bits());
        let l1 = L1Table { entries: l1.entries.min(needed), ..l1 };
        let compression = header.compression;
        let (snapshots, active_size) = (header.snapshots, header.size);
        Ok(Self {
            file,
            data_file,
            size,
            geometry,
            compression,
            l1,
            snapshots,
            bitmaps: header.bitmaps,
            has_stale_bitmaps: header.has_stale_bitmaps,
            active_size,
            caches,
        })
    }

    /// Returns the file that holds the guest clusters.
    fn guest_file(&self) -> &HostFile {
        self.data_file.as_ref().unwrap_or(&self.file)
    }

    fn tables(&self) -> Tables<'_, Geometry> {
        Tables { file: &self.file, caches: &self.caches, l1: self.l1, rules: &self.geometry }
    }
}

impl Layer for Qcow2 {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        self.tables().map(self.guest_file(), range, purpose)
    }

    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        let size = self.geometry.cluster_size() as usize;
        let compression = self.compression;
        let cluster = Cluster { file: &self.file, stored, compression, size, least: size };
        self.caches.decompress(cluster, buf, offset as usize & (size - 1))
    }

    fn place(&self, stored: Stored, offset: u64) -> Option<Place> {
        let decoded = self.geometry.cluster_size();
        let method = self.compression.name();
        let encoding = Encoding { offset: stored.offset, length: stored.length, method, decoded };
        Some(Place::encoded(self.file.id()?, encoding, offset & (decoded - 1)))
    }

    fn check_structure(&self, visitor: &mut dyn Visitor) -> Result<Option<Summary>> {
        check::check(&self.file, visitor).map(Some)
    }

    fn snapshots(&self) -> Result<Option<Vec<Snapshot>>> {
        snapshot::list(&self.file, self.snapshots, self.active_size).map(Some)
    }

    fn bitmaps(&self) -> Result<Option<Vec<Bitmap>>> {
        bitmaps::list(&self.file, self.bitmaps.as_ref()).map(Some)
    }

    fn dirty_extents(&self, name: &[u8]) -> Result<Option<Vec<Range<u64>>>> {
        let directory = self.bitmaps.as_ref();
        let cluster = self.geometry.cluster_size();
        let found = bitmaps::extents(&self.file, directory, name, self.active_size, cluster)?;
        found.map(Some).ok_or_else(|| {
            let name = excerpt(name);
            let reason = match self.has_stale_bitmaps {
                true => format!("bitmap {name} is not valid: a program that does not know bitmaps wrote to the image"),
                false => format!("has no bitmap {name}"),
            };
            self.file.error(ErrorKind::Argument, reason)
        })
    }

    fn files(&self) -> Vec<&HostFile> {
        std::iter::once(&*self.file).chain(self.data_file.as_deref()).collect()
    }

    /// A compressed cluster is always decompressed as a whole.
    fn granularity(&self) -> u64 {
        let files = self.files().into_iter().map(HostFile::granularity);
        files.fold(self.geometry.cluster_size(), u64::max)
    }
}
