//! The info of a map, which describes its image. docs/reference/map-format.md specifies the fields.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use blkimage::partition::{self, Partition};
use blkimage::{Format, Image, Location, Member, Source, container_of};
use serde::{Deserialize, Serialize};
use serde_json::{Map as Object, Value};

/// The info of a map. Fields of other programs are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Info {
    /// Time of the commit in UTC, in the form of RFC 3339.
    pub created: String,
    /// Name and version of the program.
    pub program: String,
    /// The parameters of the digests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// `[K, N]` for the `K`th of `N` shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<[u64; 2]>,
    /// The image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceInfo>,
    /// The partitions in the image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionInfo>,
    /// Other fields.
    #[serde(flatten)]
    pub other: Object<String, Value>,
}

/// The parameters of the digests of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Made {
    /// Every block was read.
    Read,
    /// This number of maps was merged.
    Merge(u64),
    /// Blocks that changed were read, and the others come from another map.
    Update(UpdateInfo),
    /// An index of another program in the format with this name was read instead of an image.
    Import(String),
    /// In a way that this version does not know.
    #[serde(untagged)]
    Other(Value),
}

/// How a map was updated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UpdateInfo {
    /// Content id of the map before, in hexadecimal.
    pub base: String,
    /// The origin of the list of changes.
    pub by: String,
    /// Number of blocks that were read because they may have changed.
    pub read: u64,
    /// Number of blocks that were read although nothing called them changed.
    pub sampled: u64,
    /// Other fields.
    #[serde(flatten)]
    pub other: Object<String, Value>,
}

/// The image of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SourceInfo {
    /// Name of the image, without its folder.
    pub name: String,
    /// Name of the format.
    pub format: String,
    /// Name of the snapshot.
    pub snapshot: Option<String>,
    /// Number of the partition, `None` for a whole image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// The files that the image consists of, first the image.
    pub files: Vec<FileInfo>,
    /// The bitmaps of changed blocks in the image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bitmaps: Vec<BitmapInfo>,
    /// Other fields.
    #[serde(flatten)]
    pub other: Object<String, Value>,
}

/// A file of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FileInfo {
    /// Name, without its folder.
    pub name: String,
    /// `image`, `backing` or `data`.
    pub role: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, in nanoseconds since 1970. Devices and servers have none, and no inode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtime_ns: Option<i64>,
    /// Inode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ino: Option<u64>,
    /// Device of the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev: Option<u64>,
    /// Other fields.
    #[serde(flatten)]
    pub other: Object<String, Value>,
}

/// A bitmap of changed blocks in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BitmapInfo {
    /// Name.
    pub name: String,
    /// Number of bytes for each bit.
    pub granularity: u64,
    /// Whether it records changes.
    pub enabled: bool,
    /// Number of bits that were set. `None` if its content is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty: Option<u64>,
    /// Some of the extents that were marked, each with its offset and length in bytes: all, or 64 spread over all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked: Vec<[u64; 2]>,
    /// Other fields.
    #[serde(flatten)]
    pub other: Object<String, Value>,
}

/// A partition in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PartitionInfo {
    /// Number, from 1.
    pub number: u32,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Other fields.
    #[serde(flatten)]
    pub other: Object<String, Value>,
}

/// The content that a map is made of.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Name of the image, as the user gave it.
    pub name: &'a OsStr,
    /// The image.
    pub image: &'a Image,
    /// The content, which is the image or a part of it.
    pub source: &'a dyn Source,
    /// Name or id of the snapshot that the image was opened at.
    pub snapshot: Option<&'a str>,
    /// Number of the partition that the content is.
    pub partition: Option<u32>,
}

impl Info {
    /// Describes a map that is made now.
    pub fn new(made: Made) -> Self {
        Self {
            created: blksys::now(),
            program: concat!("blkhash ", env!("CARGO_PKG_VERSION")).to_owned(),
            made: Some(made),
            ..Self::default()
        }
    }

    /// Adds the description of the image.
    #[must_use]
    pub fn describe(mut self, subject: &Subject<'_>) -> Self {
        self.source = Some(SourceInfo::new(subject));
        let table = partition::table(subject.source).unwrap_or_default();
        self.partitions = table.partitions.iter().map(PartitionInfo::from).collect();
        self
    }

    /// Reads the info of a map. Returns `None` if it does not have the fields that the specification names, because
    /// another program wrote it.
    pub fn of(map: &blkmap::Map) -> Option<Self> {
        Self::parse(&map.info().ok()?)
    }

    /// Reads an info, like [`of`](Self::of).
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the partition that the map is of, or `None` in `Some` for a whole image. Returns `None` if the info
    /// does not say.
    pub fn partition(&self) -> Option<Option<u32>> {
        self.source.as_ref().map(|source| source.partition)
    }

    /// Returns the partitions in the image, at most 256.
    pub fn partitions(&self) -> Vec<Partition> {
        let partitions = self.partitions.iter().take(MAX_PARTITIONS);
        partitions.map(PartitionInfo::to_partition).collect()
    }

    /// Returns whether the infos describe one image in one state. Names of files do not count. Times and inodes of
    /// devices and of servers are unknown, so that only their sizes are compared.
    pub fn is_same_image(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (&self.source, &other.source) else { return false };
        !one.files.is_empty()
            && (&one.format, &one.snapshot, one.partition)
                == (&other.format, &other.snapshot, other.partition)
            && one.files.iter().map(FileInfo::state).eq(other.files.iter().map(FileInfo::state))
    }

    /// Returns whether times and inodes of all files are known, so that a change of the image shows.
    pub fn shows_changes(&self) -> bool {
        let files = self.source.as_ref().map(|source| &source.files);
        files.is_some_and(|files| {
            !files.is_empty() && files.iter().all(|file| file.mtime_ns.is_some())
        })
    }
}

impl std::fmt::Display for Info {
    /// Writes the object of JSON that the map holds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

impl SourceInfo {
    pub(super) fn new(subject: &Subject<'_>) -> Self {
        let files = subject.image.chain().iter().enumerate();
        let files = files.flat_map(|(index, member)| FileInfo::of_member(index, member));
        Self {
            name: base_name(subject.name),
            format: Format::name(subject.image.format()).to_owned(),
            snapshot: subject.snapshot.map(str::to_owned),
            partition: subject.partition,
            files: files.collect(),
            bitmaps: BitmapInfo::of(subject.image),
            other: Object::new(),
        }
    }
}

impl BitmapInfo {
    /// Describes the bitmaps in an image. A list that cannot be read is empty: the content of the image does not depend on
    /// it.
    fn of(image: &Image) -> Vec<Self> {
        let bitmaps = image.bitmaps().ok().flatten().unwrap_or_default();
        let described = bitmaps.into_iter().take(MAX_BITMAPS).map(|bitmap| {
            let extents = image.dirty_extents(&bitmap.name).ok();
            let bits = |it: &Range<u64>| (it.end - it.start).div_ceil(bitmap.granularity);
            Self {
                dirty: extents.as_ref().map(|extents| extents.iter().map(bits).sum()),
                name: String::from_utf8_lossy(&bitmap.name).into_owned(),
                granularity: bitmap.granularity,
                enabled: bitmap.is_enabled,
                marked: spread(&extents.unwrap_or_default()),
                other: Object::new(),
            }
        });
        described.collect()
    }
}

impl FileInfo {
    /// Describes the files of a member of a chain, whose top has the index 0.
    pub(super) fn of_member(index: usize, member: &Member) -> impl Iterator<Item = Self> + '_ {
        member.files().enumerate().map(move |(number, file)| {
            let role = match (index, number) {
                (0, 0) => "image",
                (_, 0) => "backing",
                _ => "data",
            };
            Self::new(file.name(), file.size(), role)
        })
    }

    /// Returns the fields by which a file is known again.
    pub(super) fn state(&self) -> (u64, Option<i64>, Option<u64>) {
        (self.size, self.mtime_ns, self.ino)
    }

    fn new(name: &Path, size: u64, role: &str) -> Self {
        let mut info = Self {
            name: base_name(name.as_os_str()),
            role: role.to_owned(),
            size,
            ..Self::default()
        };
        let file = container_of(name).unwrap_or(name);
        // A URI is no file of this host, and the node of a device is another one on each host.
        if let Some(metadata) = std::fs::metadata(file).ok().filter(Metadata::is_file) {
            let time =
                i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
            info.mtime_ns = i64::try_from(time).ok();
            info.ino = Some(metadata.ino());
            info.dev = Some(metadata.dev());
        }
        info
    }
}

impl PartitionInfo {
    fn to_partition(&self) -> Partition {
        Partition { number: self.number, offset: self.offset, length: self.length }
    }
}

impl From<&Partition> for PartitionInfo {
    fn from(partition: &Partition) -> Self {
        let Partition { number, offset, length } = *partition;
        Self { number, offset, length, other: Object::new() }
    }
}

/// Returns the name of an image without its folder. A disk in a container has the name of the container before its own.
fn base_name(image: &OsStr) -> String {
    let location = Location::new(image);
    if location.is_url() {
        // A query may hold secrets.
        return location.file_name().unwrap_or_default().to_string_lossy().into_owned();
    }
    let path = Path::new(image);
    let file = container_of(path).unwrap_or(path);
    let base = file.file_name().unwrap_or(file.as_os_str());
    let disk = &image.as_bytes()[file.as_os_str().len()..];
    String::from_utf8_lossy(&[base.as_bytes(), disk].concat()).into_owned()
}

/// Returns the offsets and lengths of extents, or of [`MAX_MARKED`] that are spread over all of them.
fn spread(extents: &[Range<u64>]) -> Vec<[u64; 2]> {
    let count = extents.len().min(MAX_MARKED);
    let chosen = (0..count).map(|index| &extents[index * extents.len() / count]);
    chosen.map(|extent| [extent.start, extent.end - extent.start]).collect()
}

/// Maximum number of extents of a bitmap in the info of a map. More are left out.
/// Limit in extents.
const MAX_MARKED: usize = 64;

/// Maximum number of bitmaps of an image in the info of a map. More are left out.
/// Limit in bitmaps.
const MAX_BITMAPS: usize = 64;

/// Maximum number of partitions in the info of a map. More are left out.
/// Limit in partitions.
const MAX_PARTITIONS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Info {
        Info::parse(text).unwrap()
    }

    #[test]
    fn images_are_told_apart_by_their_files() {
        let of = |time: u64, name: &str| {
            info(&format!(
                r#"{{"source": {{"format": "raw", "files": [
                    {{"name": "{name}", "size": 5, "mtime_ns": {time}, "ino": 1, "dev": {time}}}]}}}}"#
            ))
        };
        assert!(of(1, "a").is_same_image(&of(1, "b")));
        assert!(!of(1, "a").is_same_image(&of(2, "a")));
        assert!(!info("{}").is_same_image(&info("{}")));
    }

    #[test]
    fn fields_of_other_programs_are_kept() {
        for text in [
            r#"{"created":"","program":"","made":"read"}"#,
            r#"{"created":"a","program":"b","made":{"merge":3},"shard":[1,2],"x":[{}]}"#,
            r#"{"created":"a","program":"b","made":{"update":{"base":"01","by":"bitmap b","read":3,"sampled":1,"x":2}}}"#,
            r#"{"created":"a","program":"b","source":{"name":"n","format":"raw","snapshot":null,"files":[{"name":"n","role":"image","size":1,"y":2}],"bitmaps":[{"name":"b","granularity":65536,"enabled":true,"dirty":0,"z":1}]},"partitions":[{"number":1,"offset":2,"length":3,"name":"root"}]}"#,
        ] {
            assert_eq!(info(text).to_string(), text);
        }
        assert_eq!(info(r#"{"made":{"merge":3}}"#).made, Some(Made::Merge(3)));
        let import = info(r#"{"made":{"import":"fidx"}}"#);
        assert_eq!(import.made, Some(Made::Import("fidx".into())));
        assert!(import.to_string().contains(r#""made":{"import":"fidx"}"#));
        assert_eq!(Info::parse(r#"{"source":{"partition":"1"}}"#), None);
        assert_eq!(Info::parse("[]"), None);
    }

    #[test]
    fn names_have_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).into_os_string();
        std::fs::write(file("a.ova"), b"").unwrap();
        for (image, base) in [
            ("a.ova", "a.ova"),
            ("a.ova:d.vmdk", "a.ova:d.vmdk"),
            ("a.ova:sub/victim", "a.ova:sub/victim"),
            ("a.ova:/../../x", "a.ova:/../../x"),
            ("sub/b:c/d", "d"),
        ] {
            assert_eq!(base_name(&file(image)), base);
        }
    }
}
