//! A file system whose superblock was read.

use super::log::Log;
use super::superblock::{MAGIC, MIN_SECTOR, Superblock};
use crate::bytes::be32_at;
use crate::error::Result;
use crate::volume::Volume;

/// An XFS.
pub struct Xfs {
    pub volume: Volume,
    pub superblock: Superblock,
    pub log: Log,
}

impl Xfs {
    /// Opens the file system if the volume begins with its magic number.
    pub fn open(volume: &Volume) -> Result<Option<Self>> {
        if volume.size() < MIN_SECTOR as u64 {
            return Ok(None);
        }
        let sector = volume.read(0, MIN_SECTOR)?;
        if be32_at(&sector, 0) != Some(MAGIC) {
            return Ok(None);
        }
        let superblock = Superblock::parse(&sector)?;
        let log = Log::open(volume, &superblock);
        Ok(Some(Self { volume: volume.clone(), superblock, log }))
    }
}
