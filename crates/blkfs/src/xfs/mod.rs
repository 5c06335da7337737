//! XFS of the versions 4 and 5.
//!
//! A file system consists of allocation groups ([`group`]), each with trees ([`btree`]) of its free space and of its inodes.
//! Inodes ([`inode`]) lead through their forks ([`bmap`]) to directories, attributes and content. With version 5, each block
//! of metadata has a CRC and says which block it is ([`verify`]). Changes that were not written in place yet are in the log
//! ([`log`]). Blocks may not fit together until it is replayed, so what contradicts is only damage if the log is clean.

mod attributes;
mod backup;
mod bmap;
mod btree;
mod directory;
mod fork;
mod group;
mod inode;
mod log;
mod opened;
mod structure;
mod superblock;
mod system;
mod verify;
mod walk;

use crate::error::Result;
use crate::kind::Kind;
use crate::reader::Reader;
use crate::visitor::{ObjectId, Owner, Visitor, Wanted};
use crate::volume::Volume;
pub(crate) use backup::find_backup;
use opened::Xfs;
use walk::Walk;

/// Opens an XFS if the volume begins with its magic number.
pub(crate) fn open(volume: &Volume) -> Result<Option<Box<dyn Reader>>> {
    Ok(Xfs::open(volume)?.map(|xfs| Box::new(xfs) as Box<dyn Reader>))
}

impl Reader for Xfs {
    fn kind(&self) -> Kind {
        Kind::Xfs
    }

    fn size(&self) -> u64 {
        self.superblock.offset(self.superblock.blocks)
    }

    fn label(&self) -> Option<Vec<u8>> {
        let label: Vec<u8> =
            self.superblock.label.iter().copied().take_while(|it| *it != 0).collect();
        (!label.is_empty()).then_some(label)
    }

    fn uuid(&self) -> Option<String> {
        let mut text = String::with_capacity(36);
        for (index, byte) in self.superblock.uuid.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        Some(text)
    }

    fn is_settled(&self) -> bool {
        self.log.remark().is_none()
    }

    fn remarks(&self) -> Vec<String> {
        let sb = &self.superblock;
        let mut remarks: Vec<String> = self.log.remark().into_iter().map(str::to_owned).collect();
        if sb.needs_repair {
            remarks.push("it is marked as in need of xfs_repair".to_owned());
        }
        if sb.is_in_progress {
            remarks.push("its creation or a copy of it was not completed".to_owned());
        }
        if sb.realtime_blocks > 0 {
            remarks.push(
                "the content of some files may be on a realtime device, which is not read"
                    .to_owned(),
            );
        }
        if sb.unknown_features != 0 {
            let bits = sb.unknown_features;
            remarks
                .push(format!("it has an unknown feature ({bits:#x}), whose blocks are not read"));
        }
        if self.size() > self.volume.size() {
            remarks.push("the image is smaller than the file system".to_owned());
        }
        remarks
    }

    fn root(&self) -> ObjectId {
        self.superblock.root
    }

    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
        let mut walk = Walk::new(self, wanted, visitor);
        if let Some(place) = self.log.place() {
            walk.extent(place.offset, place.blocks * 512, Owner::Journal);
        }
        if wanted.checks && self.superblock.is_v5 {
            self.log.collect(&self.volume, &self.superblock);
            walk.log_records()?;
        }
        walk.groups()?;
        walk.finish()
    }
}
