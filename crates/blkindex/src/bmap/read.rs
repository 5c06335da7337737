//! Reads bmaps.
//!
//! A map needs the digest of each block, so a range is one block. Blocks in no range are unknown: bmaptool neither writes nor
//! checks them. The last block may be short, and is hashed as it is. Only what bmaptool writes is read, not XML in general.

use std::io::{self, BufReader, Read, Take};
use std::ops::Range;
use std::sync::Arc;

use blkhash::{Digest, Digester};
use blkmap::{Error, ReadAt, Result};
use quick_xml::Error::{Encoding, Io, Syntax};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::names::DIGESTS;
use crate::bytes::each_part;
use crate::shape::{Shape, block_size};
use crate::target::{Blocks, Target};
use crate::text::{self, Bytes, MAX_TOKEN, read_at, shown};

pub(crate) struct Bmap<'a> {
    file: &'a dyn ReadAt,
    head: Head,
}

/// What comes before the ranges.
#[derive(Clone)]
struct Head {
    shape: Shape,
    /// Number of blocks in ranges.
    mapped: u64,
    /// The checksum of the file.
    checksum: Digest,
    /// Offsets of its digits.
    digits: Range<u64>,
    /// Offset behind the head.
    end: u64,
}

/// Reads what comes before the ranges.
pub(super) fn open(file: &dyn ReadAt) -> Result<(Shape, Bmap<'_>)> {
    let head = read_head(file)?;
    Ok((head.shape, Bmap { file, head }))
}

/// Returns whether a text begins like this file.
pub(super) fn is_start(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let has_root = head.windows(ROOT.len()).any(|window| window == ROOT);
    head.starts_with(ROOT) || (head.starts_with(b"<?xml") && has_root)
}

impl Blocks for Bmap<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        self.check_file()?;
        let mut tags = Tags::new(self.file, self.head.end)?;
        let blocks = self.head.shape.blocks();
        let (mut next, mut mapped) = (0, 0);
        loop {
            let tag = tags.bare()?;
            if tag.name == "/BlockMap" {
                break;
            }
            let (block, digest) = self.range(&mut tags, &tag)?;
            if block < next || block >= blocks {
                let reason = format!("block {block} is out of order or behind the end");
                return Err(Error::damaged(tag.at, reason));
            }
            target.unknown(block - next)?;
            target.digests(digest.as_bytes())?;
            (next, mapped) = (block + 1, mapped + 1);
        }
        target.unknown(blocks - next)?;
        if mapped != self.head.mapped {
            let reason = format!("{mapped} blocks in ranges, and not {}", self.head.mapped);
            return Err(Error::damaged(tags.at, reason));
        }
        let end = tags.bare()?;
        match (&*end.name, tags.next()?) {
            ("/bmap", None) => Ok(()),
            _ => Err(Error::damaged(end.at, "the file does not end behind its ranges")),
        }
    }
}

impl Bmap<'_> {
    /// Reads a range up to its end. Returns the number of its block.
    fn range(&self, tags: &mut Tags<'_>, tag: &Tag) -> Result<(u64, Digest)> {
        let fail = |reason: &str| Err(Error::damaged(tag.at, reason));
        if tag.name != "Range" {
            return fail("not a range of blocks");
        }
        let Some(digest) = tag.only_attribute("chksum") else {
            return Err(Error::Unsupported(NO_CHECKSUMS.into()));
        };
        let digest = read_at(tag.at, text::digest(digest.as_bytes()))?;
        if digest.as_bytes().len() != self.head.shape.algorithm.digest_size() {
            return fail("a checksum of another length than its type");
        }
        let end = tags.expect()?;
        if end.name != "/Range" {
            return fail("a range without an end");
        }
        let (first, last) = end.text.split_once('-').unwrap_or((&end.text, &end.text));
        let [first, last] = [first, last].map(|it| text::number(it.trim().as_bytes()));
        let (first, last) = (read_at(tag.at, first)?, read_at(tag.at, last)?);
        if first != last {
            return Err(Error::Unsupported(format!(
                "has one checksum of the blocks {first}-{last}, at {}: {LONG}",
                tag.at
            )));
        }
        Ok((first, digest))
    }

    /// Compares the file with its own checksum.
    fn check_file(&self) -> Result<()> {
        let Head { shape, checksum, digits, .. } = &self.head;
        let mut state = Digester::new(shape.algorithm).start();
        each_part(self.file, 0..self.file.length()?, 1, |at, part| {
            for (offset, byte) in (at..).zip(&mut *part) {
                if digits.contains(&offset) {
                    *byte = b'0';
                }
            }
            state.update(part);
            Ok(())
        })?;
        match state.finalize() == *checksum {
            true => Ok(()),
            false => Err(Error::damaged(digits.start, "the file has another checksum")),
        }
    }
}

fn read_head(file: &dyn ReadAt) -> Result<Head> {
    let mut tags = Tags::new(file, 0)?;
    let root = tags.expect()?;
    match (&*root.name, root.only_attribute("version")) {
        ("bmap", Some("2.0")) => {}
        ("bmap", Some(version)) => {
            let version = shown(version.as_bytes());
            return Err(Error::Unsupported(format!("is a bmap of version {version}, not 2.0")));
        }
        _ => return Err(Error::damaged(root.at, "does not begin with <bmap version=\"2.0\">")),
    }
    let mut fields: [Option<Field>; NAMES.len()] = [const { None }; NAMES.len()];
    let map = loop {
        let tag = tags.bare()?;
        if tag.name == "BlockMap" && tag.attributes.is_empty() {
            break tag;
        }
        if tags.at > MAX_HEAD {
            return Err(Error::damaged(tag.at, "more than comes before the ranges of a bmap"));
        }
        let index = NAMES.iter().position(|name| *name == tag.name);
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
    head_of(fields, map.at, tags.at)
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

/// Reads the values. `at` is the offset of the element of ranges, and `end` that behind its start.
fn head_of(fields: [Option<Field>; NAMES.len()], at: u64, end: u64) -> Result<Head> {
    match NAMES.iter().zip(&fields).find(|(_, field)| field.is_none()) {
        _ if fields[CHECKSUM_TYPE].is_none() => {
            return Err(Error::Unsupported(NO_CHECKSUMS.into()));
        }
        Some((name, _)) => return Err(Error::damaged(at, format!("no element {name}"))),
        None => {}
    }
    let [image_size, size, blocks, mapped, kind, own] =
        fields.map(|field| field.expect("no field is missing"));
    let found = DIGESTS.iter().find(|(_, known)| *known == kind.text);
    let Some((algorithm, _)) = found else {
        let reason = format!("an unknown checksum {}", shown(kind.text.as_bytes()));
        return Err(Error::damaged(kind.at, reason));
    };
    let size = block_size(size.number()?, size.at)?;
    let shape = Shape::new(*algorithm, size, image_size.number()?, image_size.at)?;
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
    Ok(Head { shape, mapped: mapped.number()?, checksum, digits, end })
}

/// A tag, with the text before it.
struct Tag {
    /// Offset of the bracket.
    at: u64,
    /// Offset of the text.
    text_at: u64,
    text: String,
    /// Name, with a slash before it at the end of an element.
    name: String,
    /// What follows the name.
    attributes: String,
}

impl Tag {
    /// Returns the value of the attribute `NAME="VALUE"`, if it is the only one.
    fn only_attribute(&self, name: &str) -> Option<&str> {
        self.attributes.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"')
    }
}

/// The tags of a file. Comments and the declaration are left out.
struct Tags<'a> {
    xml: Reader<Take<BufReader<Bytes<'a>>>>,
    bytes: Vec<u8>,
    /// Offset of the first byte that is read.
    start: u64,
    /// Offset behind the last tag.
    at: u64,
}

impl<'a> Tags<'a> {
    fn new(file: &'a dyn ReadAt, start: u64) -> Result<Self> {
        let mut xml = Reader::from_reader(Bytes::buffered(file, start)?.take(0));
        xml.config_mut().check_end_names = false;
        xml.config_mut().allow_unmatched_ends = true;
        Ok(Self { xml, bytes: Vec::with_capacity(MAX_TOKEN), start, at: start })
    }

    /// Returns the next tag, or `None` at the end of the file.
    fn next(&mut self) -> Result<Option<Tag>> {
        let (mut text, mut text_at) = (String::new(), self.at);
        loop {
            let at = self.at;
            self.bytes.clear();
            self.xml.get_mut().set_limit(MAX_TOKEN as u64);
            let event = self.xml.read_event_into(&mut self.bytes);
            if self.xml.get_ref().limit() == 0 {
                let reason = format!("a part of the text is longer than {MAX_TOKEN} bytes");
                return Err(Error::damaged(at, reason));
            }
            self.at = self.start + self.xml.buffer_position();
            let (name, attributes) = match event {
                Ok(Event::Start(tag)) => {
                    (tag.name().0.to_owned(), tag.attributes_raw().trim().to_owned())
                }
                Ok(Event::End(tag)) => (format!("/{}", tag.name().0), String::new()),
                Ok(Event::Text(content)) => {
                    (text, text_at) = (String::from(&*content), at);
                    continue;
                }
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {
                    if !text.trim().is_empty() {
                        return Err(Error::damaged(text_at, "a comment in a value"));
                    }
                    text.clear();
                    continue;
                }
                Ok(Event::Eof) if text.trim().is_empty() => return Ok(None),
                Ok(Event::Eof) | Err(Syntax(_)) => return Err(Error::damaged(at, CUT_OFF)),
                Err(Io(error)) => {
                    let error = Arc::into_inner(error);
                    return Err(error.unwrap_or_else(|| io::ErrorKind::Other.into()).into());
                }
                Err(Encoding(_)) => return Err(Error::damaged(at, "bytes that are no text")),
                Ok(_) | Err(_) => return Err(Error::damaged(at, "XML that is not of a bmap")),
            };
            return Ok(Some(Tag { at, text_at, text, name, attributes }));
        }
    }

    /// Returns the next tag. Fails at the end of the file.
    fn expect(&mut self) -> Result<Tag> {
        self.next()?.ok_or_else(|| Error::damaged(self.at, "the file is cut"))
    }

    /// Returns the next tag, before which there is no text.
    fn bare(&mut self) -> Result<Tag> {
        let tag = self.expect()?;
        match tag.text.trim().is_empty() {
            true => Ok(tag),
            false => Err(Error::damaged(tag.text_at, "text between elements")),
        }
    }
}

const ROOT: &[u8] = b"<bmap version=";

/// The elements before the ranges.
const NAMES: [&str; 6] = [
    "ImageSize",
    "BlockSize",
    "BlocksCount",
    "MappedBlocksCount",
    "ChecksumType",
    "BmapFileChecksum",
];
const CHECKSUM_TYPE: usize = 4;

/// Maximum number of bytes before the ranges of a bmap. bmaptool writes 2 KB.
/// Limit in bytes.
const MAX_HEAD: u64 = 64 << 10;

const CUT_OFF: &str = "text in no element, or the end is cut off";

const NO_CHECKSUMS: &str = "is a bmap without checksums of ranges";

const LONG: &str = "a map needs one for each block: make it of the image with 'blkhash map create', or a bmap with such \
                    ranges with 'blkhash map export --to bmap'";
