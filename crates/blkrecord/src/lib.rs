//! JSON objects that describe themselves.
//!
//! [`record!`] defines a struct. Its fields are written as a JSON object in their order, and [`Record::rows`] describes
//! them for a page: name, type, meaning, and when a field is absent. Types are the struct's, meanings are the
//! documentation comments.
//!
//! ```
//! use std::ffi::OsStr;
//!
//! use blkrecord::{Name, Record, record};
//!
//! record! {
//!     pub struct File<'a> {
//!         /// name of the file
//!         pub name: Name<'a>,
//!         /// bytes of it that take space; null if the system does not say
//!         pub stored: Option<u64>,
//!         /// why it cannot be read
//!         #[absent("if it can")]
//!         pub error: Option<String>,
//!     }
//! }
//!
//! let file = File { name: Name::new(OsStr::new("disk.img")), stored: None, error: None };
//! assert_eq!(serde_json::to_string(&file).unwrap(), r#"{"name":"disk.img","stored":null}"#);
//! let rows: Vec<_> = File::rows().iter().map(|row| format!("{} {}", row.name, row.kind)).collect();
//! assert_eq!(rows, ["name string", "name_bytes string", "stored integer or null", "error string"]);
//! ```

mod field;
mod object;
mod row;
mod shape;

pub use field::{Field, Flat, Name, hex};
pub use object::Record;
pub use row::Row;
#[doc(hidden)]
pub use serde;
pub use shape::{Inside, Shape};

/// Defines a struct that is a [`Record`].
///
/// `#[absent("REASON")]` says when a field is absent. An `Option` then has no field instead of `null`, and so has a list or
/// a truth value: none if it is empty or false. A string after the name of the struct is [`Record::HEADING`].
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $about:literal])* $(#[derive($($derive:ident),*)])?
        $vis:vis struct $name:ident $(<$life:lifetime>)? $(as $heading:literal)? {
            $(
                $(#[doc = $doc:literal])+ $(#[absent($absent:literal)])?
                $field_vis:vis $field:ident: $type:ty
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])* $(#[derive($($derive),*)])?
        $vis struct $name $(<$life>)? {
            $($(#[doc = $doc])+ $field_vis $field: $type),*
        }

        impl $(<$life>)? $crate::Record for $name $(<$life>)? {
            const HEADING: &'static str = concat!($($heading)?);

            fn write<M: $crate::serde::ser::SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
                $($crate::Field::write(
                    &self.$field,
                    stringify!($field).trim_start_matches("r#"),
                    !concat!($($absent)?).is_empty(),
                    object,
                )?;)*
                Ok(())
            }

            fn rows() -> Vec<$crate::Row> {
                let mut rows = Vec::new();
                $(<$type as $crate::Field>::describe(
                    $crate::Row {
                        name: stringify!($field).trim_start_matches("r#").to_owned(),
                        kind: String::new(),
                        text: concat!($($doc),+).trim().to_owned(),
                        absent: concat!($($absent)?).to_owned(),
                    },
                    &mut rows,
                );)*
                rows
            }
        }

        impl $(<$life>)? $crate::serde::Serialize for $name $(<$life>)? {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = $crate::serde::Serializer::serialize_map(serializer, None)?;
                $crate::Record::write(self, &mut object)?;
                $crate::serde::ser::SerializeMap::end(object)
            }
        }

        impl $(<$life>)? $crate::Shape for $name $(<$life>)? {
            fn kind() -> String {
                "object".to_owned()
            }

            fn inside() -> $crate::Inside {
                $crate::Inside::of::<Self>()
            }
        }
    };
}
