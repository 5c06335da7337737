//! XML of `thin_delta` (thin-provisioning-tools).
//!
//! ```xml
//! <superblock uuid="" time="1" transaction="1" data_block_size="128" nr_data_blocks="1000">
//!   <diff left="1" right="3">
//!     <same begin="0" length="2"/>
//!     <different begin="2" length="1"/>
//!     <left_only begin="3" length="1"/>
//!     <right_only begin="9" length="3"/>
//!   </diff>
//! </superblock>
//! ```
//!
//! With `--verbose`, these elements contain `<range begin="0" data_begin="0" length="2"/>`. Only what the program prints
//! is read, not XML in general.

use std::io::{self, Read};
use std::sync::Arc;

use quick_xml::Error::{Io, Syntax};
use quick_xml::events::{BytesEnd, BytesStart, Event};

use super::ListError;
use super::columns::number;
use super::extents::{Extents, extent};
use super::text::{MAX_TOKEN, Text};

/// Reads the differences into `extents`.
pub(super) fn read<R: Read>(text: &mut Text<R>, extents: &mut Extents) -> Result<(), ListError> {
    let mut reader = Reader { extents, block_size: 0, open: Vec::new(), has_diff: false };
    let mut xml = quick_xml::Reader::from_reader(text.take(0));
    xml.config_mut().check_end_names = false;
    xml.config_mut().allow_unmatched_ends = true;
    xml.config_mut().trim_text_start = true;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        xml.get_mut().set_limit(MAX_TOKEN as u64);
        let event = xml.read_event_into(&mut bytes);
        let is_too_long = xml.get_ref().limit() == 0;
        let is_complete = reader.is_complete();
        let added = match event {
            Err(Io(error)) => {
                let error = Arc::into_inner(error).unwrap_or_else(|| io::ErrorKind::Other.into());
                return Err(ListError::of_io(error));
            }
            _ if is_too_long => Err(format!("an element of more than {MAX_TOKEN} bytes")),
            Err(Syntax(_)) => Err("the list is cut".into()),
            Err(_) => Err(UNEXPECTED.into()),
            Ok(event) if !event.as_bytes().iter().all(is_plain) => Err(UNEXPECTED.into()),
            Ok(Event::Text(text)) if text.trim_ascii().is_empty() => Ok(()),
            Ok(Event::Eof) if is_complete => return Ok(()),
            Ok(Event::Eof) => Err("the list is cut".into()),
            Ok(_) if is_complete => Err("text after the end of the list".into()),
            Ok(Event::Start(tag)) => reader.start(&tag, false),
            Ok(Event::Empty(tag)) => reader.start(&tag, true),
            Ok(Event::End(tag)) => reader.end(&tag),
            Ok(Event::Text(_) | Event::GeneralRef(_)) => Err("text between elements".into()),
            Ok(Event::Decl(_) | Event::PI(_)) => Err("unknown element <?>".into()),
            Ok(_) => Err("unknown element <!-->".into()),
        };
        added.map_err(|problem| ListError::at_line(xml.get_ref().get_ref().line(), &problem))?;
    }
}

struct Reader<'a> {
    extents: &'a mut Extents,
    /// Size of a block in bytes.
    block_size: u64,
    /// The elements that are open.
    open: Vec<Element>,
    has_diff: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Superblock,
    Diff,
    /// Blocks that differ.
    Different,
    LeftOnly,
    RightOnly,
    /// Blocks that do not differ.
    Same,
    Range,
}

impl Element {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "superblock" => Self::Superblock,
            "diff" => Self::Diff,
            "different" => Self::Different,
            "left_only" => Self::LeftOnly,
            "right_only" => Self::RightOnly,
            "same" => Self::Same,
            "range" => Self::Range,
            _ => return None,
        })
    }

    /// Returns whether the element stands for blocks, by itself or with the ranges in it.
    fn has_blocks(self) -> bool {
        matches!(self, Self::Different | Self::LeftOnly | Self::RightOnly | Self::Same)
    }
}

impl Reader<'_> {
    fn is_complete(&self) -> bool {
        self.open.is_empty() && self.has_diff
    }

    fn end(&mut self, tag: &BytesEnd<'_>) -> Result<(), String> {
        let name = tag.name().0;
        match self.open.pop() {
            Some(open) if Some(open) == Element::of_name(name) => Ok(()),
            _ => Err(format!("</{name}> ends no element")),
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>, is_empty: bool) -> Result<(), String> {
        let name = tag.name().0;
        let element = Element::of_name(name).ok_or_else(|| format!("unknown element <{name}>"))?;
        let attributes = attributes_of(tag.attributes_raw())?;
        let parent = self.open.last().copied();
        match (parent, element) {
            (None, Element::Superblock) if !is_empty => {
                let size = number(attribute(&attributes, "data_block_size")?.as_bytes())?;
                let size = size.checked_mul(SECTOR).filter(|size| *size > 0);
                self.block_size = size.ok_or("data_block_size is not a size of blocks")?;
            }
            (Some(Element::Superblock), Element::Diff) if !self.has_diff => self.has_diff = true,
            (Some(Element::Diff), kind) if kind.has_blocks() && is_empty => {
                self.blocks(kind, &attributes)?;
            }
            (Some(Element::Diff), kind) if kind.has_blocks() && attributes.is_empty() => {}
            (Some(kind), Element::Range) if kind.has_blocks() && is_empty => {
                self.blocks(kind, &attributes)?;
            }
            _ => return Err(format!("unexpected element <{name}>")),
        }
        if !is_empty {
            self.open.push(element);
        }
        Ok(())
    }

    /// Takes the blocks of an element.
    fn blocks(&mut self, kind: Element, attributes: &[(&str, &str)]) -> Result<(), String> {
        if let Some((name, _)) = attributes.iter().find(|(name, _)| !KNOWN.contains(name)) {
            return Err(format!("unknown attribute {name}"));
        }
        let in_bytes = |name| {
            let blocks = number(attribute(attributes, name)?.as_bytes())?;
            let bytes = blocks.checked_mul(self.block_size);
            bytes.ok_or_else(|| format!("{name} {blocks} is too large"))
        };
        let (offset, length) = (in_bytes("begin")?, in_bytes("length")?);
        match kind {
            Element::Same => extent(offset, length).map(drop),
            _ => self.extents.add(offset, length),
        }
    }
}

/// Splits `NAME="VALUE" ...`.
fn attributes_of(mut text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut attributes: Vec<(&str, &str)> = Vec::new();
    while !text.trim_ascii_start().is_empty() {
        let (name, rest) = text.split_once('=').ok_or("an attribute without a value")?;
        let quoted = rest.strip_prefix('"').ok_or("a value without quotes")?;
        let (value, rest) = quoted.split_once('"').ok_or("a value without quotes")?;
        let name = name.trim_ascii_start();
        let is_name = |name: &str| name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        if name.is_empty() || !is_name(name) || value.contains(['<', '&']) {
            return Err("an attribute is not NAME=\"VALUE\"".into());
        }
        if attributes.iter().any(|(other, _)| *other == name) {
            return Err(format!("attribute {name} is there twice"));
        }
        if !(rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_whitespace())) {
            return Err("attributes without a space in between".into());
        }
        attributes.push((name, value));
        text = rest;
    }
    Ok(attributes)
}

fn attribute<'a>(attributes: &[(&str, &'a str)], name: &str) -> Result<&'a str, String> {
    let found = attributes.iter().find(|(other, _)| *other == name);
    found.map(|(_, value)| *value).ok_or_else(|| format!("no attribute {name}"))
}

/// Returns whether a character may be in the XML of the program. Form feed and others are not allowed in any XML.
fn is_plain(byte: &u8) -> bool {
    byte.is_ascii_graphic() || b" \t\r\n".contains(byte)
}

const UNEXPECTED: &str = "an unexpected character";

/// Unit of `data_block_size` in bytes.
const SECTOR: u64 = 512;

/// The attributes of blocks. Blocks of the data device do not matter here.
const KNOWN: [&str; 5] = ["begin", "length", "data_begin", "left_data_begin", "right_data_begin"];
