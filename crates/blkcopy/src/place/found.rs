//! What a destination was before the copy.

use std::path::PathBuf;

use blkimage::{Identity, Image, PROBE_SIZE, Source, probe};

use super::Existing;
use super::refused::Refused;
use crate::destination::Destination;
use crate::holds::holds;

/// What a destination was before the copy.
#[derive(Clone, Debug)]
pub struct Found {
    /// The name and the file that it led to. `None` for an export.
    pub(super) name: Option<(PathBuf, Identity)>,
    pub(super) existing: Existing,
    pub(super) is_new: bool,
    /// Number of bytes of a file. 0 for others.
    pub(super) length: u64,
    pub(super) is_file: bool,
}

impl Found {
    /// Refuses to overwrite what a device or an export holds. A file is empty here.
    pub(super) fn check_content(&self, destination: &dyn Destination) -> Result<(), Refused> {
        if self.is_file {
            return Ok(());
        }
        let found = destination.current().and_then(|image| holds(&image));
        match found.map_err(Refused::Image)? {
            None => Ok(()),
            Some(what) => Err(Refused::Holds(what)),
        }
    }

    /// Refuses to update a file that is an image of another format, unless the content of the source begins like one, too.
    pub(super) fn check_format(
        &self,
        destination: &dyn Destination,
        source: &Image,
    ) -> Result<(), Refused> {
        if self.existing != Existing::Update || !self.is_file || self.length == 0 {
            return Ok(());
        }
        let format_of = |content: &dyn Source| {
            let mut head = vec![0; content.size().min(PROBE_SIZE as u64) as usize];
            content.read_exact_at(&mut head, 0).map(|()| probe(&head))
        };
        let old = match destination.current().and_then(|image| format_of(&image)) {
            // An update repairs what cannot be read.
            Err(error) if error.is_of_bytes() => None,
            old => old.map_err(Refused::Image)?,
        };
        match old {
            Some(format) if format_of(source).map_err(Refused::Image)? != Some(format) => {
                Err(Refused::OtherFormat(format))
            }
            _ => Ok(()),
        }
    }

    /// Checks after the copy that the name leads to what was written.
    ///
    /// # Errors
    ///
    /// Fails if the file was removed or replaced.
    pub fn check_named(&self) -> Result<(), Refused> {
        match &self.name {
            Some((path, identity)) if Identity::of(path) != Some(*identity) => {
                Err(Refused::Removed)
            }
            _ => Ok(()),
        }
    }
}
