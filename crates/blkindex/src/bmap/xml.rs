//! Reads the tags of a bmap. Only what bmaptool writes is read, not XML in general.

use std::io::{self, BufReader, Read, Take};
use std::sync::Arc;

use blkmap::{Error, ReadAt, Result};
use quick_xml::Error::{Encoding, Io, Syntax};
use quick_xml::Reader;
use quick_xml::events::Event;

use crate::text::{Bytes, MAX_TOKEN};

/// A tag, with the text before it.
pub(super) struct Tag {
    /// Offset of the bracket.
    pub at: u64,
    /// Offset of the text.
    pub text_at: u64,
    pub text: String,
    /// Name, with a slash before it at the end of an element.
    pub name: String,
    /// What follows the name.
    pub attributes: String,
}

impl Tag {
    /// Returns the value of the attribute `NAME="VALUE"`, if it is the only one.
    pub fn only_attribute(&self, name: &str) -> Option<&str> {
        self.attributes.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"')
    }
}

/// The tags of a file. Comments and the declaration are left out.
pub(super) struct Tags<'a> {
    xml: Reader<Take<BufReader<Bytes<'a>>>>,
    bytes: Vec<u8>,
    /// Offset of the first byte that is read.
    start: u64,
    /// Offset after the last tag.
    pub at: u64,
}

impl<'a> Tags<'a> {
    pub fn new(file: &'a dyn ReadAt, start: u64) -> Result<Self> {
        let mut xml = Reader::from_reader(Bytes::buffered(file, start)?.take(0));
        xml.config_mut().check_end_names = false;
        xml.config_mut().allow_unmatched_ends = true;
        Ok(Self { xml, bytes: Vec::with_capacity(MAX_TOKEN), start, at: start })
    }

    /// Returns the next tag, or `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Tag>> {
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
    pub fn expect(&mut self) -> Result<Tag> {
        self.next()?.ok_or_else(|| Error::damaged(self.at, "the file is cut"))
    }

    /// Returns the next tag, before which there is no text.
    pub fn bare(&mut self) -> Result<Tag> {
        let tag = self.expect()?;
        match tag.text.trim().is_empty() {
            true => Ok(tag),
            false => Err(Error::damaged(tag.text_at, "text between elements")),
        }
    }
}

const CUT_OFF: &str = "text in no element, or the end is cut off";
