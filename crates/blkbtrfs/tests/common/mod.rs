//! Real file systems in memory, and ways to damage them while keeping checksums valid.

#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use blkbtrfs::{Device, FileSystem, Finding, Options, Summary, verify};
use blkhash::{Algorithm, Digester};
use blkimage::{Error, ErrorKind, Extent, ExtentKind, Source};

/// A disk with a file system that has sectors and tree blocks of 4 KiB and crc32c checksums.
#[derive(Clone)]
pub struct Disk {
    pub bytes: Arc<Vec<u8>>,
}

/// A tree block on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub physical: usize,
    pub logical: u64,
    pub owner: u64,
    pub level: u8,
    pub count: u32,
}

/// Result of a verification.
pub type Verdict = Result<(Summary, Vec<Finding>), String>;

/// Returns whether mkfs.btrfs is missing here, and reports that. `make test` installs it.
pub fn lacks_mkfs() -> bool {
    let is_missing = mkfs().arg("--version").output().is_err();
    if is_missing {
        println!("skipped: mkfs.btrfs is missing (Debian: btrfs-progs)");
    }
    is_missing
}

fn mkfs() -> Command {
    let mut command = Command::new("mkfs.btrfs");
    command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    command
}

impl Disk {
    /// Creates a small file system with files, using mkfs.btrfs.
    pub fn real(options: &[&str]) -> Self {
        let files: Vec<_> =
            (0..150u8).map(|number| (format!("folder/file {number}"), [number; 5000])).collect();
        let files: Vec<_> =
            files.iter().map(|(name, content)| (name.as_str(), &content[..])).collect();
        Self::of_files(&files, options)
    }

    /// Creates a file system with these names and contents. Names may have a folder `folder`.
    pub fn of_files(content: &[(&str, &[u8])], options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        fs::create_dir_all(files.join("folder")).unwrap();
        for (name, bytes) in content {
            fs::write(files.join(name), bytes).unwrap();
        }
        let image = folder.path().join("image");
        let output = mkfs()
            .args(["-q", "--nodesize", "4k", "-r"])
            .args([&files])
            .args(options)
            .arg(&image)
            .output()
            .expect("mkfs.btrfs is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { bytes: Arc::new(fs::read(image).unwrap()) }
    }

    /// Creates the smallest possible file system, with data and metadata in the same chunks.
    pub fn mixed() -> Self {
        Self::real(&["--mixed", "-b", "16M"])
    }

    pub fn verify(&self) -> Verdict {
        let started = Instant::now();
        let source = Arc::new(Shared(self.bytes.clone()));
        let device = Device { name: "disk".into(), source };
        let filesystem = FileSystem::open(vec![device]).map_err(|error| error.to_string())?;
        let findings = Mutex::new(Vec::new());
        let options = Options::default().with_threads(1);
        let summary =
            verify(&filesystem, &options, &|_| ControlFlow::Continue(()), &|finding: &Finding| {
                findings.lock().unwrap().push(finding.clone());
            });
        assert!(started.elapsed() < Duration::from_secs(60), "it takes {:?}", started.elapsed());
        Ok((summary.map_err(|error| error.to_string())?, findings.into_inner().unwrap()))
    }

    /// Returns the tree blocks in use.
    pub fn blocks(&self) -> Vec<Block> {
        let fsid = &self.bytes[SUPERBLOCK + 0x20..][..16];
        let mut all: HashMap<u64, (u64, Block)> = HashMap::new();
        for (index, bytes) in self.bytes.chunks_exact(BLOCK).enumerate() {
            let physical = index * BLOCK;
            let is_block = &bytes[0x20..0x30] == fsid && bytes[..4] == checksum(bytes);
            if !is_block || physical == SUPERBLOCK {
                continue;
            }
            let logical = u64_at(bytes, 0x30);
            let (owner, level) = (u64_at(bytes, 0x58), bytes[0x64]);
            let count = u64_at(bytes, 0x60) as u32;
            let generation = u64_at(bytes, 0x50);
            let block = Block { physical, logical, owner, level, count };
            // Old versions of blocks that mkfs wrote several times are still there.
            if all.get(&logical).is_none_or(|(known, _)| *known <= generation) {
                all.insert(logical, (generation, block));
            }
        }
        let superblock = &self.bytes[SUPERBLOCK..];
        let mut todo = vec![u64_at(superblock, 0x50), u64_at(superblock, 0x58)];
        let mut used = Vec::new();
        while let Some(logical) = todo.pop() {
            let (_, block) = all[&logical];
            used.push(block);
            let bytes = &self.bytes[block.physical..][..BLOCK];
            for index in 0..block.count as usize {
                let (pointer, item) = (0x65 + index * 0x21, 0x65 + index * 0x19);
                if block.level > 0 {
                    todo.push(u64_at(bytes, pointer + 17));
                } else if block.owner == 1 && bytes[item + 8] == 132 {
                    let data = 0x65 + u64_at(bytes, item + 17) as u32 as usize;
                    todo.push(u64_at(bytes, data + 176));
                }
            }
        }
        used
    }

    /// Returns the first block of a tree on a level.
    pub fn block(&self, owner: u64, level: u8) -> Block {
        let blocks = self.blocks();
        let found = blocks.iter().find(|it| (it.owner, it.level) == (owner, level));
        *found.unwrap_or_else(|| panic!("no block of tree {owner} on level {level}: {blocks:?}"))
    }

    /// Changes a block and updates its checksum.
    pub fn change_block(&mut self, block: Block, change: impl FnOnce(&mut [u8])) {
        let bytes = &mut Arc::make_mut(&mut self.bytes)[block.physical..][..BLOCK];
        change(bytes);
        let sum = checksum(bytes);
        bytes[..4].copy_from_slice(&sum);
    }

    /// Changes the stripes of all data and metadata chunks. `stripes` maps the address, length and
    /// offset of a chunk to the devices and offsets of its stripes. Does not move data.
    pub fn change_stripes(
        &mut self,
        profile: u64,
        mut stripes: impl FnMut(u64, usize, usize) -> Vec<(u64, usize)>,
    ) {
        let leaf = self.block(CHUNK_TREE, 0);
        self.change_block(leaf, |bytes| {
            let heads: Vec<_> =
                (0..leaf.count as usize).map(|index| HEADER + index * ITEM).collect();
            let mut end = BLOCK - HEADER;
            let mut all = Vec::new();
            for head in heads {
                let place = u64_at(bytes, head + 17);
                let (start, length) = (HEADER + place as u32 as usize, (place >> 32) as usize);
                let mut data = bytes[start..start + length].to_vec();
                // System chunks are also in the superblock and stay unchanged.
                if bytes[head + 8] == CHUNK && u64_at(&data, 0x18) & 2 == 0 {
                    let (length, offset) =
                        (u64_at(&data, 0) as usize, u64_at(&data, 0x38) as usize);
                    let uuid = data[0x40..0x50].to_vec();
                    let flags = u64_at(&data, 0x18) | profile;
                    let new = stripes(u64_at(bytes, head + 9), length, offset);
                    data.truncate(0x30);
                    data[0x18..0x20].copy_from_slice(&flags.to_le_bytes());
                    data[0x2c..0x2e].copy_from_slice(&(new.len() as u16).to_le_bytes());
                    for (device, offset) in new {
                        data.extend(device.to_le_bytes());
                        data.extend((offset as u64).to_le_bytes());
                        data.extend(&uuid);
                    }
                }
                end -= data.len();
                let place = end as u64 | (data.len() as u64) << 32;
                bytes[head + 17..][..8].copy_from_slice(&place.to_le_bytes());
                all.push((end, data));
            }
            for (start, data) in all {
                bytes[HEADER + start..][..data.len()].copy_from_slice(&data);
            }
        });
    }

    /// Changes the first superblock and updates its checksum.
    pub fn change_superblock(&mut self, change: impl FnOnce(&mut [u8])) {
        let block = Block { physical: SUPERBLOCK, logical: 0, owner: 0, level: 0, count: 0 };
        self.change_block(block, change);
    }
}

/// Bytes in memory as a source, without a copy.
pub struct Shared(pub Arc<Vec<u8>>);

impl Source for Shared {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn extent(&self, offset: u64, limit: u64) -> blkimage::Result<Extent> {
        let length = limit.min(self.size() - offset);
        Ok(Extent { offset, length, kind: ExtentKind::Data })
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> blkimage::Result<()> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let Some(bytes) = rest.and_then(|rest| rest.get(..buf.len())) else {
            return Err(Error::new(ErrorKind::Argument, "disk", "read past its end").at(offset));
        };
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

pub fn checksum(block: &[u8]) -> [u8; 4] {
    let digest = Digester::new(Algorithm::Crc32c).digest(&block[32..]);
    let mut sum: [u8; 4] = digest.as_bytes().try_into().unwrap();
    sum.reverse();
    sum
}

pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..][..8].try_into().unwrap())
}

pub const BLOCK: usize = 4096;
pub const SUPERBLOCK: usize = 64 << 10;
pub const HEADER: usize = 0x65;
pub const ITEM: usize = 0x19;
const CHUNK_TREE: u64 = 3;
const CHUNK: u8 = 228;

/// Flags of chunks.
pub const RAID5: u64 = 1 << 7;
pub const RAID6: u64 = 1 << 8;

/// Number of a device that does not exist.
pub const MISSING: u64 = 99;
