//! Directories that were found and not yet read.

use super::report::{Report, Structure};
use super::stream::Place;
use crate::visitor::ObjectId;

/// Directories that were found and not yet read.
#[derive(Default)]
pub(crate) struct Directories {
    places: Vec<(ObjectId, Place)>,
}

impl Directories {
    /// Adds a directory, unless there are too many.
    pub fn push(&mut self, object: ObjectId, place: Place, report: &mut Report<'_>) {
        if self.places.len() < MAX_PENDING {
            self.places.push((object, place));
        } else {
            let directory = Structure::new("directory", 0).of(object);
            report.skipped(directory, "too many directories");
        }
    }

    /// Removes one.
    pub fn pop(&mut self) -> Option<(ObjectId, Place)> {
        self.places.pop()
    }
}

/// Maximum number of directories that were found and not yet read.
/// Limit in directories.
const MAX_PENDING: usize = 1 << 21;
