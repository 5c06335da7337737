//! What a volume holds by its magic bytes: kinds without a reader, and btrfs.

use std::sync::Arc;

use blkimage::Source;

use crate::file_system::FileSystem;

/// Returns the name of a kind without a reader, by its magic bytes.
///
/// # Errors
///
/// Fails if the places of magic bytes cannot be read.
pub fn signature(source: &dyn Source) -> blkimage::Result<Option<&'static str>> {
    for (name, offset, magic) in KINDS {
        if has(source, *offset, magic)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns whether a volume is a btrfs, and its superblock not what is left of one before.
///
/// `mke2fs`, `mkswap` and others leave the first superblock, and all of them leave the copies. Therefore, a volume in which
/// anything else is recognised is none. If the first superblock was destroyed, a copy tells.
///
/// # Errors
///
/// Fails if the places of magic bytes cannot be read.
pub fn has_btrfs(source: &Arc<dyn Source>) -> blkimage::Result<bool> {
    if !has(&**source, BTRFS_MAGIC_AT, BTRFS_MAGIC)? && !blkbtrfs::has_magic(&**source)? {
        return Ok(false);
    }
    for magic in IN_FRONT {
        if has(&**source, 0, magic)? {
            return Ok(false);
        }
    }
    // A file system that cannot be opened is one all the same.
    Ok(matches!(FileSystem::open(source.clone()), Ok(None)) && signature(&**source)?.is_none())
}

/// Returns whether these bytes are there.
fn has(source: &dyn Source, offset: u64, magic: &[u8]) -> blkimage::Result<bool> {
    if offset.saturating_add(magic.len() as u64) > source.size() {
        return Ok(false);
    }
    let mut bytes = vec![0; magic.len()];
    source.read_exact_at(&mut bytes, offset)?;
    Ok(bytes == magic)
}

/// Offset of the magic bytes of a btrfs.
const BTRFS_MAGIC_AT: u64 = (64 << 10) + 64;

const BTRFS_MAGIC: &[u8] = b"_BHRfS_M";

/// First bytes of LUKS, both headers, and of dm-verity.
const IN_FRONT: [&[u8]; 3] = [b"LUKS\xba\xbe", b"SKUL\xba\xbe", b"verity\0\0"];

/// Names as `blkid` prints them.
const KINDS: &[(&str, u64, &[u8])] = &[
    ("squashfs", 0, b"hsqs"),
    ("erofs", 1024, b"\xe2\xe1\xf5\xe0"),
    ("swap", 4086, b"SWAPSPACE2"),
    ("swap", 16374, b"SWAPSPACE2"),
    ("swap", 65526, b"SWAPSPACE2"),
    ("iso9660", 32769, b"CD001"),
    ("udf", 32769, b"BEA01"),
    ("f2fs", 1024, b"\x10\x20\xf5\xf2"),
    ("bitlocker", 3, b"-FVE-FS-"),
    ("refs", 3, b"ReFS\0\0\0\0"),
    ("apfs", 32, b"NXSB"),
    ("hfsplus", 1024, b"H+\0\x04"),
    ("hfsplus", 1024, b"HX\0\x05"),
    ("jfs", 32768, b"JFS1"),
    ("reiserfs", 65588, b"ReIsEr"),
    ("bcachefs", 4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    ("bcachefs", 4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    ("nilfs2", 1030, b"\x34\x34"),
    ("zfs_member", 131_072, b"\x0c\xb1\xba\x00\x00\x00\x00\x00"),
    ("linux_raid_member", 4096, b"\xfc\x4e\x2b\xa9"),
    ("linux_raid_member", 0, b"\xfc\x4e\x2b\xa9"),
];

#[cfg(test)]
mod tests {
    use blkimage::{Format, Memory, OpenOptions};

    use super::*;

    /// A volume with a first superblock of btrfs, and other bytes.
    fn volume(others: &[(usize, &[u8])]) -> Arc<dyn Source> {
        let mut bytes = vec![0; 1 << 20];
        for (at, others) in [(BTRFS_MAGIC_AT as usize, BTRFS_MAGIC)].iter().chain(others) {
            bytes[*at..*at + others.len()].copy_from_slice(others);
        }
        let options = OpenOptions::new().format(Format::Raw);
        Arc::new(options.open_storage(Box::new(Memory(bytes)), "disk").unwrap())
    }

    #[test]
    fn superblocks_that_are_left() {
        assert!(has_btrfs(&volume(&[])).unwrap());
        assert!(has_btrfs(&volume(&[(510, b"\x55\xaa")])).unwrap());
        assert!(!has_btrfs(&volume(&[(BTRFS_MAGIC_AT as usize, b"?")])).unwrap());
        let in_front: [(usize, &[u8]); 5] = [
            (0, b"LUKS\xba\xbe"),
            (0, b"hsqs"),
            (4086, b"SWAPSPACE2"),
            (1024, b"\xe2\xe1\xf5\xe0"),
            // An ext4 that cannot be opened.
            (1080, b"\x53\xef"),
        ];
        for other in in_front {
            assert!(!has_btrfs(&volume(&[other])).unwrap(), "{other:?}");
        }
    }
}
