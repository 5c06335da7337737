//! vdi, the disks of VirtualBox: a header, a table of blocks of 1 MiB, and the blocks.
//!
//! The header is held to the rules of QEMU. Differences to another disk are refused, because they name it
//! by its UUID alone.

mod header;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::header::{BLOCK, DISCARDED, Header};
use crate::caches::LayerCaches;
use crate::chain::{Candidate, Chain, OpenedLayer};
use crate::error::Result;
use crate::formats::block_table::{BlockTable, Run};
use crate::formats::fields::check_inside;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose};
use crate::storage::HostFile;

/// A vdi image.
struct Vdi {
    file: Arc<HostFile>,
    size: u64,
    blocks: BlockTable,
    /// Offset of block 0 in the file.
    data: u64,
    caches: LayerCaches,
}

/// Opens a file as a vdi image.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = image.file.clone();
    let Header { size, table, data } = Header::read(&file)?;
    let blocks = BlockTable { table, block: BLOCK };
    let layer = Vdi { file, size, blocks, data, caches: chain.layer_caches() };
    Ok(OpenedLayer { layer: Box::new(layer), backing: None })
}

impl Layer for Vdi {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, purpose: Purpose) -> Result<Mapping<'_>> {
        let locate = |entry| (entry < DISCARDED).then(|| self.data + entry * BLOCK);
        let Run { host, length } = self.blocks.run(&self.caches, &self.file, range, locate)?;
        let Some(offset) = host else {
            return Ok(Mapping { kind: MappingKind::Below, length });
        };
        if purpose == Purpose::Read {
            check_inside(&self.file, offset, length, "block")?;
        }
        Ok(Mapping { kind: MappingKind::Host { file: &self.file, offset }, length })
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}
