//! Finds what is at a byte of a device.

use crate::backref::{Owners, Resolver};
use crate::chunk::{Chunk, DATA};
use crate::filesystem::FileSystem;

/// Finds the owner of a byte of a device.
pub(crate) enum Located {
    /// Data of files.
    Data(Owners),
    /// A chunk of metadata: a tree block, or free space.
    Metadata,
}

/// Finds what is at bytes of devices, by the trees of a file system. The search is best effort: trees may
/// be damaged, and the number of its steps is limited.
pub(crate) struct Locator<'a> {
    filesystem: &'a FileSystem,
    resolver: Resolver<'a>,
}

impl<'a> Locator<'a> {
    /// Creates a locator that names up to `max_owners` files for each byte, after a search of `steps`.
    pub(crate) fn new(filesystem: &'a FileSystem, max_owners: usize, steps: u64) -> Self {
        Self { filesystem, resolver: Resolver::after(filesystem, max_owners, steps) }
    }

    /// Returns the number of steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.resolver.steps()
    }

    /// Returns what is at the byte `physical` of a device, `None` outside of all chunks and in chunks of RAID5
    /// and RAID6.
    pub(crate) fn find(&self, device: u64, physical: u64) -> Option<Located> {
        let found = |chunk: &'a Chunk| Some((chunk, chunk.unmap(device, physical)?));
        let (chunk, logical) = self.filesystem.chunks().iter().find_map(found)?;
        Some(match chunk.flags & DATA {
            0 => Located::Metadata,
            _ => Located::Data(self.resolver.data(logical)),
        })
    }
}
