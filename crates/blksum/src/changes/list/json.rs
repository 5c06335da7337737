//! Records of JSON, one after another, within limits.

use std::fmt;
use std::io::{self, BufReader, Read};

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::ListError;
use super::text::{MAX_TOKEN, Text};

/// Takes the records of a list.
pub(super) trait TakeRecord {
    /// Reads a record.
    fn take<'de, A: MapAccess<'de>>(&mut self, record: A) -> Result<(), A::Error>;
}

/// Reads all records: any number of records and arrays of records. There is at least one of these.
pub(super) fn read<R: Read>(
    text: &mut Text<R>,
    records: &mut impl TakeRecord,
) -> Result<(), ListError> {
    let strings = ShortStrings { text, length: None, is_escaped: false };
    // Single bytes are read from the buffer.
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(strings));
    loop {
        Records { records, or_record: true, or_null: false }
            .deserialize(&mut json)
            .map_err(ListError::of_json)?;
        match json.end() {
            Ok(()) => return Ok(()),
            Err(error) if error.is_io() => return Err(ListError::of_json(error)),
            // Something follows, and is not consumed.
            Err(_) => {}
        }
    }
}

/// Reads an array of records in a record. `null` is an empty one.
pub(super) fn array<T: TakeRecord>(records: &mut T) -> Records<'_, T> {
    Records { records, or_record: false, or_null: true }
}

/// Reads a record with fixed fields.
pub(super) fn record<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    record: A,
) -> Result<T, A::Error> {
    T::deserialize(MapAccessDeserializer::new(record))
}

/// An array of records.
pub(super) struct Records<'a, T> {
    records: &'a mut T,
    /// Whether a record is as good as an array of it.
    or_record: bool,
    /// Whether `null` is as good as an empty array.
    or_null: bool,
}

impl<'de, T: TakeRecord> DeserializeSeed<'de> for Records<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: TakeRecord> Visitor<'de> for Records<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while array.next_element_seed(Record(self.records))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, record: A) -> Result<(), A::Error> {
        match self.or_record {
            true => self.records.take(record),
            false => Err(A::Error::custom("a record where an array of records is expected")),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        match self.or_null {
            true => Ok(()),
            false => Err(E::custom("null where an array of records is expected")),
        }
    }
}

struct Record<'a, T>(&'a mut T);

impl<'de, T: TakeRecord> DeserializeSeed<'de> for Record<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: TakeRecord> Visitor<'de> for Record<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, record: A) -> Result<(), A::Error> {
        self.0.take(record)
    }
}

/// JSON whose strings have at most [`MAX_TOKEN`] bytes: serde_json keeps a string in memory.
struct ShortStrings<'a, R> {
    text: &'a mut Text<R>,
    /// Length so far of the string in which the text is.
    length: Option<usize>,
    /// Whether the last byte was a backslash that escapes the next one.
    is_escaped: bool,
}

impl<R: Read> Read for ShortStrings<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.text.read(buffer)?;
        for byte in &buffer[..length] {
            let ends = *byte == b'"' && !self.is_escaped;
            self.is_escaped = self.length.is_some() && *byte == b'\\' && !self.is_escaped;
            self.length = match self.length {
                None if ends => Some(0),
                None => None,
                Some(_) if ends => None,
                Some(MAX_TOKEN) => {
                    let problem = format!("a string of more than {MAX_TOKEN} bytes");
                    return Err(io::Error::other(ListError::of_list(&problem)));
                }
                Some(length) => Some(length + 1),
            };
        }
        Ok(length)
    }
}
