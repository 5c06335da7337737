//! parallels disks: a header, a table of clusters, and the clusters.
//!
//! An image that was not closed is read with a warning, since QEMU reads it as well. Format extensions are
//! refused, except for dirty bitmaps, which do not change the content.

mod extension;
mod header;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::header::Header;
use crate::caches::LayerCaches;
use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::error::Result;
use crate::formats::block_table::{BlockTable, Run};
use crate::formats::fields::check_inside;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose};
use crate::storage::HostFile;

/// A parallels image.
struct Parallels {
    file: Arc<HostFile>,
    size: u64,
    clusters: BlockTable,
    /// Number of bytes that an entry counts in.
    unit: u64,
    /// Whether the header says that nothing was ever written.
    is_empty: bool,
    caches: LayerCaches,
}

/// Opens a file as a parallels image.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = image.file.clone();
    let Header { size, cluster, unit, table, is_open, is_empty, extension } = Header::read(&file)?;
    if let Some(offset) = extension {
        extension::check(&file, offset, cluster)?;
    }
    if is_open {
        let reason = "was not closed: what can be read may not be what was written";
        chain.warn(file.warning(reason));
    }
    let clusters = BlockTable { table, block: cluster };
    let layer = Parallels { file, size, clusters, unit, is_empty, caches: chain.layer_caches() };
    Ok(OpenedLayer { layer: Box::new(layer), backing: None })
}

impl Layer for Parallels {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        let locate = |entry| (entry != 0).then(|| entry * self.unit);
        let Run { host, length } = self.clusters.run(&self.caches, &self.file, range, locate)?;
        let Some(offset) = host else {
            return Ok(Mapping { kind: MappingKind::Below, length });
        };
        if self.is_empty {
            let reason = "is marked as empty, and has clusters";
            return Err(self.file.corrupt(reason).at(offset));
        }
        if purpose == Purpose::Read {
            check_inside(&self.file, offset, length, "cluster")?;
        }
        Ok(Mapping { kind: MappingKind::Host { file: &self.file, offset }, length })
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}
