//! Records of `GetMetadataDelta` and `GetMetadataAllocated` of CSI, as `snapshot-metadata-lister` prints them
//! (pkg/iterator/emitters.go of kubernetes-csi/external-snapshot-metadata), or as protobuf's JSON has them.
//!
//! The lister leaves out a `byte_offset` of 0, and protobuf every value that is the default.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

use super::extents::Extents;
use super::json::{self, TakeRecord};

pub(super) struct Records<'a>(pub &'a mut Extents);

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    #[serde(alias = "blockMetadataType")]
    BlockMetadataType,
    #[serde(alias = "volumeCapacityBytes")]
    VolumeCapacityBytes,
    #[serde(alias = "blockMetadata")]
    BlockMetadata,
}

impl TakeRecord for Records<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, mut record: A) -> Result<(), A::Error> {
        let mut seen = Vec::new();
        while let Some(field) = record.next_key()? {
            if seen.contains(&field) {
                return Err(A::Error::custom("duplicate field"));
            }
            seen.push(field);
            match field {
                Field::BlockMetadataType => record.next_value::<BlockType>().map(drop)?,
                Field::VolumeCapacityBytes => match record.next_value()? {
                    // Not stated.
                    Integer(0) => {}
                    Integer(size) => self.0.state_disk_size(size).map_err(A::Error::custom)?,
                },
                Field::BlockMetadata => {
                    record.next_value_seed(json::array(&mut Blocks(self.0)))?;
                }
            }
        }
        Ok(())
    }
}

struct Blocks<'a>(&'a mut Extents);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    #[serde(default, alias = "byteOffset")]
    byte_offset: Integer,
    #[serde(alias = "sizeBytes")]
    size_bytes: Integer,
}

impl TakeRecord for Blocks<'_> {
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error> {
        let Block { byte_offset, size_bytes } = json::record(record)?;
        self.0.add(byte_offset.0, size_bytes.0).map_err(A::Error::custom)
    }
}

/// An integer, which protobuf's JSON writes as a string.
#[derive(Default)]
struct Integer(u64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerVisitor).map(Self)
    }
}

struct IntegerVisitor;

impl Visitor<'_> for IntegerVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        number.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// The type of a record. All types have the same records.
struct BlockType;

impl<'de> Deserialize<'de> for BlockType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BlockTypeVisitor)
    }
}

struct BlockTypeVisitor;

impl Visitor<'_> for BlockTypeVisitor {
    type Value = BlockType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("1 (FIXED_LENGTH) or 2 (VARIABLE_LENGTH)")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<BlockType, E> {
        // 0 is UNKNOWN, also in a record without extents.
        match value {
            0..=2 => Ok(BlockType),
            _ => Err(E::invalid_value(Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<BlockType, E> {
        match name {
            "UNKNOWN" | "FIXED_LENGTH" | "VARIABLE_LENGTH" => Ok(BlockType),
            _ => Err(E::invalid_value(Unexpected::Str(name), &self)),
        }
    }
}
