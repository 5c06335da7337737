//! Pages of `ListChangedBlocks` and `ListSnapshotBlocks` of the EBS direct APIs, as the AWS command prints them.
//!
//! A page with a `NextToken` is not the last one.

use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::ListError;
use super::extents::Extents;
use super::json::{self, TakeRecord};
use super::text::Text;

/// Reads all pages into `extents`.
pub(super) fn read<R: Read>(text: &mut Text<R>, extents: &mut Extents) -> Result<(), ListError> {
    let mut pages = Pages { extents, goes_on: false };
    json::read(text, &mut pages)?;
    match pages.goes_on {
        false => Ok(()),
        true => Err(ListError::of_list("the list is cut: its last page has a NextToken")),
    }
}

struct Pages<'a> {
    extents: &'a mut Extents,
    /// Whether the last page is not the last one of its list.
    goes_on: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(field_identifier)]
enum Field {
    ChangedBlocks,
    Blocks,
    ExpiryTime,
    VolumeSize,
    BlockSize,
    NextToken,
}

impl TakeRecord for Pages<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, mut page: A) -> Result<(), A::Error> {
        let mut seen = Vec::new();
        let mut block_size = None;
        // Numbers of blocks, whose size follows.
        let mut numbers = Extents::default();
        self.goes_on = false;
        while let Some(field) = page.next_key()? {
            if seen.contains(&field) {
                return Err(A::Error::custom("duplicate field"));
            }
            seen.push(field);
            match field {
                Field::ChangedBlocks => {
                    page.next_value_seed(json::array(&mut ChangedBlocks(&mut numbers)))?;
                }
                Field::Blocks => page.next_value_seed(json::array(&mut Blocks(&mut numbers)))?,
                Field::ExpiryTime => page.next_value::<Scalar>().map(drop)?,
                Field::VolumeSize => {
                    let gib: u64 = page.next_value()?;
                    let size = gib.checked_mul(1 << 30);
                    let size = size.ok_or_else(|| A::Error::custom("VolumeSize is too large"))?;
                    self.extents.state_disk_size(size).map_err(A::Error::custom)?;
                }
                Field::BlockSize => block_size = Some(page.next_value::<u64>()?),
                Field::NextToken => {
                    let token: Option<String> = page.next_value()?;
                    self.goes_on = token.is_some_and(|token| !token.is_empty());
                }
            }
        }
        if !seen.contains(&Field::ChangedBlocks) && !seen.contains(&Field::Blocks) {
            return Err(A::Error::custom("a page without ChangedBlocks or Blocks"));
        }
        let size = block_size.ok_or_else(|| A::Error::missing_field("BlockSize"))?;
        for blocks in numbers.take() {
            let (offset, length) = (blocks.start.checked_mul(size), blocks.end - blocks.start);
            let (Some(offset), Some(length)) = (offset, length.checked_mul(size)) else {
                let problem = format!("BlockIndex {} is too large", blocks.start);
                return Err(A::Error::custom(problem));
            };
            self.extents.add(offset, length).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

struct ChangedBlocks<'a>(&'a mut Extents);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct ChangedBlock {
    block_index: u64,
    #[serde(rename = "FirstBlockToken")]
    _first_block_token: Option<Scalar>,
    #[serde(rename = "SecondBlockToken")]
    _second_block_token: Option<Scalar>,
}

impl TakeRecord for ChangedBlocks<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error> {
        let block: ChangedBlock = json::record(record)?;
        self.0.add(block.block_index, 1).map_err(A::Error::custom)
    }
}

struct Blocks<'a>(&'a mut Extents);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Block {
    block_index: u64,
    #[serde(rename = "BlockToken")]
    _block_token: Option<Scalar>,
}

impl TakeRecord for Blocks<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error> {
        let block: Block = json::record(record)?;
        self.0.add(block.block_index, 1).map_err(A::Error::custom)
    }
}

/// A string, a number or null, of no interest here. `IgnoredAny` would keep the depth of nested arrays in memory.
struct Scalar;

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_str<E>(self, _: &str) -> Result<Scalar, E> {
        Ok(Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Scalar, E> {
        Ok(Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Scalar, E> {
        Ok(Scalar)
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar)
    }
}
