//! What a destination holds already.

use blkhash::is_zero;
use blkimage::{Format, PROBE_SIZE, Source, partition, probe};

/// Returns what the content of a device or an export is, if it would be lost: the name of a file system, a container or a
/// format, a partition table, or other data at the start. `None` if the start is zeros.
///
/// # Errors
///
/// Fails if the content cannot be read.
pub fn holds(content: &dyn Source) -> blkimage::Result<Option<String>> {
    let mut head = vec![0; content.size().min(HEAD) as usize];
    content.read_exact_at(&mut head, 0)?;
    let at =
        |offset: usize, magic: &[u8]| head.get(offset..).is_some_and(|it| it.starts_with(magic));
    if let Some((_, _, name)) = SIGNATURES.iter().find(|(offset, magic, _)| at(*offset, magic)) {
        return Ok(Some((*name).to_owned()));
    }
    let table = partition::table(content).unwrap_or_default();
    if !table.partitions.is_empty() {
        let count = table.partitions.len();
        let plural = if count == 1 { "" } else { "s" };
        return Ok(Some(format!("a partition table with {count} partition{plural}")));
    }
    match probe(&head[..head.len().min(PROBE_SIZE)]).filter(|format| *format != Format::Raw) {
        Some(format) => Ok(Some(format!("a {format} image"))),
        None if is_zero(&head) => Ok(None),
        None => Ok(Some("data".to_owned())),
    }
}

/// Offset, magic and name of file systems and containers.
const SIGNATURES: [(usize, &[u8], &str); 16] = [
    (0x438, b"\x53\xef", "an ext file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a btrfs file system"),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (0x36, b"FAT1", "a FAT file system"),
    (0x52, b"FAT32", "a FAT file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0, b"hsqs", "a SquashFS file system"),
    (0xff6, b"SWAPSPACE2", "a swap area"),
    (0, b"LUKS\xba\xbe", "a LUKS container"),
    (0x200, b"LABELONE", "an LVM physical volume"),
    (0x1000, b"\xfc\x4e\x2b\xa9", "a member of a RAID of md"),
    (0, b"\xfc\x4e\x2b\xa9", "a member of a RAID of md"),
    (0x1018, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "a bcache device"),
];

/// Number of bytes at the start that are read.
const HEAD: u64 = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use blkimage::{Memory, OpenOptions};

    fn found(bytes: Vec<u8>) -> Option<String> {
        let image =
            OpenOptions::new().format(Format::Raw).open_storage(Box::new(Memory(bytes)), "x");
        holds(&image.unwrap()).unwrap()
    }

    #[test]
    fn what_would_be_lost_is_named() {
        assert_eq!(found(Vec::new()), None);
        assert_eq!(found(vec![0; 1 << 20]), None);
        let with = |offset: usize, magic: &[u8]| {
            let mut bytes = vec![0; 256 << 10];
            bytes[offset..offset + magic.len()].copy_from_slice(magic);
            bytes
        };
        for (offset, magic, name) in SIGNATURES {
            assert_eq!(found(with(offset, magic)).as_deref(), Some(name));
        }
        assert_eq!(found(with(0, b"QFI\xfb\0\0\0\x03")).as_deref(), Some("a qcow2 image"));
        assert_eq!(found(with(7, b"x")).as_deref(), Some("data"));
        assert_eq!(found(with(200 << 10, b"x")), None);
    }
}
