//! qcow2, versions 2 and 3, as its specification and QEMU read it.
//!
//! Guest offsets are mapped to host offsets through two levels of tables, which are read in windows
//! as they are needed. Reference counts are never read. Every number in the file may be a lie: sums
//! are checked, tables and clusters must lie inside the file, and nothing is allocated by a length
//! that the file states unless a constant bounds it.

mod bitmaps;
pub(crate) mod decompress;
mod entry;
mod extensions;
mod header;
mod mapping;
mod snapshot;

#[cfg(test)]
pub(crate) mod builder;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::Lent;
use crate::error::{ErrorKind, Result};
use crate::storage::HostFile;

pub(crate) use entry::{Compressed, MapKind};
pub(crate) use header::Header;

use entry::Geometry;

/// One qcow2 image of a chain.
pub(crate) struct Qcow2 {
    pub file: Arc<HostFile>,
    /// Where guest clusters lie, if not in the file itself.
    pub data_file: Option<Arc<HostFile>>,
    pub size: u64,
    geometry: Geometry,
    compression: Compression,
    l1: L1Table,
}

/// How clusters are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Raw deflate.
    Deflate,
    Zstd,
}

/// Where the L1 table lies and how many entries it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct L1Table {
    pub offset: u64,
    pub entries: u64,
}

impl Qcow2 {
    /// The image as its header describes it, or one of its snapshots.
    pub fn new(
        file: Arc<HostFile>,
        header: &Header,
        data_file: Option<Arc<HostFile>>,
        snapshot: Option<&str>,
    ) -> Result<Self> {
        let geometry = header.geometry();
        let (size, l1) = match snapshot {
            None => (header.size, header.l1),
            Some(wanted) => snapshot::find(&file, header, wanted)?,
        };
        // Entries past the virtual size map no guest bytes, and need not even be in the file.
        let needed = size.div_ceil(1 << geometry.l1_span_bits());
        let l1 = L1Table { entries: l1.entries.min(needed), ..l1 };
        let compression = header.compression;
        Ok(Self { file, data_file, size, geometry, compression, l1 })
    }

    pub fn cluster_size(&self) -> u64 {
        self.geometry.cluster_size()
    }

    /// Reads guest data that lies uncompressed at `host_offset`.
    pub fn read_data(&self, buf: &mut [u8], host_offset: u64, guest_offset: u64) -> Result<()> {
        let file = self.guest_file();
        let end = host_offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > file.size()) {
            let reason =
                format!("data of guest offset {guest_offset} lies past the end of the file");
            return Err(file.error(ErrorKind::Corrupt, reason).at(host_offset));
        }
        file.read_exact_at(buf, host_offset)
    }

    /// The same where it lies in memory, if it does.
    pub fn lend_data(&self, host_offset: u64, length: usize) -> Option<Lent> {
        self.guest_file().lend(host_offset, length)
    }

    /// Where guest clusters lie.
    fn guest_file(&self) -> &HostFile {
        self.data_file.as_ref().unwrap_or(&self.file)
    }
}
