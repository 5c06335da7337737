//! Memory that the layers of a chain share, so that a long chain needs no more memory than a short one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::error::Result;
use crate::formats::decompress::{Cluster, Decoders};
use crate::formats::table_cache::{Table, TableCache, Window};
use crate::storage::HostFile;

/// The caches of a chain.
#[derive(Default)]
pub(crate) struct Caches {
    pub tables: TableCache,
    decoders: Decoders,
    layers: AtomicU32,
}

/// A layer's access to the caches of its chain.
pub(crate) struct LayerCaches {
    caches: Arc<Caches>,
    /// Number of the layer, which separates its entries from those of other layers.
    layer: u32,
}

impl Caches {
    /// Makes room for one more layer. Called before the layer caches anything.
    pub fn layer(self: &Arc<Self>) -> LayerCaches {
        let layer = self.layers.fetch_add(1, Relaxed);
        self.tables.divide(u64::from(layer) + 1);
        LayerCaches { caches: self.clone(), layer }
    }
}

impl LayerCaches {
    /// Returns the window that holds entry `index` of a table in `file`, and the index of the entry in it.
    pub fn table_entry(
        &self,
        file: &HostFile,
        table: Table,
        index: u64,
    ) -> Result<(Window, usize)> {
        self.caches.tables.entry(self.layer, file, table, index)
    }

    /// Fills `buf` with the bytes of a compressed cluster from `within` on.
    pub fn decompress(&self, cluster: Cluster<'_>, buf: &mut [u8], within: usize) -> Result<()> {
        self.caches.decoders.read(self.layer, cluster, buf, within)
    }
}
