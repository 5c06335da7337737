//! A table with one entry for each block of guest content, in order.
//!
//! One lookup reads one window of the table, and no more entries than its limit covers. Consecutive
//! blocks form one run if they are contiguous in the file, or not stored.

use crate::caches::LayerCaches;
use crate::error::Result;
use crate::formats::table_cache::Table;
use crate::layer::GuestRange;
use crate::storage::HostFile;

/// A table of blocks that covers all guest content.
pub(crate) struct BlockTable {
    pub table: Table,
    /// Size of a block in bytes, not 0.
    pub block: u64,
}

/// A run of guest bytes.
pub(crate) struct Run {
    /// Offset of its first byte in the file. `None` if the run is not stored.
    pub host: Option<u64>,
    /// Length in bytes, not 0.
    pub length: u64,
}

impl BlockTable {
    /// Returns the run that begins at the start of `range`.
    ///
    /// `locate` returns the offset of a block in the file from its entry, at most 2^63, or `None` if the
    /// block is not stored.
    pub fn run(
        &self,
        caches: &LayerCaches,
        file: &HostFile,
        range: GuestRange,
        locate: impl Fn(u64) -> Option<u64>,
    ) -> Result<Run> {
        let GuestRange { offset, limit, far, .. } = range;
        let (index, within) = (offset / self.block, offset % self.block);
        let (window, first) = caches.table_entry(file, self.table, index)?;
        let start = locate(window[first]);
        let limit = if start.is_none() { far } else { limit };
        let wanted = within.saturating_add(limit).div_ceil(self.block);
        let mut next = start;
        let blocks = window[first..].iter().take(wanted as usize).take_while(|entry| {
            let continues = locate(**entry) == next;
            next = next.map(|host| host.saturating_add(self.block));
            continues
        });
        let length = blocks.count() as u64 * self.block - within;
        Ok(Run { host: start.map(|host| host + within), length: length.min(limit) })
    }
}
