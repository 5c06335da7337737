//! The parent that a differencing disk names.
//!
//! The name comes from the relative locator, or else from the header, which holds a file name without a
//! folder in most images. Absolute locators are paths of another system. The time of the last change of
//! the parent is not compared, because copying a file changes it.

use super::footer::Id;
use super::header::HEADER;
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Head, array};
use crate::storage::HostFile;

/// The parent of a disk.
pub(super) struct Parent {
    /// File name, with slashes.
    pub name: Vec<u8>,
    pub id: Id,
}

impl Parent {
    /// Reads the parent from the second header, which is at `offset`.
    pub fn read(file: &HostFile, offset: u64) -> Result<Self> {
        let head = Head::read(file, offset, HEADER)?;
        let id = array(head.bytes(), 40);
        let mut locators = (0..LOCATORS).map(|index| LOCATORS_AT + index * LOCATOR);
        let relative = locators.find(|at| head.bytes()[*at..].starts_with(b"W2ru"));
        let name = match relative {
            Some(at) => {
                let name = head.name("parent", head.be64(at + 16), head.be32(at + 8))?;
                decode(name.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair)))
            }
            None => {
                let name = &head.bytes()[NAME_AT..LOCATORS_AT];
                let name = decode(name.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair)));
                // Some programs write a full path of Windows.
                name.map(|name| name.rsplit('\\').next().unwrap_or_default().to_owned())
            }
        };
        match name {
            Some(name) if !name.is_empty() => {
                Ok(Self { name: name.replace('\\', "/").into_bytes(), id })
            }
            _ => {
                let reason = "is a difference to another disk, and does not name it";
                Err(file.error(ErrorKind::Reference, reason).at(offset))
            }
        }
    }
}

/// Decodes a name up to its NUL, if it has one. Returns `None` unless it is UTF-16.
fn decode(units: impl Iterator<Item = u16>) -> Option<String> {
    char::decode_utf16(units.take_while(|unit| *unit != 0)).collect::<Result<_, _>>().ok()
}

const NAME_AT: usize = 64;
const LOCATORS_AT: usize = 576;
const LOCATORS: usize = 8;
/// Size of a locator in bytes.
const LOCATOR: usize = 24;
