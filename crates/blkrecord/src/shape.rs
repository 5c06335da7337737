//! The types of values in JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::object::Record;
use crate::row::Row;

/// A value of a field.
pub trait Shape: Serialize {
    /// Returns its type in JSON, in the words of a table: `string or null`.
    fn kind() -> String;

    /// Returns the type for a field that may be absent.
    fn kind_if_present() -> String {
        Self::kind()
    }

    /// Describes what is in it.
    fn inside() -> Inside {
        Inside::default()
    }

    /// Whether a field that may be absent is absent.
    fn is_absent(&self) -> bool {
        false
    }
}

/// What is in a list or an object.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// The fields. Their names begin with what stands between the outer field's name and theirs.
    pub rows: Vec<Row>,
    /// The heading of the section that describes the fields, if there is one.
    pub heading: &'static str,
}

impl Inside {
    /// Describes the fields of a record.
    #[must_use]
    pub fn of<R: Record>() -> Self {
        let rows = if R::HEADING.is_empty() { R::rows() } else { Vec::new() };
        Self { rows, heading: R::HEADING }.behind(".")
    }

    fn behind(mut self, path: &str) -> Self {
        self.rows.iter_mut().for_each(|row| row.name.insert_str(0, path));
        self
    }
}

macro_rules! shapes {
    ($kind:literal: $($type:ty),*) => {
        $(impl Shape for $type {
            fn kind() -> String {
                $kind.to_owned()
            }
        })*
    };
}

shapes!("integer": u8, u16, u32, u64, usize, i64);
shapes!("number": f64);
shapes!("string": str, String);

impl Shape for bool {
    fn kind() -> String {
        "boolean".to_owned()
    }

    fn is_absent(&self) -> bool {
        !self
    }
}

impl<T: Shape + ?Sized> Shape for &T {
    fn kind() -> String {
        T::kind()
    }

    fn kind_if_present() -> String {
        T::kind_if_present()
    }

    fn inside() -> Inside {
        T::inside()
    }

    fn is_absent(&self) -> bool {
        T::is_absent(self)
    }
}

impl<T: Shape> Shape for Option<T> {
    fn kind() -> String {
        T::kind() + " or null"
    }

    fn kind_if_present() -> String {
        T::kind()
    }

    fn inside() -> Inside {
        T::inside()
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Shape> Shape for [T] {
    fn kind() -> String {
        format!("array of {}s", T::kind())
    }

    fn inside() -> Inside {
        T::inside().behind("[]")
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn kind() -> String {
        <[T]>::kind()
    }

    fn inside() -> Inside {
        <[T]>::inside()
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

/// A pair is a list of two.
impl<A: Shape, B: Shape> Shape for (A, B) {
    fn kind() -> String {
        "array".to_owned()
    }
}

/// An object whose keys are data.
impl<V: Shape> Shape for BTreeMap<&str, V> {
    fn kind() -> String {
        "object".to_owned()
    }

    fn inside() -> Inside {
        Inside::any(V::kind(), "the value of a key")
    }
}

/// An object with any content.
impl Shape for Value {
    fn kind() -> String {
        "object".to_owned()
    }

    fn inside() -> Inside {
        let kind = "string or integer or number or boolean or array or object or null";
        Inside::any(kind.to_owned(), "any value")
    }
}

impl Inside {
    fn any(kind: String, text: &str) -> Self {
        let (name, text, absent) = (".*".to_owned(), text.to_owned(), String::new());
        Self { rows: vec![Row { name, kind, text, absent }], heading: "" }
    }
}
