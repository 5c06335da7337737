//! The disks that the descriptor (`.ovf`) of an appliance names.
//!
//! Only elements and their attributes are of interest: `<File>` of the references, and `<Disk>`. The
//! text is read once, without recursion, and prefixes of names are ignored.

use std::collections::{HashMap, HashSet};

use quick_xml::Reader;
use quick_xml::errors::SyntaxError;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::QName;

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
    let mut xml = Reader::from_str(text);
    // Text between elements and their ends say nothing about disks.
    let config = xml.config_mut();
    (config.allow_dangling_amp, config.allow_unmatched_ends) = (true, true);
    config.check_end_names = false;
    loop {
        let tag = match xml.read_event().map_err(|error| reason(&error))? {
            Event::Start(tag) | Event::Empty(tag) => tag,
            Event::End(tag) => {
                local_name(tag.name())?;
                continue;
            }
            Event::DocType(_) => return Err(DOCUMENT_TYPE.into()),
            Event::Eof => break,
            _ => continue,
        };
        let mut attributes = attributes_of(&tag)?;
        match local_name(tag.name())? {
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

/// Maximum number of disks of a descriptor. Each is found in the archive anew.
/// Limit in disks.
pub(super) const MAX_DISKS: usize = 256;

/// Maximum number of files of a descriptor, as many as an archive may have members.
/// Limit in files.
const MAX_FILES: usize = 1000;

/// Maximum length of an attribute that is kept: a path of Linux, with every byte as an entity.
/// Limit in bytes.
const MAX_VALUE: usize = 16 << 10;

/// The attributes that say where the disks are. Others are not kept.
const KEPT: [&str; 7] = ["id", "href", "size", "compression", "chunkSize", "fileRef", "parentRef"];

/// Returns the values of those attributes of a file or disk that are in [`KEPT`], by name without a prefix.
fn attributes_of(tag: &BytesStart<'_>) -> Result<HashMap<&'static str, String>, String> {
    let mut attributes = HashMap::new();
    let has_files = matches!(local_name(tag.name())?, "File" | "Disk");
    for attribute in tag.attributes().with_checks(false) {
        let attribute = attribute.map_err(|_| INVALID)?;
        let value = unescape(&attribute.value).map_err(|_| INVALID)?;
        let name = local_name(attribute.key)?;
        let kept = KEPT.iter().find(|kept| **kept == name);
        let (true, Some(name)) = (has_files, kept) else { continue };
        if value.len() > MAX_VALUE {
            return Err(format!("has an attribute of more than {MAX_VALUE} bytes"));
        }
        // Two prefixes may be two names or one. A program that knows them takes one of the values.
        if attributes.insert(*name, value.into_owned()).is_some() {
            return Err(format!("states {name} of a file or disk twice"));
        }
    }
    Ok(attributes)
}

/// Returns a name without its prefix. quick-xml takes any text for a name.
fn local_name(name: QName<'_>) -> Result<&str, String> {
    match name.0.is_empty() || name.0.contains(['<', '>', '/', '=', '"', '\'']) {
        true => Err(INVALID.into()),
        false => Ok(name.0.rsplit(':').next().unwrap_or_default()),
    }
}

fn reason(error: &quick_xml::Error) -> &'static str {
    match error {
        quick_xml::Error::Syntax(SyntaxError::InvalidBangMarkup) => DOCUMENT_TYPE,
        quick_xml::Error::Syntax(_) => CUT_OFF,
        _ => INVALID,
    }
}

/// A document type may define entities.
const DOCUMENT_TYPE: &str = "has a document type";
const CUT_OFF: &str = "is cut off";
const INVALID: &str = "is not valid XML";
