//! An open file system with its devices, its chunks and access to its trees.

use std::collections::BTreeMap;
use std::sync::Mutex;

use blkhash::Implementation;
use blkimage::Lent;

use crate::bytes::{u8_at, u32_at, u64_at};
use crate::checksum::{Checksum, MAX_SIZE, Summer};
use crate::chunk::{self, Chunk, ChunkMap, Profile};
use crate::devices::{Device, Devices, ReadError};
use crate::error::{Error, Result};
use crate::rebuild::rebuild;
use crate::superblock::{self, Copies, DeviceItem, Superblock};
use crate::tree::block::Identity;
use crate::tree::key::kind;
use crate::tree::{
    BlockCache, BlockDefect, Blocks, Cursor, Expected, Key, Parent, TreeBlock, TreeRoot, object,
    root_block,
};
use crate::uuid::Uuid;

/// A btrfs file system, opened for reading.
pub struct FileSystem {
    superblock: Superblock,
    devices: Devices,
    /// Newest intact superblock of each device.
    superblocks: BTreeMap<u64, Superblock>,
    /// Item of each device in the chunk tree.
    device_items: BTreeMap<u64, DeviceItem>,
    /// Devices that the file system has and that were not given.
    missing: Vec<DeviceItem>,
    is_replacing: bool,
    chunks: ChunkMap,
    identity: Identity,
    summer: Summer,
    cache: Mutex<BlockCache>,
}

/// Chunks of one kind and profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allocation {
    /// `data`, `metadata`, `system`, or a list of these.
    pub kind: String,
    /// Distribution over devices.
    pub profile: Profile,
    /// Capacity in bytes of content.
    pub size: u64,
    /// Bytes of content in use, if the items that count them can be read.
    pub used: Option<u64>,
    /// Number of copies of each byte.
    pub mirrors: u32,
}

impl FileSystem {
    /// Opens the file system on `devices`. Some of its devices may be missing.
    ///
    /// # Errors
    ///
    /// Fails if there is no file system, if it uses unsupported features, or if a structure that
    /// all others depend on cannot be read.
    pub fn open(devices: Vec<Device>) -> Result<Self> {
        Self::open_with(devices, Vec::new(), None)
    }

    /// Opens the file system on `devices`, with the `seeds` that it was created from. If
    /// `implementation` is given, it computes all checksums of its algorithm.
    ///
    /// # Errors
    ///
    /// Fails like [`FileSystem::open`], and if the implementation cannot run here.
    pub fn open_with(
        devices: Vec<Device>,
        seeds: Vec<Device>,
        implementation: Option<Implementation>,
    ) -> Result<Self> {
        let mut known = BTreeMap::new();
        let mut superblocks = BTreeMap::new();
        let mut newest: Option<Superblock> = None;
        for device in devices {
            let own = superblock::newest(&superblock::read_copies(&*device.source), &device.name)?;
            if let Some(other) = newest.as_ref().filter(|other| other.fsid != own.fsid) {
                let reason = format!("is of the file system {}, not {}", own.fsid, other.fsid);
                return Err(Error::Devices(format!("{}: {reason}", device.name)));
            }
            let (id, name) = (own.device.id, device.name.clone());
            if let Some(other) = known.insert(id, device) {
                let other: Device = other;
                let reason = format!("{name}: is device {id}, and so is {}", other.name);
                return Err(Error::Devices(reason));
            }
            superblocks.insert(id, own.clone());
            if newest.as_ref().is_none_or(|newest| own.generation > newest.generation) {
                newest = Some(own);
            }
        }
        let superblock = newest.ok_or_else(|| Error::Devices("no device was given".into()))?;
        let mut seed_ids = Vec::new();
        for device in seeds {
            let own = superblock::newest(&superblock::read_copies(&*device.source), &device.name)?;
            // A device number is unique within a file system and its seeds.
            if own.is_seed() && !known.contains_key(&own.device.id) {
                known.insert(own.device.id, device);
                seed_ids.push(own.device.id);
                superblocks.insert(own.device.id, own);
            }
        }
        let kind = superblock.checksum_type;
        let summer = match implementation.filter(|it| it.algorithm == kind.algorithm()) {
            Some(implementation) => Summer::with_implementation(kind, &implementation)?,
            None => Summer::new(kind),
        };
        let identity = Identity {
            fsid: superblock.metadata_uuid,
            seeds: seed_ids.iter().map(|id| superblocks[id].metadata_uuid).collect(),
            chunk_tree: None,
            sector_size: superblock.sector_size,
        };
        let mut filesystem = Self {
            devices: Devices::new(known),
            superblocks,
            device_items: BTreeMap::new(),
            missing: Vec::new(),
            is_replacing: false,
            chunks: ChunkMap::default(),
            identity,
            summer,
            cache: Mutex::new(BlockCache::new(superblock.node_size)),
            superblock,
        };
        filesystem.read_system_chunks()?;
        filesystem.read_chunk_tree()?;
        filesystem.drop_strangers(&seed_ids);
        filesystem.find_replacement();
        Ok(filesystem)
    }

    /// Looks for a device that is replacing another one. Its number is 0, and it has no device
    /// item.
    fn find_replacement(&mut self) {
        let item = || {
            let root = self.tree_root(object::DEVICE_TREE).ok()??;
            let key = Key::new(0, kind::DEV_REPLACE, 0);
            let cursor = Cursor::seek(self, object::DEVICE_TREE, root, key).ok()?;
            let (_, bytes) = cursor.item().filter(|(found, _)| *found == key)?;
            u64_at(bytes, 32)
        };
        self.is_replacing = item().is_some_and(|state| matches!(state, STARTED | SUSPENDED));
        if self.is_replacing && !self.devices.all().contains_key(&0) {
            let none = Uuid([0; 16]);
            self.missing.push(DeviceItem {
                id: 0,
                total_bytes: 0,
                bytes_used: 0,
                uuid: none,
                fsid: none,
            });
        }
    }

    /// Returns whether device 0 is replacing another one.
    pub(crate) fn is_replacing(&self) -> bool {
        self.is_replacing
    }

    /// Drops `seeds` that belong to other file systems.
    fn drop_strangers(&mut self, seeds: &[u64]) {
        for id in seeds {
            let own = self.superblocks.get(id).map(|it| (it.device.uuid, it.metadata_uuid));
            let item = self.device_items.get(id);
            if item.map(|item| (item.uuid, item.fsid)) != own {
                self.devices.remove(*id);
                self.superblocks.remove(id);
                self.missing.extend(item);
            }
        }
        let seeds = seeds.iter().filter_map(|id| self.superblocks.get(id));
        self.identity.seeds = seeds.map(|it| it.metadata_uuid).collect();
    }

    /// Returns the newest intact superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Returns the devices that were given, by their numbers.
    pub fn devices(&self) -> &BTreeMap<u64, Device> {
        self.devices.all()
    }

    /// Returns the devices of the chunk tree that were not given. If the chunk tree lacks their
    /// items, only the superblock's number of devices shows that they are missing.
    pub fn missing_devices(&self) -> &[DeviceItem] {
        &self.missing
    }

    /// Returns the space of chunks by kind and profile.
    pub fn allocations(&self) -> Vec<Allocation> {
        let mut all: BTreeMap<(u64, Profile), Allocation> = BTreeMap::new();
        for chunk in self.chunks.iter() {
            let flags = chunk.flags & (chunk::DATA | chunk::METADATA | chunk::SYSTEM);
            let used = self.used(chunk);
            let entry = all.entry((flags, chunk.profile)).or_insert_with(|| Allocation {
                kind: kind_name(flags),
                profile: chunk.profile,
                size: 0,
                used: Some(0),
                mirrors: chunk.mirrors(),
            });
            entry.size = entry.size.saturating_add(chunk.length);
            entry.used = entry.used.zip(used).map(|(sum, used)| sum.saturating_add(used));
        }
        all.into_values().collect()
    }

    /// Returns the approximate number of bytes that a verification reads. Bytes in use count once
    /// for each mirror, and once more if they have parities.
    pub fn verified_bytes(&self) -> u64 {
        let size = |it: &Allocation| {
            let times = u64::from(it.mirrors) + u64::from(it.profile.parities() > 0);
            it.used.unwrap_or(0).saturating_mul(times)
        };
        self.allocations().iter().map(size).fold(0, u64::saturating_add)
    }

    /// Returns the number of bytes in use in a chunk, or `None` if it cannot be read.
    fn used(&self, chunk: &Chunk) -> Option<u64> {
        let tree = if self.superblock.has_block_group_tree() {
            object::BLOCK_GROUP_TREE
        } else {
            object::EXTENT_TREE
        };
        let root = self.tree_root(tree).ok()??;
        let key = Key::new(chunk.logical, kind::BLOCK_GROUP, chunk.length);
        let cursor = Cursor::seek(self, tree, root, key).ok()?;
        let (_, bytes) = cursor.item().filter(|(found, _)| *found == key)?;
        u64_at(bytes, 0).filter(|used| *used <= chunk.length)
    }

    pub(crate) fn chunks(&self) -> &ChunkMap {
        &self.chunks
    }

    pub(crate) fn summer(&self) -> &Summer {
        &self.summer
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn node_size(&self) -> usize {
        self.superblock.node_size as usize
    }

    pub(crate) fn sector_size(&self) -> usize {
        self.superblock.sector_size as usize
    }

    /// Returns the item of each device in the chunk tree, by their numbers.
    pub(crate) fn device_items(&self) -> &BTreeMap<u64, DeviceItem> {
        &self.device_items
    }

    /// Returns the newest intact superblock to compare the copies on a device with. It belongs to
    /// the file system, or to the seed that the device belongs to.
    pub(crate) fn superblock_of(&self, device: u64) -> Option<&Superblock> {
        let own = self.superblocks.get(&device)?;
        Some(if own.fsid == self.superblock.fsid { &self.superblock } else { own })
    }

    /// Returns the newest intact superblock on a device.
    pub(crate) fn own_superblock(&self, device: u64) -> Option<&Superblock> {
        self.superblocks.get(&device)
    }

    /// Returns a device's description of itself in its superblock.
    pub(crate) fn own_item(&self, device: u64) -> Option<&DeviceItem> {
        self.superblocks.get(&device).map(|it| &it.device)
    }

    /// Returns the superblocks of a device.
    pub(crate) fn superblock_copies(&self, device: u64) -> Option<Copies> {
        self.devices.all().get(&device).map(|device| superblock::read_copies(&*device.source))
    }

    /// Returns the root of a tree that is listed in the root tree.
    pub(crate) fn tree_root(&self, tree: u64) -> Result<Option<TreeRoot>> {
        match tree {
            object::ROOT_TREE => return Ok(Some(self.superblock.root)),
            object::CHUNK_TREE => return Ok(Some(self.superblock.chunk_root)),
            _ => {}
        }
        let first = Key::new(tree, kind::ROOT, 0);
        let cursor = Cursor::seek(self, object::ROOT_TREE, self.superblock.root, first)?;
        let found = cursor.item().filter(|(key, _)| (key.object, key.kind) == (tree, kind::ROOT));
        let (logical, slot) = cursor.place();
        let parent = Parent::Root { logical, slot };
        Ok(found.and_then(|(_, bytes)| RootItem::parse(bytes, parent)).map(|item| item.root))
    }

    /// Rebuilds a tree block from parity. Returns `None` if this is impossible.
    pub(crate) fn rebuild_block(
        &self,
        chunk: &Chunk,
        expected: &Expected,
        bytes: &mut [u8],
    ) -> Option<Result<TreeBlock, BlockDefect>> {
        self.rebuild(chunk, expected.logical, bytes, |bytes| self.check_block(bytes, expected))
    }

    /// Checks that `bytes` are the expected block.
    pub(crate) fn check_block(
        &self,
        bytes: &[u8],
        expected: &Expected,
    ) -> Result<TreeBlock, BlockDefect> {
        let stored = Checksum::new(&bytes[..self.summer.size()]);
        let computed = self.summer.sum(&bytes[MAX_SIZE..]);
        if stored != computed {
            return Err(BlockDefect::Checksum { expected: stored, computed });
        }
        TreeBlock::new(bytes, expected, &self.identity)
    }

    /// Reads mirror `mirror` of the bytes at `logical`, all of which belong to `chunk`.
    pub(crate) fn read(
        &self,
        chunk: &Chunk,
        mut logical: u64,
        mirror: u32,
        mut buffer: &mut [u8],
    ) -> Result<(), ReadError> {
        while !buffer.is_empty() {
            let run = chunk.map(logical, mirror);
            let length = run.length.min(buffer.len() as u64);
            let (these, rest) = buffer.split_at_mut(length as usize);
            self.devices.read(run.device, run.physical, these)?;
            logical += length;
            buffer = rest;
        }
        Ok(())
    }

    /// Borrows the bytes that [`FileSystem::read`] would read, if they are contiguous and in
    /// memory.
    pub(crate) fn lend(
        &self,
        chunk: &Chunk,
        logical: u64,
        mirror: u32,
        length: usize,
    ) -> Option<Lent> {
        let run = chunk.map(logical, mirror);
        if run.length < length as u64 {
            return None;
        }
        let lent = self.devices.all().get(&run.device)?.source.lend(run.physical, length)?;
        (lent.as_ref().len() == length).then_some(lent)
    }

    /// Reads from a device.
    pub(crate) fn read_device(
        &self,
        device: u64,
        physical: u64,
        buffer: &mut [u8],
    ) -> Result<(), ReadError> {
        self.devices.read(device, physical, buffer)
    }

    /// Computes bytes from the rest of their rows, like [`rebuild`].
    pub(crate) fn rebuild<T, E>(
        &self,
        chunk: &Chunk,
        logical: u64,
        buffer: &mut [u8],
        accept: impl FnMut(&[u8]) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        rebuild(&self.devices, chunk, logical, buffer, accept)
    }

    /// Returns an error if nothing can be read any more because a server is gone.
    pub(crate) fn down(&self) -> Option<Error> {
        self.devices.down()
    }

    fn read_system_chunks(&mut self) -> Result<()> {
        let array = std::mem::take(&mut self.superblock.system_chunks);
        let mut rest = array.as_slice();
        while !rest.is_empty() {
            let key = Key::parse(rest).filter(|key| key.kind == kind::CHUNK);
            let Some(key) = key else {
                return Err(Error::corrupt(0, "the system chunks of the superblock make no sense"));
            };
            let (chunk, length) =
                Chunk::parse(key.offset, &rest[Key::SIZE..], self.superblock.sector_size.into())?;
            self.chunks.insert(chunk)?;
            rest = &rest[Key::SIZE + length..];
        }
        self.superblock.system_chunks = array;
        Ok(())
    }

    fn read_chunk_tree(&mut self) -> Result<()> {
        let root = self.superblock.chunk_root;
        let block = self.block(&root_block(object::CHUNK_TREE, root))?;
        self.identity.chunk_tree = Some(block.chunk_tree_uuid());
        let mut chunks = ChunkMap::default();
        // Reading the chunk tree needs the chunks of the superblock. The tree contains them as
        // well.
        self.chunks.iter().try_for_each(|chunk| chunks.insert(chunk.clone()))?;
        let mut items = BTreeMap::new();
        let mut cursor = Cursor::seek(self, object::CHUNK_TREE, root, Key::new(0, 0, 0))?;
        while let Some((key, bytes)) = cursor.item() {
            match (key.object, key.kind) {
                (object::DEVICES, kind::DEVICE) => match DeviceItem::parse(bytes) {
                    Some(_) if items.len() == MAX_DEVICES => {
                        return Err(Error::Devices(format!("there are more than {MAX_DEVICES}")));
                    }
                    Some(item) => {
                        items.insert(item.id, item);
                    }
                    None => return Err(Error::corrupt(0, "the item of a device is cut off")),
                },
                (object::CHUNKS, kind::CHUNK) => {
                    let sector_size = self.superblock.sector_size.into();
                    chunks.insert(Chunk::parse(key.offset, bytes, sector_size)?.0)?;
                }
                _ => {}
            }
            cursor.advance()?;
        }
        drop(cursor);
        self.chunks = chunks;
        let missing = items.values().filter(|item| !self.devices.all().contains_key(&item.id));
        self.missing = missing.copied().collect();
        self.device_items = items;
        Ok(())
    }
}

impl Blocks for FileSystem {
    fn block(&self, expected: &Expected) -> Result<TreeBlock> {
        let cached = self.cache.lock().expect("no thread panicked").find(expected.logical);
        if let Some(block) = cached.filter(|block| block.is(expected)) {
            return Ok(block);
        }
        let fail = |reason: &dyn std::fmt::Display| {
            let name = object::tree_name(expected.tree);
            let mut text = format!("a block of the {name} is lost: {reason}");
            if let Some(parent) = expected.parent {
                text += &format!("; {parent} leads to it");
            }
            Error::corrupt(expected.logical, text)
        };
        let Some(chunk) = self.chunks.find_range(expected.logical, self.node_size() as u64) else {
            return Err(fail(&"no chunk has its address"));
        };
        let mut bytes = vec![0; self.node_size()];
        let mut first = None;
        for mirror in 0..chunk.mirrors() {
            let result = match self.read(chunk, expected.logical, mirror, &mut bytes) {
                Ok(()) => self.check_block(&bytes, expected).map_err(|defect| fail(&defect)),
                Err(error) => Err(fail(&error)),
            };
            match result {
                Ok(block) => {
                    self.cache.lock().expect("no thread panicked").keep(expected.logical, &block);
                    return Ok(block);
                }
                Err(error) => first = first.or(Some(error)),
            }
        }
        if let Some(Ok(block)) = self.rebuild_block(chunk, expected, &mut bytes) {
            self.cache.lock().expect("no thread panicked").keep(expected.logical, &block);
            return Ok(block);
        }
        Err(first.unwrap_or_else(|| fail(&"it has no mirrors")))
    }
}

/// Entry of a tree in the root tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootItem {
    pub(crate) root: TreeRoot,
    /// Progress of the removal of a subvolume. Items before this key are already gone, in blocks of
    /// this level and above.
    pub(crate) removed: Option<(Key, u8)>,
}

impl RootItem {
    pub(crate) fn parse(bytes: &[u8], parent: Parent) -> Option<Self> {
        let root = TreeRoot {
            logical: u64_at(bytes, 176)?,
            level: u8_at(bytes, 238)?,
            generation: u64_at(bytes, 160)?,
            parent,
        };
        let is_removed = u32_at(bytes, 216)? == 0;
        let progress = Key::parse(bytes.get(220..)?)?;
        let removed =
            (is_removed && progress.object != 0).then_some((progress, u8_at(bytes, 237)?));
        Some(Self { root, removed })
    }
}

fn kind_name(flags: u64) -> String {
    let names = [(chunk::DATA, "data"), (chunk::METADATA, "metadata"), (chunk::SYSTEM, "system")];
    let set = names.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name);
    set.collect::<Vec<_>>().join("+")
}

/// Maximum number of devices of a file system, more than any machine has disks.
/// Limit in devices.
const MAX_DEVICES: usize = 4096;

/// States of a device replacement that is in progress.
const STARTED: u64 = 1;
const SUSPENDED: u64 = 4;
