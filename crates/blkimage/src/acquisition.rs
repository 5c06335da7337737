//! What a forensic image says of how it was made.

use std::ops::Range;

/// What a forensic image says of how its content was acquired.
///
/// All texts are from the image, and hold any character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acquisition {
    /// Bytes of content in a chunk, which is compressed on its own.
    pub chunk_size: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Bytes in a sector of the medium.
    pub sector_size: u64,
    /// Compression that was asked for: `none`, `fast` or `best`.
    pub compression: Option<&'static str>,
    /// Kind of medium: `removable`, `fixed`, `optical` or `memory`.
    pub medium: Option<&'static str>,
    /// Whether all of a device was acquired, and not a volume of it.
    pub is_physical: bool,
    /// Case data, in the order in which people read them.
    pub case: Vec<CaseField>,
    /// Bytes that could not be read when the image was made. There may be other content in their place, usually zeros.
    pub errors: Vec<Range<u64>>,
    /// Number of further ranges like those in [`errors`](Self::errors), which holds the first 1000.
    pub more_errors: u64,
}

/// A field of the case data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaseField {
    /// Its name in JSON, such as `case_number`.
    pub name: &'static str,
    /// Its name for people, such as `case number`.
    pub label: &'static str,
    /// Its value, which is not empty.
    pub value: String,
}

impl CaseField {
    pub(crate) fn new(name: &'static str, label: &'static str, value: String) -> Self {
        Self { name, label, value }
    }
}
