//! The disks that the descriptor (`.ovf`) of an appliance names.
//!
//! Only elements and their attributes are of interest: `<File>` of the references, and `<Disk>`. The
//! text is scanned once, without recursion, and prefixes of names are ignored.

use std::collections::{HashMap, HashSet};

use crate::error::excerpt;

/// A disk image in the appliance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// Name of its member.
    pub name: Vec<u8>,
    /// Size of the member in bytes as the descriptor states it.
    pub size: Option<String>,
    /// Why it cannot be read, if so.
    pub refusal: Option<String>,
}

/// Returns the disks that have a file, in the order of the disk section. Fails with the reason if the
/// text is not understood.
pub(super) fn disks(text: &[u8]) -> Result<Vec<Disk>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
    let (mut files, mut disks) = (HashMap::new(), Vec::new());
    for tag in (Scanner { text }) {
        let Tag { name, mut attributes } = tag?;
        match name {
            "File" if files.len() == MAX_FILES => {
                return Err(format!("names more than {MAX_FILES} files"));
            }
            "File" => {
                let id = attributes.remove("id").unwrap_or_default();
                // `None` marks an ID that is not unique.
                files.entry(id).and_modify(|file| *file = None).or_insert(Some(attributes));
            }
            "Disk" if attributes.contains_key("fileRef") => {
                if disks.len() == MAX_DISKS {
                    return Err(format!("names more than {MAX_DISKS} disks"));
                }
                disks.push(attributes);
            }
            _ => {}
        }
    }
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for disk in &disks {
        let Some(Some(file)) = files.get(&disk["fileRef"]) else {
            return Err("names a disk whose file is not among its references, or twice".into());
        };
        let Some(name) = file.get("href") else {
            return Err("names a disk whose file has no name".into());
        };
        // Two disks may begin with the content of one file.
        if !seen.insert(name) {
            continue;
        }
        let compression = file.get("compression").filter(|it| !matches!(&***it, "" | "identity"));
        let refusal = match (compression, file.get("chunkSize"), disk.get("parentRef")) {
            (Some(method), ..) => {
                let method = excerpt(method.as_bytes());
                Some(format!("is compressed ({method}) in the appliance"))
            }
            (_, Some(_), _) => Some("is in several pieces in the appliance".into()),
            (_, _, Some(_)) => Some("is a difference to another disk".into()),
            (None, None, None) => None,
        };
        let size = file.get("size").cloned();
        found.push(Disk { name: name.as_bytes().to_vec(), size, refusal });
    }
    Ok(found)
}

/// Each disk is found in the archive anew.
pub(super) const MAX_DISKS: usize = 256;

/// As many files as an archive may have members.
const MAX_FILES: usize = 1000;

/// Maximum length in bytes of an attribute that is kept: a path of Linux, with every byte as an entity.
const MAX_VALUE: usize = 16 << 10;

/// The attributes that say where the disks are. Others are not kept.
const KEPT: [&str; 7] = ["id", "href", "size", "compression", "chunkSize", "fileRef", "parentRef"];

/// An element, by its start tag.
struct Tag<'a> {
    /// Name without a prefix.
    name: &'a str,
    /// Values by name without a prefix, of those in [`KEPT`].
    attributes: HashMap<&'a str, String>,
}

/// Iterator over the start tags of a text.
struct Scanner<'a> {
    text: &'a str,
}

impl<'a> Scanner<'a> {
    /// Skips what begins here up to `end`.
    fn skip(&mut self, end: &str) -> Result<(), String> {
        let (_, rest) = self.text.split_once(end).ok_or(CUT_OFF)?;
        self.text = rest;
        Ok(())
    }

    fn tag(&mut self) -> Result<Tag<'a>, String> {
        let name = self.word()?;
        let mut attributes = HashMap::new();
        let has_files = matches!(name, "File" | "Disk");
        loop {
            self.text = self.text.trim_start();
            if let Some(rest) = self.text.strip_prefix('>').or(self.text.strip_prefix("/>")) {
                self.text = rest;
                return Ok(Tag { name, attributes });
            }
            let attribute = self.word()?;
            let value = self.text.trim_start().strip_prefix('=').ok_or(INVALID)?.trim_start();
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let quote = quote.ok_or(INVALID)?;
            let (value, rest) = value[1..].split_once(quote).ok_or(CUT_OFF)?;
            self.text = rest;
            let value = unescape(value)?;
            if !has_files || !KEPT.contains(&attribute) {
                continue;
            }
            if value.len() > MAX_VALUE {
                return Err(format!("has an attribute of more than {MAX_VALUE} bytes"));
            }
            // Two prefixes may be two names or one. A program that knows them takes one of the values.
            if attributes.insert(attribute, value).is_some() {
                return Err(format!("states {attribute} of a file or disk twice"));
            }
        }
    }

    /// Takes a name, and returns it without its prefix.
    fn word(&mut self) -> Result<&'a str, String> {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '=' | '>' | '/' | '<' | '"' | '\'');
        let (word, rest) = self.text.split_at(self.text.find(is_end).ok_or(CUT_OFF)?);
        self.text = rest;
        if word.is_empty() {
            return Err(INVALID.into());
        }
        Ok(word.rsplit(':').next().unwrap_or(word))
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Result<Tag<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (_, rest) = self.text.split_once('<')?;
            self.text = rest;
            let skipped = match () {
                () if rest.starts_with("!--") => self.skip("-->"),
                () if rest.starts_with("![CDATA[") => self.skip("]]>"),
                () if rest.starts_with('?') => self.skip("?>"),
                () if rest.starts_with('/') => self.skip(">"),
                // A document type may define entities.
                () if rest.starts_with('!') => Err("has a document type".into()),
                () => {
                    let tag = self.tag();
                    if tag.is_err() {
                        self.text = "";
                    }
                    return Some(tag);
                }
            };
            if let Err(reason) = skipped {
                self.text = "";
                return Some(Err(reason));
            }
        }
    }
}

/// Resolves the entities that every XML text has.
fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('&') {
        let (entity, after) = after.split_once(';').ok_or(INVALID)?;
        plain.push_str(before);
        plain.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = entity.strip_prefix('#').ok_or(INVALID)?;
                let code = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                let code = code.ok().filter(|code| *code > 0 && !number.contains('+'));
                code.and_then(char::from_u32).ok_or(INVALID)?
            }
        });
        rest = after;
    }
    plain.push_str(rest);
    Ok(plain)
}

const CUT_OFF: &str = "is cut off";
const INVALID: &str = "is not valid XML";
