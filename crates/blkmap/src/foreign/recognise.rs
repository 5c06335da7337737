//! Recognises the format of an index.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::format::{IndexFormat, RAUC};
use super::{bmap, caibx, csv, fidx, json, lines, s3};
use crate::{MAGIC, ReadAt, Result};

impl IndexFormat {
    /// Returns the format of an index by its first bytes or, if it has no magic, its name. Returns `None` if neither is
    /// that of an index, and for a map.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn recognise(file: &dyn ReadAt, name: &OsStr) -> Result<Option<Self>> {
        let mut head = vec![0; file.length()?.min(HEAD) as usize];
        file.read_exact_at(&mut head, 0)?;
        Ok(match () {
            () if head.starts_with(&MAGIC) => None,
            () if head.starts_with(&fidx::MAGIC) => Some(Self::Fidx),
            () if head.starts_with(&caibx::MAGIC) => Some(Self::Caibx),
            () if bmap::is_start(&head) => Some(Self::Bmap),
            () if head.starts_with(csv::HEAD) => Some(Self::Csv),
            () if head.starts_with(json::START) => Some(Self::Json),
            () if s3::is_start(&head) => Some(Self::S3),
            () if lines::is_start(&head) => Some(Self::Lines),
            () if name.as_bytes().ends_with(RAUC) => Some(Self::Raw),
            () => None,
        })
    }
}

/// Length of the head in bytes. A text shows in its first line.
const HEAD: u64 = 4096;
