//! Recognises the form of a list by its content.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::columns::is_header;
use super::{Form, ListError, vmware};

/// Returns the form of a text with this head, which is to be `given`.
pub(super) fn form(head: &[u8], given: Option<Form>) -> Result<Form, ListError> {
    let head = head.trim_ascii_start();
    if given == Some(Form::Xenserver) && !head.is_empty() {
        return Ok(Form::Xenserver);
    }
    if let Some((program, option)) = for_people(head) {
        return Err(ListError::ForPeople { program, option });
    }
    let found = match head.first() {
        None => None,
        Some(b'[' | b'{') => Some(of_json(head)),
        Some(b'<') => Some(Form::ThinDelta),
        Some(_) if vmware::is_text(head) => Some(Form::Vmware),
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
        "startOffset" | "StartOffset" | "changedArea" | "ChangedArea" => Some(Form::Vmware),
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

/// Returns the program that printed a text which is no list, and its option for one.
fn for_people(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<_> = words.take(MAX_WORDS).collect();
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    match &*words {
        [b"Offset", b"Length", b"Type"] => Some(("rbd", "--format json")),
        [b"Record#", ..] => Some(("snapshot-metadata-lister", "-o json")),
        [offset, length, kind, name]
            if [offset, length, kind].into_iter().all(|word| is_number(word))
                && !is_number(name) =>
        {
            Some(("nbdinfo", "--json"))
        }
        _ => None,
    }
}

/// More words than a line for people begins with.
const MAX_WORDS: usize = 8;

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
