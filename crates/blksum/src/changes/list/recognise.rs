//! Recognises the form of a list by its content.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::columns::is_header;
use super::{Form, ListError};

/// Returns the form of a text with this head, which is to be `given`.
pub(super) fn form(head: &[u8], given: Option<Form>) -> Result<Form, ListError> {
    let head = head.trim_ascii_start();
    let found = match head.first() {
        None => None,
        Some(b'[' | b'{') => Some(of_json(head)),
        Some(b'<') => Some(Form::ThinDelta),
        Some(_) => of_columns(head),
    };
    match (given, found) {
        (Some(given @ (Form::Lines | Form::Csv)), None) if head.is_empty() => Ok(given),
        (_, None) if head.is_empty() => Err(ListError::Empty),
        (_, None) => Err(ListError::Unrecognised),
        (Some(given), Some(Form::Json)) if given.is_json() => Ok(given),
        (Some(given), Some(found)) if given != found => Err(ListError::OtherForm { given, found }),
        (_, Some(found)) => Ok(found),
    }
}

/// Returns the form of JSON by the fields of the first record.
fn of_json(head: &[u8]) -> Form {
    let mut fields = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(head);
    // The head can end within the record.
    while fields.is_empty() && Fields(&mut fields).deserialize(&mut json).is_ok() {}
    let of_field = |field: &String| match field.as_str() {
        "block_metadata_type"
        | "volume_capacity_bytes"
        | "block_metadata"
        | "blockMetadataType"
        | "volumeCapacityBytes"
        | "blockMetadata" => Some(Form::Csi),
        "ChangedBlocks" | "Blocks" | "VolumeSize" | "BlockSize" | "NextToken" => Some(Form::Ebs),
        "exists" => Some(Form::Rbd),
        "type" | "description" => Some(Form::Nbdinfo),
        _ => None,
    };
    fields.iter().find_map(of_field).unwrap_or(Form::Json)
}

fn of_columns(head: &[u8]) -> Option<Form> {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let starts_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+');
    if !line.first().is_some_and(starts_number) && !is_header(line) {
        return None;
    }
    Some(if line.contains(&b',') { Form::Csv } else { Form::Lines })
}

/// Collects the names of the fields of the first record.
struct Fields<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("records")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key()? {
            self.0.push(field);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        match array.next_element_seed(Fields(self.0))? {
            None => Ok(()),
            Some(()) => Err(A::Error::custom("the first record is enough")),
        }
    }
}
