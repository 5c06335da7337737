//! vhdx, version 1, as in MS-VHDX and in QEMU: fixed, dynamic and differencing images.
//!
//! Guest offsets are mapped through the block allocation table, and in differencing images through
//! bitmaps of sectors. Both are read in windows on demand. If an image was not closed, its log is
//! replayed in memory ([`replay`]), and everything is read through the changes. All structures with a
//! checksum are verified. No number in the file is trusted.

mod bat;
mod bitmap;
mod checksum;
mod entry;
mod guid;
mod header;
mod log;
mod mapping;
mod metadata;
mod parent;
mod region;
mod replay;
mod units;

#[cfg(test)]
pub(crate) mod builder;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::bat::{Geometry, Payload};
use self::guid::Guid;
use self::header::Header;
use self::mapping::{Blocks, MapKind};
use self::metadata::Metadata;
use self::parent::Parent;
use self::region::Regions;
use self::replay::{Changes, Replayed};
use crate::chain::{BackingFile, Candidate, Chain, OpenedLayer};
use crate::error::{Result, escaped};
use crate::formats::empty::check_empty;
use crate::formats::fields::{Entry, check_inside};
use crate::formats::table_cache::Table;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose};
use crate::probe::Format;
use crate::storage::HostFile;

/// One vhdx image of a chain.
pub(crate) struct Vhdx {
    file: Arc<HostFile>,
    changes: Option<Arc<Changes>>,
    blocks: Blocks,
}

/// Opens a file as a vhdx image.
pub(crate) fn open(chain: &mut Chain<'_>, image: &Candidate) -> Result<OpenedLayer> {
    let file = image.file.clone();
    let header = Header::read(&file)?;
    let changes = match header.log {
        Guid::ZERO => None,
        _ => {
            let changes = Changes::read(&file, &header)?;
            let reason = match changes.is_empty() {
                true => "was not closed, and its log holds no change: it is read as it is",
                false => "was not closed: it is read as if its log were replayed",
            };
            chain.warn(file.warning(reason));
            Some(Arc::new(changes))
        }
    };
    let view = match &changes {
        None => file.clone(),
        Some(changes) => {
            // The file counts the bytes that are read. The bytes of the view would be counted twice.
            let storage = Box::new(Replayed::new(file.clone(), changes.clone()));
            Arc::new(HostFile::new(file.name().into(), storage, Arc::default()))
        }
    };
    let Regions { bat, metadata, taken } = Regions::read(&view, &header)?;
    let metadata = Metadata::read(&view, metadata)?;
    let geometry = Geometry::new(&metadata);
    if geometry.entries > bat.length / 8 {
        let reason = format!("BAT is too short for {} entries", geometry.entries);
        return Err(file.corrupt(reason).at(bat.offset));
    }
    check_inside(&file, bat.offset, geometry.entries * 8, "BAT")?;
    let whole = Table { offset: bat.offset, length: bat.length, entry: Entry::Le64 };
    check_empty(&view, metadata.size, whole, |entry| {
        matches!(Payload::decode(entry), None | Some(Payload::Present(_) | Payload::Partial(_)))
    })?;
    let backing = match metadata.locator {
        Some(item) => {
            let Parent { name, linkages } = Parent::read(&view, item)?;
            let child = escaped(file.name().as_os_str().as_encoded_bytes());
            let check = move |found: &HostFile| parent::check(found, &child, &linkages);
            Some(BackingFile::parent(name, Format::Vhdx, check))
        }
        None => None,
    };
    let (has_parent, caches) = (backing.is_some(), chain.layer_caches());
    let bat = bat.offset;
    let blocks = Blocks { file: view, geometry, has_parent, bat, taken, caches };
    let vhdx = Vhdx { file, changes, blocks };
    Ok(OpenedLayer { layer: Box::new(vhdx), backing })
}

impl Vhdx {
    /// Returns the file to read host bytes from, and for how many of them this is true. Bytes that the
    /// log does not change are in the file itself, from which they can be lent.
    fn host(&self, offset: u64, length: u64) -> (&HostFile, u64) {
        match self.changes.as_ref().map(|changes| changes.run(offset, length)) {
            None => (&self.file, length),
            Some((false, length)) => (&self.file, length),
            Some((true, length)) => (&self.blocks.file, length),
        }
    }
}

impl Layer for Vhdx {
    fn size(&self) -> u64 {
        self.blocks.geometry.size
    }

    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let (kind, length) = self.blocks.look_up(range)?;
        Ok(match kind {
            MapKind::Below => Mapping { kind: MappingKind::Below, length },
            MapKind::Zero => Mapping { kind: MappingKind::Zero, length },
            MapKind::Data(offset) => {
                let (file, length) = self.host(offset, length);
                Mapping { kind: MappingKind::Host { file, offset }, length }
            }
        })
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}
