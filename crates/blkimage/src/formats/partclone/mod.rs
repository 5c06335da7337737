//! Images of partclone, which Clonezilla makes of file systems.
//!
//! A header is followed by a bitmap of the blocks that are used, and by these blocks in order. All other blocks are zeros here;
//! `partclone.restore` leaves them as they are. Blocks may have a CRC-32 for every few of them, which is compared whenever they are
//! read. The CRC-32 of the header and of the bitmap are compared when the image is opened.
//!
//! A CRC-32 of partclone begins like any other, and is stored without its last step: inverted. A sum that is not reseeded
//! covers all blocks so far.

mod bitmap;
mod check;
mod crc;
mod header;
mod strips;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::bitmap::Bitmap;
use self::header::Header;
use self::strips::Strips;
use crate::backup::Backup;
use crate::chain::{Candidate, OpenedLayer};
use crate::check::{Summary, Visitor};
use crate::error::Result;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::stated::Stated;
use crate::storage::HostFile;

/// An image.
struct Partclone {
    file: Arc<HostFile>,
    size: u64,
    block: u64,
    bitmap: Bitmap,
    /// Offset of the first used block.
    start: u64,
    /// `None` if blocks have no checksums.
    strips: Option<Strips>,
    backup: Backup,
}

/// Opens a file as an image of partclone.
pub(crate) fn open(image: &Candidate) -> Result<OpenedLayer> {
    let layer = Partclone::open(&image.file)?;
    Ok(OpenedLayer { layer: Box::new(layer), backing: None })
}

impl Partclone {
    fn open(file: &Arc<HostFile>) -> Result<Self> {
        let Header { file_system, version, size, blocks, block, sums } = Header::read(file)?;
        let bitmap = Bitmap::read(file, Header::SIZE, blocks)?;
        let start = Header::SIZE + Bitmap::stored(blocks);
        let used = bitmap.used();
        let end = strips::stored(used, block, sums).and_then(|length| start.checked_add(length));
        if end.is_none_or(|end| end > file.size()) {
            let reason = "has blocks past the end of the file, which was cut off or is the first of several parts: cat joins them";
            return Err(file.corrupt(reason).at(start));
        }
        let strips = sums.map(|sums| Strips::new(file, start, used, block, sums)).transpose()?;
        let backup = Backup { file_system, version, block_size: block, used: used * block };
        Ok(Self { file: file.clone(), size, block, bitmap, start, strips, backup })
    }

    /// Returns the position in all used blocks of the guest byte at `offset`, which is in one of them.
    fn position(&self, offset: u64) -> u64 {
        let run = self.bitmap.run(offset / self.block, 0);
        run.rank.unwrap_or(0) * self.block + offset % self.block
    }
}

impl Layer for Partclone {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let GuestRange { offset, limit, far, is_lowest } = range;
        let index = offset / self.block;
        let is_used = index < self.bitmap.blocks() && self.bitmap.is_used(index);
        if !is_used {
            let end = match offset.saturating_add(far).div_ceil(self.block) {
                _ if index >= self.bitmap.blocks() => self.size,
                last => match self.bitmap.run(index, last).end {
                    end if end == self.bitmap.blocks() => self.size,
                    end => end * self.block,
                },
            };
            let left = end - offset;
            return Ok(match is_lowest {
                true => Mapping { kind: MappingKind::Below, length: left.min(far) },
                false => Mapping { kind: MappingKind::Zero, length: left.min(limit) },
            });
        }
        let last = offset.saturating_add(limit).div_ceil(self.block);
        let run = self.bitmap.run(index, last);
        let length = limit.min(run.end * self.block - offset);
        let position = run.rank.unwrap_or(0) * self.block + offset % self.block;
        let kind = match &self.strips {
            None => MappingKind::Host { file: &self.file, offset: self.start + position },
            Some(strips) => {
                let offset = strips.offset(position);
                let length = strips.offset(position + length) - offset;
                MappingKind::Opaque(Stored { offset, length })
            }
        };
        Ok(Mapping { kind, length })
    }

    fn read(&self, _stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        match &self.strips {
            Some(strips) => strips.read(buf, self.position(offset)),
            None => self.file.read_exact_at(buf, self.start + self.position(offset)),
        }
    }

    fn stated(&self) -> Result<Option<Stated>> {
        let parts = self.strips.as_ref().map(|_| "CRC-32 of each strip");
        Ok(Some(Stated { parts, ..Stated::default() }))
    }

    fn backup(&self) -> Option<&Backup> {
        Some(&self.backup)
    }

    fn check_structure(&self, visitor: &mut dyn Visitor) -> Result<Option<Summary>> {
        let Some(strips) = &self.strips else { return Ok(None) };
        let summary = check::check(strips, visitor)?;
        self.check_unchanged()?;
        Ok(Some(summary))
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}
