//! Records of JSON that are extents: of rbd and nbdinfo, and plain ones.

use std::io::Read;

use serde::Deserialize;
use serde::de::{Error, MapAccess};

use super::ListError;
use super::extents::{Extents, extent};
use super::json::{self, TakeRecord};
use super::text::Text;

/// Records of an offset and a length.
pub(super) struct Plain<'a>(pub &'a mut Extents);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainRecord {
    offset: u64,
    length: u64,
}

impl TakeRecord for Plain<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error> {
        let PlainRecord { offset, length } = json::record(record)?;
        self.0.add(offset, length).map_err(A::Error::custom)
    }
}

/// Records of `rbd diff` (src/tools/rbd/action/Diff.cc of Ceph), in which `exists` is a string.
pub(super) struct Rbd<'a>(pub &'a mut Extents);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RbdRecord {
    offset: u64,
    length: u64,
    /// Without data, the extent was discarded. That is a change.
    #[serde(rename = "exists")]
    _exists: RbdExists,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RbdExists {
    True,
    False,
}

impl TakeRecord for Rbd<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error> {
        let RbdRecord { offset, length, .. } = json::record(record)?;
        self.0.add(offset, length).map_err(A::Error::custom)
    }
}

/// Reads the map of a dirty bitmap into `extents`.
pub(super) fn read_nbdinfo<R: Read>(
    text: &mut Text<R>,
    extents: &mut Extents,
) -> Result<(), ListError> {
    let mut map = Nbdinfo { extents, end: 0 };
    json::read(text, &mut map)?;
    let end = map.end;
    extents.state_disk_size(end).map_err(|problem| ListError::of_list(&problem))
}

/// Records of nbdinfo, which follow each other from the start of the disk to its end.
struct Nbdinfo<'a> {
    extents: &'a mut Extents,
    /// End of the last extent.
    end: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NbdinfoRecord {
    offset: u64,
    length: u64,
    #[serde(rename = "type")]
    flags: u64,
    /// Depends on the context. Contexts that nbdinfo does not know have none.
    description: Option<String>,
}

impl TakeRecord for Nbdinfo<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error> {
        let NbdinfoRecord { offset, length, flags, description } = json::record(record)?;
        let is_dirty = is_dirty(flags, description.as_deref()).map_err(A::Error::custom)?;
        if offset != self.end {
            let end = self.end;
            let problem =
                format!("the extent at {offset} does not follow the end of the last, {end}");
            return Err(A::Error::custom(problem));
        }
        self.end = extent(offset, length).map_err(A::Error::custom)?.end;
        match is_dirty {
            true => self.extents.add(offset, length).map_err(A::Error::custom),
            false => Ok(()),
        }
    }
}

fn is_dirty(flags: u64, description: Option<&str>) -> Result<bool, String> {
    let other = |context| {
        Err(format!("a map of {context} does not tell changes: it needs qemu:dirty-bitmap:NAME"))
    };
    match (flags, description) {
        (0, Some("clean")) => Ok(false),
        (1, Some("dirty")) => Ok(true),
        (_, Some("data" | "hole" | "zero" | "hole,zero")) => other("base:allocation"),
        (_, Some("absent" | "local")) => other("qemu:allocation-depth"),
        (_, Some(text)) if text.starts_with("backing depth") => other("qemu:allocation-depth"),
        (_, None) => other("an unknown context"),
        (_, Some(text)) => Err(format!("type {flags}, '{text}', is neither clean nor dirty")),
    }
}
