//! The description of the machine in an XVA archive (`ova.xml`): which of its virtual disks are there, and their sizes.
//!
//! The text is an XML-RPC value: a list of objects, each with a class, a reference and a snapshot of its fields. It is read
//! once, without recursion.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::error::not_xml;

/// A disk of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// The reference of its content, with which the names of its blocks begin.
    pub reference: String,
    pub size: u64,
    /// Its number at the machine, and its name.
    pub device: Option<String>,
    pub label: Option<String>,
}

/// An object, by the names of its fields. Names in its snapshot have a blank before.
type Object = BTreeMap<String, String>;

/// Returns the disks, in the order of the text. Fails with the reason if it is not understood.
pub(super) fn disks(text: &[u8]) -> Result<Vec<Disk>, String> {
    let objects = objects(text)?;
    let of_class = |class: &'static str| {
        objects.iter().filter(move |object| object.get("class").is_some_and(|it| it == class))
    };
    let mut disks: Vec<Disk> = Vec::new();
    for drive in of_class("VBD") {
        let get = |name: &str| drive.get(name).filter(|value| !value.is_empty());
        let Some(reference) = get(" VDI").filter(|it| *it != "OpaqueRef:NULL") else { continue };
        if get(" type").is_none_or(|kind| kind != "Disk") {
            continue;
        }
        let is_it = |object: &&Object| object.get("id") == Some(reference);
        let content = of_class("VDI").find(is_it);
        let Some(content) = content else { return Err(format!("lacks the disk {reference:?}")) };
        let size = content.get(" virtual_size").and_then(|size| size.parse().ok());
        let size = size.filter(|size| (1..=i64::MAX as u64).contains(size));
        let size = size.ok_or("has a disk without a valid size")?;
        let is_plain = reference
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b':' || byte == b'-');
        if !is_plain {
            return Err("has a disk with an odd reference".into());
        }
        if disks.iter().any(|disk| disk.reference == *reference) {
            continue;
        }
        if disks.len() == MAX_DISKS {
            return Err(format!("has more than {MAX_DISKS} disks"));
        }
        let label = content.get(" name_label").filter(|label| !label.is_empty()).cloned();
        let device = get(" userdevice").cloned();
        disks.push(Disk { reference: reference.clone(), size, device, label });
    }
    Ok(disks)
}

fn objects(text: &[u8]) -> Result<Vec<Object>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
    let mut xml = Reader::from_str(text);
    // The names of the members in which the reader is.
    let mut path: Vec<String> = Vec::new();
    let (mut objects, mut object, mut value) = (Vec::new(), Object::new(), String::new());
    loop {
        let event = xml.read_event().map_err(|error| not_xml(&error))?;
        match event {
            Event::Eof => break,
            Event::DocType(_) => return Err("has a document type".into()),
            Event::Start(tag) => {
                value.clear();
                match tag.name().as_ref() {
                    "member" if path.len() == MAX_DEPTH => return Err("is too deep".into()),
                    "member" => path.push(String::new()),
                    "struct" if path == ["objects"] => object.clear(),
                    _ => {}
                }
            }
            Event::Text(text) => value += &text,
            Event::GeneralRef(name) => value.push(entity(&name).ok_or("has an unknown entity")?),
            Event::CData(_) => return Err("has a CDATA section".into()),
            Event::End(tag) => match tag.name().as_ref() {
                "name" => {
                    if let Some(last) = path.last_mut() {
                        *last = std::mem::take(&mut value);
                    }
                }
                "value" => {
                    let field = match &*path {
                        [objects, field] if objects == "objects" => Some(field.clone()),
                        [objects, snapshot, field]
                            if objects == "objects" && snapshot == "snapshot" =>
                        {
                            Some(format!(" {field}"))
                        }
                        _ => None,
                    };
                    let kept = field.filter(|field| KEPT.contains(&&**field));
                    if let Some(field) = kept
                        && value.len() <= MAX_VALUE
                        && object.insert(field, std::mem::take(&mut value)).is_some()
                    {
                        return Err("has an object with a field twice".into());
                    }
                    value.clear();
                }
                "member" => drop(path.pop()),
                "struct" if path == ["objects"] && object.contains_key("class") => {
                    if objects.len() == MAX_OBJECTS {
                        return Err(format!("has more than {MAX_OBJECTS} objects"));
                    }
                    objects.push(std::mem::take(&mut object));
                }
                _ => {}
            },
            _ => {}
        }
    }
    Ok(objects)
}

/// Returns the character of an entity that XML defines.
fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => return None,
    })
}

/// The fields that are kept.
const KEPT: [&str; 7] =
    ["class", "id", " VDI", " type", " userdevice", " virtual_size", " name_label"];

/// Maximum number of disks of a machine in an XVA archive.
/// Limit in disks.
const MAX_DISKS: usize = 256;

/// Maximum number of objects of the description of a machine in an XVA archive.
/// Limit in objects.
const MAX_OBJECTS: usize = 100_000;

/// Maximum depth of the description of a machine in an XVA archive.
/// Limit in members.
const MAX_DEPTH: usize = 64;

/// Maximum length of a field that is kept of the description of a machine in an XVA archive.
/// Limit in bytes.
const MAX_VALUE: usize = 4 << 10;
