//! The property list in XML, which has the tables of runs.
//!
//! The text is read once, without recursion. QEMU looks for data in the whole text and skips characters that are not of
//! base64. Here, data must be valid, and a table anywhere but in `resource-fork`, `blkx` is an error.

use std::mem;

use data_encoding::BASE64;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

use super::Named;
use super::table::Table;
use crate::error::not_xml;

/// Returns the tables, in the order of the text. Fails with the reason if it is not understood.
pub(super) fn tables(text: &[u8]) -> Result<Vec<Named>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
    let mut xml = Reader::from_str(text);
    let (mut path, mut value) = (Vec::<Level>::new(), String::new());
    let mut tables = Vec::new();
    loop {
        match xml.read_event().map_err(|error| not_xml(&error))? {
            Event::Eof => break,
            // The type that all of them have, which is not looked at.
            Event::DocType(kind) if kind.contains('[') => return Err("declares entities".into()),
            Event::Start(_) if path.len() == MAX_DEPTH => return Err("is too deep".into()),
            Event::Start(_) => {
                value.clear();
                path.push(Level::default());
            }
            Event::Text(text) => value += &text,
            Event::GeneralRef(name) => {
                value +=
                    &unescape(&format!("&{};", &*name)).map_err(|_| "has an unknown entity")?;
            }
            Event::CData(_) => return Err("has a CDATA section".into()),
            Event::Comment(_) => return Err("has a comment".into()),
            Event::End(tag) => {
                let level = path.pop().unwrap_or_default();
                let value = mem::take(&mut value);
                match (level.table, tag.name().as_ref()) {
                    (table, "dict") if is_table(&path) => {
                        let table = table.ok_or("has an entry without a table of runs")?;
                        tables.push(Named { name: level.name, table });
                    }
                    (Some(_), _) => return Err(MISPLACED.into()),
                    (None, name) => {
                        if let Some(parent) = path.last_mut() {
                            parent.add(name, value)?;
                        }
                    }
                }
            }
            _ => {}
        }
    }
    if path.is_empty() { Ok(tables) } else { Err("is cut off".into()) }
}

/// An element that was not closed.
#[derive(Default)]
struct Level {
    /// The last key in it.
    key: String,
    /// The values of `Name` and `Data`.
    name: String,
    table: Option<Vec<u8>>,
}

impl Level {
    /// Adds the value of an element.
    fn add(&mut self, element: &str, value: String) -> Result<(), String> {
        match element {
            "key" => self.key = value,
            "string" if self.key == "Name" => self.name = value,
            "data" => {
                let data = decode(&value)?;
                if Table::is_one(&data) {
                    if self.key != "Data" || self.table.is_some() {
                        return Err(MISPLACED.into());
                    }
                    self.table = Some(data);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns whether the elements in a path belong to tables.
fn is_table(path: &[Level]) -> bool {
    let keys: Vec<&str> = path.iter().map(|level| &*level.key).collect();
    matches!(keys[..], ["", "resource-fork", "blkx", ""])
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    let text: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64.decode(&text).map_err(|_| "has data that is not base64".into())
}

/// Maximum depth of the property list of a dmg image.
/// Limit in elements.
const MAX_DEPTH: usize = 32;

const MISPLACED: &str = "has a table of runs in a place of another use";
