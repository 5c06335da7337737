//! Image formats and their detection from the content of a file.
//!
//! Every known format is recognised, so that no image is hashed as raw by mistake.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::str::FromStr;

use crate::error::{ErrorKind, Result};
use crate::hint::Hint;
use crate::source::Source;
use crate::storage::HostFile;
use crate::unknown_name::UnknownName;

/// An image format, with the name that QEMU uses if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// No format. The content is the bytes of the file.
    Raw,
    /// QEMU copy on write, versions 2 and 3.
    Qcow2,
    /// QEMU copy on write, version 1 (`qcow`).
    Qcow1,
    /// VMware.
    Vmdk,
    /// VirtualBox.
    Vdi,
    /// Hyper-V.
    Vhdx,
    /// Virtual PC (`vpc`, also `vhd`).
    Vpc,
    /// QEMU enhanced disk.
    Qed,
    /// Parallels.
    Parallels,
    /// Linux Unified Key Setup.
    Luks,
    /// Bochs.
    Bochs,
    /// Compressed loop device.
    Cloop,
    /// Apple (`.dmg`, UDIF).
    Dmg,
    /// Expert Witness, as of `EnCase` and FTK (`.E01`).
    Ewf,
    /// partclone, as in backups of Clonezilla.
    Partclone,
    /// Export of a Ceph RBD image, as of `rbd export --export-format 2`.
    Rbd,
    /// Android sparse (`.simg`), as of `img2simg`.
    Simg,
}

impl Format {
    /// Returns the name of the format, in QEMU if that has one.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// Returns whether images of this format are read without another program.
    pub fn is_native(self) -> bool {
        !matches!(self, Self::Luks | Self::Bochs | Self::Cloop)
    }

    /// Returns all formats.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(format, _)| *format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "vhd" => Ok(Self::Vpc),
            "qcow1" => Ok(Self::Qcow1),
            _ => NAMES.iter().find(|(_, n)| *n == name).map(|(f, _)| *f).ok_or(UnknownName::FORMAT),
        }
    }
}

/// Detects the format of a file from `head`, its first bytes. Needs [`PROBE_SIZE`] bytes. With fewer,
/// some formats are not recognised.
///
/// Returns `None` for everything else: a raw image, or a format whose magic is at the end of the file.
pub fn probe(head: &[u8]) -> Option<Format> {
    let starts = |magic: &[u8]| head.starts_with(magic);
    match () {
        () if starts(b"QFI\xfb\0\0\0\x01") => Some(Format::Qcow1),
        () if starts(b"QFI\xfb") => Some(Format::Qcow2),
        () if starts(b"KDMV") || starts(b"COWD") || is_vmdk_descriptor(head) => Some(Format::Vmdk),
        () if head.get(64..68) == Some(b"\x7f\x10\xda\xbe") => Some(Format::Vdi),
        () if starts(b"vhdxfile") => Some(Format::Vhdx),
        () if starts(b"conectix") => Some(Format::Vpc),
        () if starts(b"QED\0") => Some(Format::Qed),
        () if starts(b"WithoutFreeSpace") || starts(b"WithouFreSpacExt") => Some(Format::Parallels),
        () if starts(b"LUKS\xba\xbe") => Some(Format::Luks),
        () if starts(b"Bochs Virtual HD Image") => Some(Format::Bochs),
        () if starts(b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop") => Some(Format::Cloop),
        () if starts(b"EVF\x09\r\n\xff\0") => Some(Format::Ewf),
        () if starts(b"partclone-image") => Some(Format::Partclone),
        () if starts(b"rbd image v2\n") => Some(Format::Rbd),
        () if starts(b"\x3a\xff\x26\xed") => Some(Format::Simg),
        () => None,
    }
}

/// Number of bytes that [`probe`] examines.
pub const PROBE_SIZE: usize = 512;

/// Detects the format of a file from its first and last bytes. An unknown format is raw.
///
/// A guest with a fixed vpc image can write the magic of another format to the start of the file, but
/// cannot reach the end. If both are present, the format is ambiguous and this fails.
///
/// `head` is the first [`PROBE_SIZE`] bytes, all of a shorter file, or more.
pub(crate) fn probe_file(file: &HostFile, head: &[u8]) -> Result<Format> {
    let reads_end = !file.reads_forward();
    let found =
        probe_with(head, file.size(), reads_end, |buf, offset| file.read_exact_at(buf, offset))?;
    found.map_err(|reason| file.error(ErrorKind::Format, reason).with_hint(Hint::Format))
}

/// Detects the format of the content of an image as of a file. The content of a disk is raw; other content is an
/// image in an image. An ambiguous one is vpc.
///
/// `head` is the first [`PROBE_SIZE`] bytes, all of shorter content, or more.
///
/// # Errors
///
/// Fails if the end of the content cannot be read.
pub fn detect_within(source: &dyn Source, head: &[u8]) -> Result<Format> {
    let read = |buf: &mut [u8], offset| source.read_exact_at(buf, offset);
    let found = probe_with(head, source.size(), true, read)?;
    Ok(found.unwrap_or(Format::Vpc))
}

/// Detects the format of the `size` bytes of an open file in the same way.
pub(crate) fn probe_open(file: &File, size: u64) -> io::Result<Format> {
    let read = |buf: &mut [u8], offset| file.read_exact_at(buf, offset);
    let mut head = vec![0; size.min(PROBE_SIZE as u64) as usize];
    read(&mut head, 0)?;
    probe_with(&head, size, true, read)?.map_err(io::Error::other)
}

/// Detects a format from the first bytes, and the last ones with `read`, which fills a buffer from an offset on. The inner
/// error is the reason why the format is ambiguous.
fn probe_with<E>(
    head: &[u8],
    size: u64,
    reads_end: bool,
    read: impl Fn(&mut [u8], u64) -> std::result::Result<(), E>,
) -> std::result::Result<std::result::Result<Format, String>, E> {
    let first = probe(&head[..head.len().min(PROBE_SIZE)]);
    if size < FOOTER_SIZE || !reads_end {
        return Ok(Ok(first.unwrap_or(Format::Raw)));
    }
    let mut footer = [0; FOOTER_SIZE as usize];
    read(&mut footer, size - FOOTER_SIZE)?;
    Ok(probe_ends(first, &footer))
}

/// Detects a format from the one of the first bytes and from the last sector.
fn probe_ends(
    first: Option<Format>,
    footer: &[u8; FOOTER_SIZE as usize],
) -> std::result::Result<Format, String> {
    match first {
        None | Some(Format::Vpc) => {}
        Some(first) if is_fixed_vpc(footer) => {
            return Err(format!("begins like a {first} image and ends like a vpc image"));
        }
        Some(first) => return Ok(first),
    }
    Ok(first.or_else(|| probe_footer(footer)).unwrap_or(Format::Raw))
}

/// Detects the format of an image that has its header at its end from its last sector.
pub(crate) fn probe_footer(footer: &[u8]) -> Option<Format> {
    match () {
        () if footer.len() as u64 != FOOTER_SIZE => None,
        // Virtual PC before 2004 wrote a footer that is one byte shorter.
        () if footer.starts_with(VPC) || footer[1..].starts_with(VPC) => Some(Format::Vpc),
        () if footer.starts_with(b"koly") => Some(Format::Dmg),
        () => None,
    }
}

/// Returns whether a sector is the footer of a fixed vpc image with a valid checksum.
fn is_fixed_vpc(footer: &[u8; FOOTER_SIZE as usize]) -> bool {
    let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| footer[at + i]));
    let sum = |range: &[u8]| range.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    footer.starts_with(VPC)
        && number(60) == 2
        && number(64) == !(sum(&footer[..64]) + sum(&footer[68..]))
}

/// Returns whether a text file describes a VMware disk: comments and blank lines, then its version.
fn is_vmdk_descriptor(head: &[u8]) -> bool {
    for line in head.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.starts_with(b"# Disk DescriptorFile") || line.starts_with(b"#DiskDescriptorFile") {
            return true;
        }
        if !line.is_empty() && !line.starts_with(b"#") {
            let number = line.strip_prefix(b"version=").unwrap_or_default();
            return matches!(number, b"1" | b"2" | b"3");
        }
    }
    false
}

const VPC: &[u8] = b"conectix";

/// Footers fill the last sector.
const FOOTER_SIZE: u64 = 512;

/// In the order of the enum.
const NAMES: [(Format, &str); 17] = [
    (Format::Raw, "raw"),
    (Format::Qcow2, "qcow2"),
    (Format::Qcow1, "qcow"),
    (Format::Vmdk, "vmdk"),
    (Format::Vdi, "vdi"),
    (Format::Vhdx, "vhdx"),
    (Format::Vpc, "vpc"),
    (Format::Qed, "qed"),
    (Format::Parallels, "parallels"),
    (Format::Luks, "luks"),
    (Format::Bochs, "bochs"),
    (Format::Cloop, "cloop"),
    (Format::Dmg, "dmg"),
    (Format::Ewf, "ewf"),
    (Format::Partclone, "partclone"),
    (Format::Rbd, "rbd"),
    (Format::Simg, "simg"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use std::sync::Arc;

    #[test]
    fn names_and_formats_convert_both_ways() {
        for (format, name) in NAMES {
            assert_eq!((format.name(), name.parse()), (name, Ok(format)));
        }
        assert_eq!("vhd".parse(), Ok(Format::Vpc));
        assert_eq!("QCOW2".parse::<Format>(), Err(UnknownName::FORMAT));
    }

    #[test]
    fn first_bytes() {
        let vdi = [&[b'<'; 64][..], b"\x7f\x10\xda\xbe"].concat();
        let cases: [(&[u8], Option<Format>); 22] = [
            (b"", None),
            (b"\0", None),
            (b"QFI", None),
            (b"QFI\xfb\0\0\0\x03", Some(Format::Qcow2)),
            (b"QFI\xfb\0\0\0\x01", Some(Format::Qcow1)),
            (b"KDMV\x01", Some(Format::Vmdk)),
            (b"# Disk DescriptorFile\nversion=1\n", Some(Format::Vmdk)),
            (b"# a comment\n\nversion=2\nCID=1", Some(Format::Vmdk)),
            (b"#!/bin/sh\nversion=9", None),
            (&vdi, Some(Format::Vdi)),
            (b"vhdxfile", Some(Format::Vhdx)),
            (b"conectix", Some(Format::Vpc)),
            (b"QED\0", Some(Format::Qed)),
            (b"WithouFreSpacExt", Some(Format::Parallels)),
            (b"LUKS\xba\xbe\0\x02", Some(Format::Luks)),
            (b"EVF\x09\r\n\xff\0\x01", Some(Format::Ewf)),
            (b"LVF\x09\r\n\xff\0\x01", None),
            (b"partclone-image\0", Some(Format::Partclone)),
            (b"rbd image v2\n", Some(Format::Rbd)),
            (b"rbd diff v2\n", None),
            (b"\x3a\xff\x26\xed\x01\0", Some(Format::Simg)),
            (b"QED ", None),
        ];
        for (head, format) in cases {
            assert_eq!(probe(head), format, "{}", head.escape_ascii());
        }
    }

    #[test]
    fn a_guest_cannot_turn_its_vpc_into_something_else() {
        let mut bytes = vec![0; 4096];
        bytes[..4].copy_from_slice(b"QFI\xfb");
        bytes[3584..3592].copy_from_slice(b"conectix");
        bytes[3584 + 63] = 2;
        let probe = |bytes: &[u8]| {
            let storage = Box::new(Memory(bytes.to_vec()));
            let file = HostFile::new("x".into(), storage, Arc::default());
            probe_file(&file, &bytes[..PROBE_SIZE])
        };
        assert_eq!(probe(&bytes).unwrap(), Format::Qcow2);
        let sum: u32 = bytes[3584..].iter().map(|byte| u32::from(*byte)).sum();
        bytes[3584 + 64..3584 + 68].copy_from_slice(&(!sum).to_be_bytes());
        let error = probe(&bytes).unwrap_err();
        assert_eq!(error.hint(), Some(Hint::Format));
        bytes[..4].fill(0);
        assert_eq!(probe(&bytes).unwrap(), Format::Vpc);
    }

    #[test]
    fn footers() {
        for (size, at, magic, format) in [
            (4096, 4096 - 512, "conectix", Format::Vpc),
            (4096, 4096 - 511, "conectix", Format::Vpc),
            (4096, 4096 - 512, "koly", Format::Dmg),
            (4096, 2048, "koly", Format::Raw),
            (100, 0, "koly", Format::Raw),
        ] {
            let mut bytes = vec![0; size];
            bytes[at..at + magic.len()].copy_from_slice(magic.as_bytes());
            let head = bytes[..size.min(PROBE_SIZE)].to_vec();
            let file = HostFile::new("x".into(), Box::new(Memory(bytes)), Arc::default());
            assert_eq!(probe_file(&file, &head).unwrap(), format, "{magic} at {at}");
        }
    }
}
