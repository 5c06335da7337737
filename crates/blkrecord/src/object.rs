//! Objects whose fields are described.

use serde::ser::SerializeMap;

use crate::row::Row;

/// An object with described fields. [`record!`](crate::record) implements it.
pub trait Record {
    /// The heading of the section that describes it, if several tables refer to that. Empty if it has none.
    const HEADING: &'static str;

    /// Writes the fields.
    ///
    /// # Errors
    ///
    /// Fails if the serializer does.
    fn write<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error>;

    /// Describes the fields, and the fields of objects within it that have no section of their own.
    fn rows() -> Vec<Row>;
}
