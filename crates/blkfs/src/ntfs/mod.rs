//! NTFS, versions 1.2 to 3.1.
//!
//! The owners and names come from one pass over the MFT: each file has the data runs of its content and its names there, and
//! directories are read only to verify them. An object is the number of a record of the MFT. A stream of a file has the number of
//! its file, and from bit 48 on a number among the streams of the file, from 1 on.
//!
//! NTFS has no checksums. Instead, a number repeats at the end of each 512 bytes of a record (the update sequence), the
//! first records of the MFT and the boot sector have copies, index blocks state their own place, and directories have the names
//! that the MFT has.

mod attribute;
mod boot;
mod check;
mod content;
mod file;
mod index;
mod log;
mod mft;
mod names;
mod record;
mod runs;
mod state;
mod walk;

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::reader::Reader;
use crate::visitor::{ObjectId, Visitor, Wanted};
use crate::volume::Volume;
use boot::{BOOT_SIZE, Boot};
use mft::{Disk, number};
use state::State;

/// A volume.
struct Ntfs {
    disk: Disk,
    state: State,
    /// Reason why the backup of the boot sector was used.
    bad_boot: Option<&'static str>,
}

/// Opens a volume if the first sector has the signature of NTFS.
pub(crate) fn open(volume: &Volume) -> Result<Option<Box<dyn Reader>>> {
    if volume.size() < BOOT_SIZE as u64 {
        return Ok(None);
    }
    let sector = volume.read(0, BOOT_SIZE)?;
    if !boot::is_ntfs(&sector) {
        return Ok(None);
    }
    let (boot, bad_boot) = match Boot::parse(&sector) {
        Ok(boot) => (boot, None),
        Err(reason) => {
            let backup = backup(volume).ok_or_else(|| Error::damaged(0, reason))?;
            (backup, Some(reason))
        }
    };
    let disk = Disk::open(volume, boot)?;
    let state = State::read(&disk);
    Ok(Some(Box::new(Ntfs { disk, state, bad_boot })))
}

/// Returns the boot sector at the end of an image that is as long as a partition.
fn backup(volume: &Volume) -> Option<Boot> {
    [512, 4096, 2048, 1024, 256].into_iter().find_map(|sector| {
        let offset = volume.size().checked_sub(sector)?;
        let bytes = volume.read(offset, BOOT_SIZE.min(sector as usize)).ok()?;
        let boot = Boot::parse(&bytes).ok()?;
        (boot.sector == sector && boot.size == offset).then_some(boot)
    })
}

impl Reader for Ntfs {
    fn kind(&self) -> Kind {
        Kind::Ntfs
    }

    fn size(&self) -> u64 {
        self.disk.size()
    }

    fn label(&self) -> Option<Vec<u8>> {
        self.state.label.clone()
    }

    fn uuid(&self) -> Option<String> {
        Some(format!("{:016X}", self.disk.boot.serial))
    }

    fn is_settled(&self) -> bool {
        self.state.is_clean()
    }

    fn remarks(&self) -> Vec<String> {
        self.state.remarks()
    }

    fn root(&self) -> ObjectId {
        number::ROOT
    }

    fn walk(&self, wanted: Wanted, visitor: &mut dyn Visitor) -> Result<()> {
        walk::walk(self, wanted, visitor)
    }
}

impl Disk {
    /// Returns the size of the volume, with the backup of the boot sector after it if the image has it.
    fn size(&self) -> u64 {
        let whole = self.boot.size + self.boot.sector;
        if whole <= self.volume.size() { whole } else { self.boot.size }
    }
}
