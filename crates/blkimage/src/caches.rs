//! Memory that the layers of a chain share, so that a long chain needs no more memory than a short one.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::formats::decompress::{Cluster, Decoders};
use crate::formats::table_cache::{Table, TableCache, Window};
use crate::storage::HostFile;
use crate::storage::ahead::Joined;

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
    /// Number of the layer, which separates its entries from other layers' entries.
    layer: u32,
    /// The guest bytes whose tables were announced last.
    announced: Mutex<Range<u64>>,
}

/// A part of a table that is read at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TablePart {
    /// Offset of the first guest byte that it describes.
    pub guest: u64,
    /// Number of guest bytes that it describes.
    pub span: u64,
    pub offset: u64,
    pub length: u64,
}

impl Caches {
    /// Makes room for one more layer. Called before the layer caches anything.
    pub fn layer(self: &Arc<Self>) -> LayerCaches {
        let layer = self.layers.fetch_add(1, Relaxed);
        self.tables.divide(u64::from(layer) + 1);
        LayerCaches { caches: self.clone(), layer, announced: Mutex::default() }
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
        self.table_entry_or(file, table, index, || ())
    }

    /// Returns what [`table_entry`](Self::table_entry) does. Calls `miss` before the window is read from the file.
    pub fn table_entry_or(
        &self,
        file: &HostFile,
        table: Table,
        index: u64,
        miss: impl FnOnce(),
    ) -> Result<(Window, usize)> {
        self.caches.tables.entry(self.layer, file, table, index, miss)
    }

    /// Returns how much of a table is read at once, in bytes, a power of two.
    pub fn window(&self) -> u64 {
        self.caches.tables.window()
    }

    /// Announces the parts of tables that a caller reads after the one of the guest byte at `guest`, if it is
    /// interested in `limit` bytes from there on. `parts` are in the order of the guest. Tables are needed one after
    /// the other, each after a round trip to a server unless they come together.
    pub fn announce_tables(
        &self,
        file: &HostFile,
        guest: u64,
        limit: u64,
        parts: impl Iterator<Item = TablePart>,
    ) {
        let end = guest.saturating_add(limit);
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if !(announced.start..=announced.end).contains(&guest) {
            *announced = guest..guest;
        }
        announced.start = guest;
        let mut joined = Joined::default();
        let is_near = |part: &TablePart| part.guest.saturating_sub(guest) < REACH.max(part.span);
        let mut bytes = 0;
        for part in parts.take(MAX_TABLES).take_while(|part| part.guest < end && is_near(part)) {
            bytes += part.length;
            if bytes > MAX_TABLE_BYTES {
                break;
            }
            if part.guest < announced.end {
                continue;
            }
            announced.end = part.guest.saturating_add(part.span);
            if let Some((file, range)) = joined.push(file, part.offset, part.length) {
                file.will_need(range.start, range.end - range.start);
            }
        }
        if let Some((file, range)) = joined.finish() {
            file.will_need(range.start, range.end - range.start);
        }
    }

    /// Fills `buf` with the bytes of a compressed cluster from `within` on.
    pub fn decompress(&self, cluster: Cluster<'_>, buf: &mut [u8], within: usize) -> Result<()> {
        self.caches.decoders.read(self.layer, cluster, buf, within)
    }
}

/// Number of guest bytes whose tables are announced ahead, or of one more part of a table if that has more.
const REACH: u64 = 1 << 30;

/// Maximum number of parts of tables that are announced ahead.
const MAX_TABLES: usize = 64;

/// Maximum number of bytes of tables that are announced ahead, half of what the cache holds.
const MAX_TABLE_BYTES: u64 = 4 << 20;
