//! Symbolic links outside of inodes, quotas, and the files of the realtime device.

use super::inode::Inode;
use super::structure::Structure;
use super::verify::Subject;
use super::walk::{Place, Walk};
use crate::bytes::be32_at;
use crate::error::Result;

impl Walk<'_> {
    /// Walks over the blocks of a symbolic link. Each extent has a header and a CRC.
    pub fn symlink(&mut self, inode: &Inode<'_>) -> Result<()> {
        if inode.data.is_local() || (!self.wanted.extents && !self.wanted.checks) {
            return Ok(());
        }
        let structure = Structure::Symlink;
        let object = Some(inode.number);
        let mut done = 0u32;
        self.mappings(inode, &inode.data, &mut |walk, mapping| {
            walk.metadata(mapping.first, mapping.count, structure.name(), object);
            let sb = walk.superblock();
            if !sb.is_v5 || !walk.wanted.checks {
                return Ok(());
            }
            let length = sb.bytes(mapping.count);
            let offset = sb.offset(mapping.first);
            let place = Place { structure: structure.name(), offset, object };
            if length > MAX_SYMLINK {
                walk.damaged(place, format!("a symbolic link of {length} bytes"));
                return Ok(());
            }
            let mut buffer = walk.buffer(length as usize);
            let subject = Subject { structure, offset, owner: inode.number, object };
            if walk.visit_mapping(place, mapping)
                && walk.read(place, &mut buffer)?
                && walk.verify(subject, &mut buffer)
            {
                let (start, size) = (be32_at(&buffer, 4), be32_at(&buffer, 8).unwrap_or(0));
                if start != Some(done) || size > MAX_TARGET {
                    walk.damaged(place, format!("{size} bytes of a link at {start:?}, not {done}"));
                }
                done = done.saturating_add(size.min(MAX_TARGET));
            }
            walk.give_back(buffer);
            Ok(())
        })
    }

    /// Walks over the blocks of a quota file, each of which is full of dquots.
    pub fn quotas(&mut self, inode: &Inode<'_>) -> Result<()> {
        if !self.wanted.extents && !self.wanted.checks {
            return Ok(());
        }
        let object = Some(inode.number);
        self.mappings(inode, &inode.data, &mut |walk, mapping| {
            walk.metadata(mapping.first, mapping.count, "quota block", object);
            let place = Place { structure: "quota block", ..inode.place() };
            if !walk.wanted.checks || !walk.visit_mapping(place, mapping) {
                return Ok(());
            }
            let mut buffer = walk.buffer(walk.superblock().block_size as usize);
            for block in mapping.first..mapping.first + mapping.count {
                let offset = walk.superblock().offset(block);
                if walk.read(Place { offset, ..place }, &mut buffer)? {
                    walk.dquots(inode, offset, &mut buffer);
                }
            }
            walk.give_back(buffer);
            Ok(())
        })
    }

    fn dquots(&mut self, inode: &Inode<'_>, offset: u64, bytes: &mut [u8]) {
        for (index, bytes) in bytes.chunks_exact_mut(DQUOT).enumerate() {
            let offset = offset + (index * DQUOT) as u64;
            let (structure, object) = (Structure::Dquot, Some(inode.number));
            self.verify(Subject { structure, offset, owner: 0, object }, bytes);
        }
    }

    /// Reports the blocks of a file without a structure.
    pub fn system_file(&mut self, inode: &Inode<'_>, structure: &'static str) -> Result<()> {
        if !self.is_fork_wanted(&inode.data) {
            return Ok(());
        }
        let object = Some(inode.number);
        self.mappings(inode, &inode.data, &mut |walk, mapping| {
            walk.metadata(mapping.first, mapping.count, structure, object);
            Ok(())
        })
    }
}

/// Size of a dquot in bytes.
const DQUOT: usize = 136;

/// Maximum size of the blocks of a symbolic link.
/// Limit in bytes.
const MAX_SYMLINK: u64 = 1 << 16;

/// Maximum length of a symbolic link.
const MAX_TARGET: u32 = 1024;
