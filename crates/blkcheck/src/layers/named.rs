//! File systems and other content of which only the name is told.

use crate::window::Window;

/// Returns the name of a kind without a reader, by its magic bytes.
pub(crate) fn name(window: &Window) -> blkimage::Result<Option<&'static str>> {
    for (name, offset, magic) in KINDS {
        if window.read(*offset, magic.len() as u64)? == *magic {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns whether a kind has checksums that are not verified.
pub(crate) fn has_checksums(name: &str) -> bool {
    matches!(
        name,
        "apfs"
            | "bcachefs"
            | "bitlocker"
            | "f2fs"
            | "linux_raid_member"
            | "nilfs2"
            | "refs"
            | "udf"
            | "zfs_member"
    )
}

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
