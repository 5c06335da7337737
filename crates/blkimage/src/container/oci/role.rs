//! The role of a layer, by its media type and the name of its file.

use super::manifest::{Layer, media_type};
use crate::Format;
use crate::compression::Compression;

/// The role of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A disk. The format is `None` if its content tells it.
    Disk { format: Option<Format>, compression: Option<Compression> },
    /// A part of a root file system.
    Tar,
    /// A disk if its content has a known format, otherwise something else.
    Unknown,
}

impl Role {
    pub fn of(layer: &Layer) -> Self {
        let media_type = media_type(&layer.media_type);
        if is_tar(media_type) {
            return Self::Tar;
        }
        if let Some(role) = of_media_type(media_type) {
            return role;
        }
        let title = layer.title.as_deref().map(of_title);
        match (title, METHODS.iter().find(|(name, ..)| *name == media_type)) {
            (Some(Some(role)), _) => role,
            // A single compressed file, as in podman machine.
            (None, Some((.., found))) => Self::Disk { format: None, compression: Some(*found) },
            _ => Self::Unknown,
        }
    }
}

fn is_tar(media_type: &str) -> bool {
    let base = media_type.split('+').next().unwrap_or_default();
    let base = [".gzip", ".zstd"].iter().find_map(|end| base.strip_suffix(end)).unwrap_or(base);
    base.ends_with(".tar")
}

/// Returns the disk of a type such as `application/vnd.kubevirt.disk.raw+gzip`.
fn of_media_type(media_type: &str) -> Option<Role> {
    let name = media_type.strip_prefix("application/vnd.").filter(|name| name.contains("disk"))?;
    let (name, compression) = match name.rsplit_once('+') {
        Some((name, end)) if let Some(found) = compression(end) => (name, Some(found)),
        _ => (name, None),
    };
    let format = name.rsplit(['.', '+']).next()?.parse().ok()?;
    Some(Role::Disk { format: Some(format), compression })
}

/// Returns the disk in a file with a name such as `disk.raw.zst`.
fn of_title(title: &str) -> Option<Role> {
    let (name, compression) = match title.rsplit_once('.') {
        Some((name, end)) if let Some(found) = compression(end) => (name, Some(found)),
        _ => (title, None),
    };
    let format = match name.rsplit_once('.')?.1 {
        // Files of other formats have this name as well.
        "img" => None,
        end => Some(end.parse().ok()?),
    };
    Some(Role::Disk { format, compression })
}

fn compression(name: &str) -> Option<Compression> {
    let (.., found) = METHODS.iter().find(|(_, names, _)| names.contains(&name))?;
    Some(*found)
}

/// Media types, and ends of names and of media types.
const METHODS: [(&str, &[&str], Compression); 6] = [
    ("application/gzip", &["gz", "gzip"], Compression::Gzip),
    ("application/x-gzip", &[], Compression::Gzip),
    ("application/zstd", &["zst", "zstd"], Compression::Zstd),
    ("application/x-xz", &["xz"], Compression::Xz),
    ("application/x-bzip2", &["bz2", "bzip2"], Compression::Bzip2),
    ("application/x-lz4", &["lz4"], Compression::Lz4),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::oci::digest::Digest;
    use crate::container::oci::manifest::{Blob, Subject};

    #[test]
    fn roles() {
        let role = |media_type: &str, title: Option<&str>| {
            let digest = Digest::sha256(&"0".repeat(64)).unwrap();
            let blob = Blob { file: vec![], digest, is_of: Subject::File };
            let title = title.map(str::to_owned);
            let media_type = media_type.into();
            Role::of(&Layer { blob, media_type, name: None, title, size: None })
        };
        let disk = |format, compression| Role::Disk { format, compression };
        for (media_type, title, expected) in [
            ("application/vnd.kubevirt.disk.raw", None, disk(Some(Format::Raw), None)),
            (
                "application/vnd.kubevirt.disk.raw+gzip; a=b",
                None,
                disk(Some(Format::Raw), Some(Compression::Gzip)),
            ),
            (
                "application/vnd.kubevirt.disk.raw+zstd",
                Some("x.qcow2"),
                disk(Some(Format::Raw), Some(Compression::Zstd)),
            ),
            ("application/vnd.kubevirt.disk.qcow2", None, disk(Some(Format::Qcow2), None)),
            ("application/vnd.lfedge.disk.layer.v1+vhdx", None, disk(Some(Format::Vhdx), None)),
            ("application/vnd.kubevirt.virtualmachine.config.v1+json", None, Role::Unknown),
            ("application/vnd.oci.image.layer.v1.tar", Some("x.raw"), Role::Tar),
            ("application/vnd.oci.image.layer.v1.tar+zstd", None, Role::Tar),
            ("application/vnd.docker.image.rootfs.diff.tar.gzip", None, Role::Tar),
            ("application/zstd", None, disk(None, Some(Compression::Zstd))),
            (
                "application/zstd",
                Some("m.raw.zst"),
                disk(Some(Format::Raw), Some(Compression::Zstd)),
            ),
            ("application/octet-stream", Some("m.img.xz"), disk(None, Some(Compression::Xz))),
            ("application/octet-stream", Some("m.vhd"), disk(Some(Format::Vpc), None)),
            ("application/gzip", Some("root.tar.gz"), Role::Unknown),
            ("application/octet-stream", Some("README"), Role::Unknown),
            ("application/vnd.in-toto+json", None, Role::Unknown),
        ] {
            assert_eq!(role(media_type, title), expected, "{media_type} {title:?}");
        }
    }
}
