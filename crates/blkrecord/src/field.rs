//! How a field becomes a part of an object.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;

use serde::ser::SerializeMap;

use crate::object::Record;
use crate::row::Row;
use crate::shape::Shape;

/// A field of a record.
pub trait Field {
    /// Writes the field to an object, unless it is absent.
    ///
    /// # Errors
    ///
    /// Fails if the serializer does.
    fn write<M: SerializeMap>(
        &self,
        name: &'static str,
        may_be_absent: bool,
        object: &mut M,
    ) -> Result<(), M::Error>;

    /// Adds the rows that describe the field. `row` has everything but its type.
    fn describe(row: Row, rows: &mut Vec<Row>);
}

impl<T: Shape> Field for T {
    fn write<M: SerializeMap>(
        &self,
        name: &'static str,
        may_be_absent: bool,
        object: &mut M,
    ) -> Result<(), M::Error> {
        match may_be_absent && self.is_absent() {
            true => Ok(()),
            false => object.serialize_entry(name, self),
        }
    }

    fn describe(mut row: Row, rows: &mut Vec<Row>) {
        let name = row.name.clone();
        row.kind = if row.absent.is_empty() { T::kind() } else { T::kind_if_present() };
        let inside = T::inside();
        if !inside.heading.is_empty() {
            let anchor = inside.heading.to_lowercase().replace(' ', "-");
            let _ = write!(row.text, "; see [{}](#{anchor})", inside.heading);
        }
        rows.push(row);
        let inside = inside.rows.into_iter();
        rows.extend(inside.map(|row| Row { name: name.clone() + &row.name, ..row }));
    }
}

/// A name that may be no Unicode: a field with its text, and after it one with its bytes in hexadecimal where the text
/// is not exact.
#[derive(Clone, Debug)]
pub struct Name<'a>(Cow<'a, OsStr>);

impl<'a> Name<'a> {
    /// Makes a field of a name.
    pub fn new(name: impl Into<Cow<'a, OsStr>>) -> Self {
        Self(name.into())
    }
}

impl Field for Name<'_> {
    fn write<M: SerializeMap>(
        &self,
        name: &'static str,
        _may_be_absent: bool,
        object: &mut M,
    ) -> Result<(), M::Error> {
        let text = self.0.to_string_lossy();
        object.serialize_entry(name, &text)?;
        if let Cow::Owned(_) = text {
            let bytes = hex(self.0.as_encoded_bytes());
            object.serialize_entry(&format!("{name}_bytes"), &bytes)?;
        }
        Ok(())
    }

    fn describe(mut row: Row, rows: &mut Vec<Row>) {
        row.kind = "string".to_owned();
        let bytes = Row {
            name: format!("{}_bytes", row.name),
            kind: row.kind.clone(),
            text: "its bytes in hexadecimal".to_owned(),
            absent: format!("if `{}` is exact", row.name),
        };
        rows.extend([row, bytes]);
    }
}

impl Field for Option<Name<'_>> {
    fn write<M: SerializeMap>(
        &self,
        name: &'static str,
        may_be_absent: bool,
        object: &mut M,
    ) -> Result<(), M::Error> {
        match self {
            Some(text) => text.write(name, may_be_absent, object),
            None => None::<&str>.write(name, may_be_absent, object),
        }
    }

    fn describe(row: Row, rows: &mut Vec<Row>) {
        let (first, may_be_absent) = (rows.len(), !row.absent.is_empty());
        Name::describe(row, rows);
        if !may_be_absent {
            rows[first].kind += " or null";
        }
    }
}

/// A record whose fields are fields of the outer one. What says when it is absent holds for all of them.
#[derive(Clone, Copy, Debug)]
pub struct Flat<T>(pub T);

impl<T: Record> Field for Flat<T> {
    fn write<M: SerializeMap>(
        &self,
        _name: &'static str,
        _may_be_absent: bool,
        object: &mut M,
    ) -> Result<(), M::Error> {
        self.0.write(object)
    }

    fn describe(row: Row, rows: &mut Vec<Row>) {
        rows.extend(T::rows().into_iter().map(|mut inner| {
            let is_within = inner.name.contains('.');
            if !is_within && !row.absent.is_empty() {
                let comma = if inner.absent.is_empty() { "" } else { ", " };
                inner.absent += &format!("{comma}{}", row.absent);
            }
            inner
        }));
    }
}

/// No fields, if there is no record.
impl<T: Record> Record for Option<T> {
    const HEADING: &'static str = T::HEADING;

    fn write<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        self.as_ref().map_or(Ok(()), |record| record.write(object))
    }

    fn rows() -> Vec<Row> {
        T::rows()
    }
}

impl<T: Record> Record for &T {
    const HEADING: &'static str = T::HEADING;

    fn write<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        T::write(self, object)
    }

    fn rows() -> Vec<Row> {
        T::rows()
    }
}

/// Writes bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::record;

    record! {
        struct Outer<'a> {
            /// its type
            r#type: &'static str,
            /// its name
            name: Name<'a>,
            /// the hash file
            hash_file: Name<'a>,
            /// the device
            device: Option<Name<'a>>,
            /// more
            inner: Flat<Option<Inner>>,
        }
    }

    record! {
        struct Inner {
            /// blocks
            #[absent("without any")]
            blocks: Option<u64>,
            /// sizes
            sizes: Vec<u64>,
        }
    }

    #[test]
    fn records_keep_their_order_and_the_bytes_of_names() {
        let record = |inner| Outer {
            r#type: "summary",
            name: Name::new(OsStr::new("a")),
            hash_file: Name::new(OsStr::from_bytes(b"caf\xe9")),
            device: None,
            inner: Flat(inner),
        };
        let names = concat!(
            r#"{"type":"summary","name":"a","hash_file":"caf�","hash_file_bytes":"636166e9","#,
            r#""device":null"#
        );
        for (inner, rest) in [
            (Some(Inner { blocks: Some(2), sizes: vec![1] }), r#","blocks":2,"sizes":[1]}"#),
            (Some(Inner { blocks: None, sizes: vec![] }), r#","sizes":[]}"#),
            (None, "}"),
        ] {
            assert_eq!(serde_json::to_string(&record(inner)).unwrap(), format!("{names}{rest}"));
        }
    }

    #[test]
    fn rows_describe_what_is_written() {
        let rows = Outer::rows().into_iter().map(|it| [it.name, it.kind, it.absent].join("|"));
        let expected = [
            "type|string|",
            "name|string|",
            "name_bytes|string|if `name` is exact",
            "hash_file|string|",
            "hash_file_bytes|string|if `hash_file` is exact",
            "device|string or null|",
            "device_bytes|string|if `device` is exact",
            "blocks|integer|without any",
            "sizes|array of integers|",
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }
}
