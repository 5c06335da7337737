//! The kinds of files that are no raw disks, by the ends of their names and by their first bytes.

use std::ffi::OsStr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::signatures::Signature::{Bytes, Test};
use super::signatures::{self, Signature};
use super::text;
use super::way::Way;
use crate::compression::Compression;
use crate::location::telling;
use crate::probe::Format;

/// A kind of files that are no raw disks.
pub struct FileKind {
    /// With an article: "a zip archive".
    noun: &'static str,
    role: Role,
    /// Ends of names, in lower case and without the dot.
    extensions: &'static [&'static str],
    signatures: &'static [Signature],
    way: Way,
}

/// What a file of a kind is here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// An image, which [`probe`](crate::probe()) recognises.
    Image(Format),
    /// A compressed file.
    Compressed(Compression),
    /// A tar archive, which may be compressed.
    Archive,
    /// A file whose content cannot be recognised.
    Unseen,
    /// A part of a file that `split` cut, which may begin like that.
    Part,
    /// Any other file.
    Other,
}

impl FileKind {
    /// Returns the kind that the end of a name promises, which is a path or a URL.
    ///
    /// Flat extents of a vmdk are raw.
    pub fn of_name(name: &Path) -> Option<&'static Self> {
        let name = &*telling(name);
        let extension = name.extension()?.to_str()?.to_ascii_lowercase();
        let is_named = |kind: &&Self| match kind.role {
            Role::Part => is_part(name, &extension),
            _ => kind.extensions.contains(&&*extension),
        };
        let kind = KINDS.iter().find(is_named)?;
        (kind.format() != Some(Format::Vmdk) || !is_flat_extent(name)).then_some(kind)
    }

    /// Returns the kind of content that begins with `head`, of which at most [`HEAD_SIZE`](super::HEAD_SIZE) bytes are examined.
    /// Images of known formats are not among them.
    pub fn of_head(head: &[u8]) -> Option<&'static Self> {
        if let Some(compression) = signatures::compression(head) {
            let role = Role::Compressed(compression);
            return KINDS.iter().find(|kind| kind.role == role);
        }
        KINDS.iter().find(|kind| kind.signatures.iter().any(|signature| signature.matches(head)))
    }

    /// Returns the format if it is one of images.
    pub fn format(&self) -> Option<Format> {
        match self.role {
            Role::Image(format) => Some(format),
            _ => None,
        }
    }

    /// Returns the compression if it is one of compressed files.
    pub fn compression(&self) -> Option<Compression> {
        match self.role {
            Role::Compressed(compression) => Some(compression),
            _ => None,
        }
    }

    /// Returns how to get a disk out of such a file.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Returns whether a raw disk that begins with `head` may have the name of this kind.
    pub(super) fn may_be(&self, head: &[u8]) -> bool {
        match self.format() {
            // The header may be in another file.
            Some(Format::Luks) => true,
            // Some are raw disks, as those that programs on Linux make.
            Some(Format::Dmg) => signatures::is_disk_of_apple(head),
            _ => false,
        }
    }

    /// Returns whether a file of this kind is stored as one of `other`.
    pub(super) fn holds(&self, other: &Self) -> bool {
        match self.role {
            Role::Archive => other.role == Role::Archive || other.compression().is_some(),
            Role::Part => other.compression().is_some(),
            _ => false,
        }
    }

    pub(super) fn is_unseen(&self) -> bool {
        matches!(self.role, Role::Unseen | Role::Part)
    }

    /// Returns the format if such an image may have its header at its end.
    pub(super) fn footer(&self) -> Option<Format> {
        self.format().filter(|format| matches!(format, Format::Vpc | Format::Dmg))
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.noun)
    }
}

impl fmt::Debug for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileKind").field(&self.noun).finish()
    }
}

impl PartialEq for FileKind {
    fn eq(&self, other: &Self) -> bool {
        self.noun == other.noun
    }
}

impl Eq for FileKind {}

impl Hash for FileKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.noun.hash(state);
    }
}

/// Returns whether a name belongs to a flat extent, as `disk-flat.vmdk` and `disk-f001.vmdk` are.
fn is_flat_extent(name: &Path) -> bool {
    let stem = name.file_stem().map(OsStr::as_bytes).unwrap_or_default();
    stem.rsplit(|byte| *byte == b'-').next().is_some_and(|last| {
        last == b"flat"
            || last.strip_prefix(b"f").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    })
}

/// Returns whether a name belongs to a part of a split image, such as `sda1.ext4-ptcl-img.zst.aa` of Clonezilla.
fn is_part(name: &Path, extension: &str) -> bool {
    let whole = name.with_extension("");
    let is_cut = extension.len() == 2 && extension.bytes().all(|byte| byte.is_ascii_lowercase());
    is_cut
        && (Compression::of_name(&whole).is_some()
            || whole.as_os_str().as_bytes().ends_with(b"-ptcl-img"))
}

const fn image(
    noun: &'static str,
    format: Format,
    extensions: &'static [&'static str],
) -> FileKind {
    FileKind { noun, role: Role::Image(format), extensions, signatures: &[], way: Way::None }
}

const fn compressed(noun: &'static str, compression: Compression) -> FileKind {
    let (role, extensions) = (Role::Compressed(compression), compression.extensions());
    FileKind { noun, role, extensions, signatures: &[], way: Way::Compression(compression) }
}

const fn other(
    noun: &'static str,
    extensions: &'static [&'static str],
    signatures: &'static [Signature],
    way: Way,
) -> FileKind {
    FileKind { noun, role: Role::Other, extensions, signatures, way }
}

const fn archive(
    noun: &'static str,
    extensions: &'static [&'static str],
    signatures: &'static [Signature],
    way: Way,
) -> FileKind {
    FileKind { noun, role: Role::Archive, extensions, signatures, way }
}

const fn unseen(noun: &'static str, extensions: &'static [&'static str], way: Way) -> FileKind {
    FileKind { noun, role: Role::Unseen, extensions, signatures: &[], way }
}

/// The first one that matches counts.
static KINDS: [FileKind; 60] = [
    image("a qcow2 image", Format::Qcow2, &["qcow2"]),
    image("a qcow image", Format::Qcow1, &["qcow", "qcow1"]),
    image("a vmdk image", Format::Vmdk, &["vmdk"]),
    image("a vdi image", Format::Vdi, &["vdi"]),
    image("a vhdx image", Format::Vhdx, &["vhdx", "avhdx"]),
    image("a vhd image", Format::Vpc, &["vhd", "avhd", "vpc"]),
    image("a qed image", Format::Qed, &["qed"]),
    image("a parallels image", Format::Parallels, &["parallels"]),
    image("a luks image", Format::Luks, &["luks"]),
    image("a bochs image", Format::Bochs, &["bochs"]),
    image("a cloop image", Format::Cloop, &["cloop"]),
    image("a dmg image", Format::Dmg, &["dmg"]),
    image("an EWF image", Format::Ewf, &["e01", "s01"]),
    image("a partclone image", Format::Partclone, &[]),
    image("an export of rbd", Format::Rbd, &[]),
    image("an Android sparse image", Format::Simg, &["simg"]),
    compressed("a gzip file", Compression::Gzip),
    compressed("an xz file", Compression::Xz),
    compressed("a zstd file", Compression::Zstd),
    compressed("a bzip2 file", Compression::Bzip2),
    compressed("an lz4 file", Compression::Lz4),
    other("an lzip file", &["lz"], &[Bytes(b"LZIP\x01")], Way::Pipe("lzip -dc FILE")),
    compressed("an lzop file", Compression::Lzop),
    unseen("an lzma file", &["lzma"], Way::Pipe("xz -dc FILE")),
    unseen("a compress file", &["z"], Way::Pipe("gzip -dc FILE")),
    unseen("a brotli file", &["br"], Way::Pipe("brotli -dc FILE")),
    // These are tar archives, too.
    archive(
        "an XVA archive (XenServer)",
        &["xva"],
        &[Test(signatures::is_xva)],
        Way::Command("xe vm-import filename=FILE"),
    ),
    archive(
        "an appliance (.ova)",
        &["ova"],
        &[],
        Way::Advice("an .ova that is not compressed is read"),
    ),
    archive(
        "a tar archive",
        &["tar", "tgz", "tbz", "tbz2", "txz", "tzst"],
        &[Test(signatures::is_tar_archive)],
        Way::Pipe("tar -xOf FILE NAME"),
    ),
    other(
        "a zip archive",
        &["zip"],
        &[Bytes(b"PK\x03\x04"), Bytes(b"PK\x05\x06"), Bytes(b"PK\x07\x08")],
        Way::Pipe("unzip -p FILE NAME"),
    ),
    other(
        "a 7z archive",
        &["7z"],
        &[Bytes(b"7z\xbc\xaf\x27\x1c")],
        Way::Pipe("7z x -so FILE NAME"),
    ),
    other(
        "a RAR archive",
        &["rar"],
        &[Bytes(b"Rar!\x1a\x07")],
        Way::Pipe("unrar p -inul FILE NAME"),
    ),
    other(
        "a cpio archive",
        &["cpio"],
        &[Test(signatures::is_cpio)],
        Way::Pipe("cpio -i --to-stdout NAME < FILE"),
    ),
    other(
        "a WIM archive (Windows)",
        &["wim", "esd", "swm"],
        &[Bytes(b"MSWIM\0\0\0"), Bytes(b"WLPWM\0\0\0")],
        Way::Command("wimlib-imagex apply FILE 1 DIRECTORY"),
    ),
    other(
        "a VMA archive (Proxmox)",
        &["vma"],
        &[Bytes(b"VMA\0\0\0\0\x01")],
        Way::Command("vma extract FILE DIRECTORY"),
    ),
    other(
        "an EWF image of version 2 (EnCase 7)",
        &["ex01"],
        &[Bytes(b"EVF2\r\n\x81\0")],
        Way::Command("ewfexport -u -t OUTPUT FILE"),
    ),
    other(
        "an EWF archive of files (EnCase)",
        &["l01", "lx01"],
        &[Bytes(b"LVF\x09\r\n\xff\0"), Bytes(b"LEF2\r\n\x81\0")],
        Way::Command("ewfexport -u -f files -t OUTPUT FILE"),
    ),
    other("an AFF image", &["aff", "afd", "aff4"], &[Bytes(b"AFF10\r\n\0")], Way::None),
    other("an ASIF image (macOS)", &["asif"], &[Bytes(b"shdw\0\0\0")], Way::None),
    other(
        "a sparse image (macOS)",
        &["sparseimage"],
        &[Bytes(b"sprs\0\0\0\x03")],
        Way::Command("hdiutil convert FILE -format UDTO -o OUTPUT"),
    ),
    other(
        "an encrypted dmg image",
        &[],
        &[Bytes(b"encrcdsa")],
        Way::Command("hdiutil convert FILE -format UDTO -o OUTPUT"),
    ),
    other(
        "a part of a dmg image",
        &["dmgpart"],
        &[Bytes(b"koly\0\0\0\x04\0\0\x02\0")],
        Way::Command("hdiutil convert FILE -format UDTO -o OUTPUT"),
    ),
    other(
        "an extent of a vmdk image (seSparse)",
        &[],
        &[Bytes(b"\xbe\xba\xfe\xca\0\0\0\0")],
        Way::Advice("give the .vmdk file that names it"),
    ),
    other(
        "an ntfsclone image",
        &[],
        &[Bytes(b"\0ntfsclone-image")],
        Way::Command("ntfsclone --restore-image --overwrite DEVICE FILE"),
    ),
    other("a partimage image", &[], &[Bytes(b"PaRtImAgE-VoLuMe")], Way::None),
    other(
        "a stream of btrfs send",
        &[],
        &[Bytes(b"btrfs-stream\0")],
        Way::Command("btrfs receive -f FILE MOUNTPOINT"),
    ),
    other(
        "a stream of zfs send",
        &[],
        &[Test(signatures::is_zfs_stream)],
        Way::Command("zfs receive DATASET < FILE"),
    ),
    other(
        "a difference of rbd",
        &[],
        &[Bytes(b"rbd diff v1\n"), Bytes(b"rbd diff v2\n")],
        Way::Command("rbd import-diff FILE IMAGE"),
    ),
    other(
        "an index of chunks (casync)",
        &["caibx", "caidx"],
        &[Bytes(b"\x30\0\0\0\0\0\0\0\xf9\x9f\x12\x7b\x9c\x4d\x82\x96")],
        Way::Command("casync extract FILE OUTPUT"),
    ),
    other(
        "an index of chunks (Proxmox)",
        &["fidx", "didx"],
        &[Bytes(b"\x2f\x7f\x41\xed\x91\xfd\x0f\xcd"), Bytes(b"\x1c\x91\x4e\xa5\x19\xba\xb3\xcd")],
        Way::None,
    ),
    other(
        "a block map",
        &["blkmap"],
        &[Bytes(b"\x89BLKMAP\n")],
        Way::Command("blkhash map checksum FILE"),
    ),
    other(
        "a delta",
        &[],
        &[Bytes(b"\x89BLKDLT\n")],
        Way::Command("blkcopy --apply FILE DESTINATION"),
    ),
    other(
        "a git-lfs pointer",
        &[],
        &[
            Bytes(b"version https://git-lfs.github.com/spec/"),
            Bytes(b"version https://hawser.github.com/spec/"),
        ],
        Way::Command("git lfs pull"),
    ),
    other("an HTML page", &[], &[Test(text::is_html)], DOWNLOAD),
    other("an XML document", &[], &[Test(text::is_xml)], DOWNLOAD),
    other("a JSON document", &[], &[Test(text::is_json)], DOWNLOAD),
    other("a message of a server", &[], &[Test(text::is_message)], DOWNLOAD),
    unseen("an OpenPGP file", &["gpg", "pgp"], Way::Pipe("gpg -d FILE")),
    FileKind {
        noun: "a part of a split image",
        role: Role::Part,
        extensions: &[],
        signatures: &[],
        way: Way::Advice("cat joins all of its parts"),
    },
    other("an age file", &["age"], &[Bytes(b"age-encryption.org/v1\n")], Way::Pipe("age -d FILE")),
];

const DOWNLOAD: Way = Way::Advice("if it was downloaded, its server sent something else");
