//! What the blocks of an inode are for, and runs of them.

use super::block_set::IN_USE;
use super::inode::{FileType, Inode, flags};
use super::run::Run;
use super::superblock::{Superblock, compat, incompat, ro_compat};
use super::walk::Walk;
use crate::error::Result;
use crate::visitor::{ObjectId, Owner};

/// What the blocks of an inode are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Content.
    Content,
    /// Content up to a block of the file, then the Merkle tree of fs-verity.
    Verity {
        tree: u64,
    },
    Directory,
    Journal,
    /// The list of inodes that were deleted while open.
    Orphans,
    /// Group descriptors that do not exist yet, in places that are known.
    Resize,
    /// A structure of this name.
    Structure(&'static str),
    /// There are no blocks.
    Nothing,
}

/// The inode whose blocks are being mapped.
pub(super) struct File {
    pub object: ObjectId,
    pub role: Role,
    /// The state that checksums of its blocks begin with.
    pub seed: u32,
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a directory with a hash tree.
    pub is_index: bool,
    /// Number of blocks of the directory that are damaged.
    pub bad_blocks: u64,
    /// The block of the file after the last run.
    pub next: u64,
    run: Option<Run>,
}

impl Role {
    pub fn new(inode: &Inode<'_>, superblock: &Superblock) -> Self {
        let number = inode.number;
        let is_special = |has_feature: bool, special: u64| has_feature && number == special;
        if number == BAD_BLOCKS {
            return Self::Structure("bad blocks");
        }
        if is_special(superblock.compat(compat::HAS_JOURNAL), superblock.journal_inode) {
            return Self::Journal;
        }
        if is_special(superblock.compat(compat::RESIZE_INODE), RESIZE) {
            return Self::Resize;
        }
        if superblock.ro_compat(ro_compat::QUOTA) && superblock.quota_inodes.contains(&number) {
            return Self::Structure("quota file");
        }
        if is_special(superblock.compat(compat::ORPHAN_FILE), superblock.orphan_inode) {
            return Self::Orphans;
        }
        if superblock.incompat(incompat::EA_INODE) && inode.has(flags::EA_INODE) {
            return Self::Structure("xattr inode");
        }
        match inode.file_type() {
            FileType::Directory => Self::Directory,
            FileType::Regular if inode.has(flags::VERITY) => {
                let tree = inode.size().div_ceil(VERITY_ALIGNMENT).saturating_mul(VERITY_ALIGNMENT);
                Self::Verity { tree: tree / superblock.block_size }
            }
            FileType::Symlink if inode.is_fast_symlink() => Self::Nothing,
            FileType::Regular | FileType::Symlink => Self::Content,
            FileType::Other => Self::Nothing,
        }
    }
}

impl Walk<'_> {
    /// Follows the map of an inode's blocks.
    pub fn map(&mut self, inode: &Inode<'_>, role: Role) -> Result<()> {
        let mut file = File {
            object: inode.number,
            role,
            seed: self.sums.inode_seed(inode.number, inode.generation()),
            size: inode.size(),
            is_index: inode.has(flags::INDEX),
            bad_blocks: 0,
            next: 0,
            run: None,
        };
        if role == Role::Resize {
            self.map_resize_inode(inode);
        } else if inode.has(flags::EXTENTS) {
            self.map_extents(&mut file, inode)?;
        } else {
            self.map_indirect(&mut file, inode)?;
        }
        match file.run.take() {
            Some(run) => self.use_run(&mut file, run),
            None => Ok(()),
        }
    }

    /// Adds the next blocks of a file.
    pub fn add_run(&mut self, file: &mut File, run: Run) -> Result<()> {
        file.next = run.logical + run.count;
        match &mut file.run {
            Some(last)
                if last.logical + last.count == run.logical
                    && last.physical + last.count == run.physical
                    && last.is_written == run.is_written =>
            {
                last.count += run.count;
                Ok(())
            }
            last => match last.replace(run) {
                Some(last) => self.use_run(file, last),
                None => Ok(()),
            },
        }
    }

    fn use_run(&mut self, file: &mut File, run: Run) -> Result<()> {
        let object = file.object;
        match file.role {
            Role::Content => self.emit_content(object, run),
            Role::Verity { tree } => {
                let count = tree.saturating_sub(run.logical).min(run.count);
                self.emit_content(object, Run { count, ..run });
                let owner = Owner::Metadata { structure: "Merkle tree", object: Some(object) };
                self.emit_blocks(run.physical + count, run.count - count, owner);
            }
            Role::Directory => {
                self.emit_blocks(run.physical, run.count, Owner::Directory { object });
                self.read_directory(file, run)?;
            }
            Role::Journal => {
                self.emit_blocks(run.physical, run.count, Owner::Journal);
                if let Some(runs) = &mut self.collected
                    && runs.len() < MAX_JOURNAL_RUNS
                {
                    runs.push(run);
                }
            }
            Role::Orphans => {
                let owner = Owner::Metadata { structure: "orphan file", object: Some(object) };
                self.emit_blocks(run.physical, run.count, owner);
                self.check_orphan_file(file, run)?;
            }
            Role::Structure(structure) => {
                let owner = Owner::Metadata { structure, object: Some(object) };
                self.emit_blocks(run.physical, run.count, owner);
            }
            Role::Resize | Role::Nothing => {}
        }
        Ok(())
    }

    fn emit_content(&mut self, object: ObjectId, run: Run) {
        let offset = run.logical.saturating_mul(self.superblock.block_size);
        self.emit_blocks(run.physical, run.count, Owner::File { object, offset });
    }

    /// Reads a block of an inode's map into `buffer`. Returns whether that was possible. If not, the problem was reported.
    pub fn read_map_block(
        &mut self,
        file: &File,
        block: u64,
        structure: &'static str,
        buffer: &mut Vec<u8>,
    ) -> Result<bool> {
        let (object, offset) =
            (Some(file.object), block.saturating_mul(self.superblock.block_size));
        let defect = if !self.superblock.contains(block, 1) {
            "does not exist"
        } else if !self.seen.maps.insert(block) {
            IN_USE
        } else {
            self.check_use(block, structure, object);
            self.emit_blocks(block, 1, Owner::Metadata { structure, object });
            buffer.resize(self.superblock.block_size as usize, 0);
            return self.read(buffer, block, structure, object);
        };
        self.damaged(structure, offset, object, format!("block {block} {defect}"));
        Ok(false)
    }
}

const BAD_BLOCKS: u64 = 1;
const RESIZE: u64 = 7;

/// Multiple of bytes at which the Merkle tree of a file begins.
const VERITY_ALIGNMENT: u64 = 65536;

/// Maximum number of runs of blocks of a journal.
/// Limit in runs.
const MAX_JOURNAL_RUNS: usize = 1 << 16;
