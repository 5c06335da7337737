//! Reads what comes before the ranges of a bmap.

use std::ops::Range;

use blkhash::{Algorithm, Digest};
use blkmap::{Error, ReadAt, Result};

use super::names::DIGESTS;
use super::xml::Tags;
use crate::shape::{Shape, block_size};
use crate::text::{self, read_at, shown};

/// What comes before the ranges.
#[derive(Clone)]
pub(super) struct Head {
    pub shape: Shape,
    /// Number of blocks in ranges.
    pub mapped: u64,
    /// The checksum of the file.
    pub checksum: Digest,
    /// Offsets of its digits.
    pub digits: Range<u64>,
    /// Name of the attribute with the checksum of a range.
    pub attribute: &'static str,
    /// Offset after the head.
    pub end: u64,
}

/// The names of checksums in a version.
struct Dialect {
    version: &'static str,
    /// Element with the name of the digest. Without it, that is SHA-1.
    kind: Option<&'static str>,
    /// Element with the checksum of the file.
    own: &'static str,
    attribute: &'static str,
}

impl Dialect {
    /// Returns the names of the elements before the ranges.
    fn names(&self) -> [Option<&'static str>; FIELDS] {
        let [image_size, block_size, blocks, mapped] =
            ["ImageSize", "BlockSize", "BlocksCount", "MappedBlocksCount"].map(Some);
        [image_size, block_size, blocks, mapped, self.kind, Some(self.own)]
    }
}

/// Returns whether a text begins like this file.
pub(super) fn is_start(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let has_root = head.windows(ROOT.len()).any(|window| window == ROOT);
    head.starts_with(ROOT) || (head.starts_with(b"<?xml") && has_root)
}

pub(super) fn read_head(file: &dyn ReadAt) -> Result<Head> {
    let mut tags = Tags::new(file, 0)?;
    let root = tags.expect()?;
    let version = root.only_attribute("version").filter(|_| root.name == "bmap");
    let Some(version) = version else {
        return Err(Error::damaged(root.at, "does not begin with <bmap version=\"2.0\">"));
    };
    let Some(dialect) = DIALECTS.iter().find(|it| it.version == version) else {
        let version = shown(version.as_bytes());
        return Err(Error::Unsupported(format!(
            "is a bmap of version {version}, not 2.0, 1.4 or 1.3"
        )));
    };
    let names = dialect.names();
    let mut fields: [Option<Field>; FIELDS] = [const { None }; FIELDS];
    let map = loop {
        let tag = tags.bare()?;
        if tag.name == "BlockMap" && tag.attributes.is_empty() {
            break tag;
        }
        if tags.at > MAX_HEAD {
            return Err(Error::damaged(tag.at, "more than comes before the ranges of a bmap"));
        }
        let index = names.iter().position(|name| *name == Some(&*tag.name));
        let index = index.filter(|index| fields[*index].is_none() && tag.attributes.is_empty());
        let end = tags.expect()?;
        let is_end = end.name.strip_prefix('/') == Some(&*tag.name);
        let (Some(index), true) = (index, is_end) else {
            let name = shown(tag.name.as_bytes());
            return Err(Error::damaged(tag.at, format!("an unexpected element {name}")));
        };
        let start = end.text_at + (end.text.len() - end.text.trim_start().len()) as u64;
        fields[index] = Some(Field { at: start, text: end.text.trim().to_owned() });
    };
    head_of(dialect, fields, map.at, tags.at)
}

/// A value before the ranges.
struct Field {
    at: u64,
    text: String,
}

impl Field {
    fn number(&self) -> Result<u64> {
        read_at(self.at, text::number(self.text.as_bytes()))
    }
}

/// Reads the values. `at` is the offset of the element of ranges, and `end` the offset after its start.
fn head_of(dialect: &Dialect, fields: [Option<Field>; FIELDS], at: u64, end: u64) -> Result<Head> {
    let [image_size, size, blocks, mapped, kind, own] = fields;
    let needed = |name: &str, field: Option<Field>| {
        field.ok_or_else(|| Error::damaged(at, format!("no element {name}")))
    };
    let algorithm = match (dialect.kind, kind) {
        (None, _) => Algorithm::Sha1,
        (Some(_), None) => return Err(Error::Unsupported(NO_CHECKSUMS.into())),
        (Some(_), Some(kind)) => {
            let found = DIGESTS.iter().find(|(_, known)| *known == kind.text);
            let Some((algorithm, _)) = found else {
                let reason = format!("an unknown checksum {}", shown(kind.text.as_bytes()));
                return Err(Error::damaged(kind.at, reason));
            };
            *algorithm
        }
    };
    let image_size = needed("ImageSize", image_size)?;
    let size = needed("BlockSize", size)?;
    let blocks = needed("BlocksCount", blocks)?;
    let mapped = needed("MappedBlocksCount", mapped)?;
    let own = needed(dialect.own, own)?;
    let size = block_size(size.number()?, size.at)?;
    let shape = Shape::new(algorithm, size, image_size.number()?, image_size.at)?;
    if blocks.number()? != shape.blocks() {
        let reason = format!("another number of blocks than {}", shape.blocks());
        return Err(Error::damaged(blocks.at, reason));
    }
    let digits = own.at..own.at + own.text.len() as u64;
    let checksum = text::digest(own.text.as_bytes()).ok().filter(|it| {
        own.text.len() == algorithm.digest_size() * 2 && it.as_bytes().len() * 2 == own.text.len()
    });
    let checksum =
        checksum.ok_or_else(|| Error::damaged(own.at, "not the checksum of the file"))?;
    let (mapped, attribute) = (mapped.number()?, dialect.attribute);
    Ok(Head { shape, mapped, checksum, digits, attribute, end })
}

const ROOT: &[u8] = b"<bmap version=";

/// Number of elements before the ranges.
const FIELDS: usize = 6;

/// The versions with checksums of ranges and of the file. Version 2.0 was called 1.4 at first.
const DIALECTS: [Dialect; 3] = [
    Dialect { version: "2.0", ..NEW },
    Dialect { version: "1.4", ..NEW },
    Dialect { version: "1.3", kind: None, own: "BmapFileSHA1", attribute: "sha1" },
];

const NEW: Dialect = Dialect {
    version: "",
    kind: Some("ChecksumType"),
    own: "BmapFileChecksum",
    attribute: "chksum",
};

/// Maximum number of bytes before the ranges of a bmap. bmaptool writes 2 KB.
/// Limit in bytes.
const MAX_HEAD: u64 = 64 << 10;

pub(super) const NO_CHECKSUMS: &str = "is a bmap without checksums of ranges";
