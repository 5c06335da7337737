//! A block device that is being read: what else uses it, and whether it is written to.

use std::fs::File;

use crate::error::escaped;
use crate::sys::{self, Uses, Writes};

/// A block device that is being read.
pub(super) struct Device {
    /// `None` if the system does not count the writes.
    writes: Option<Writes>,
    uses: Uses,
}

impl Device {
    /// Examines the device before it is read. Writes its dirty pages back first, so that this does not
    /// count as a change later.
    pub fn new(file: &File, number: (u32, u32)) -> Self {
        let uses = sys::uses_of(number);
        let escape = |text: String| escaped(text.as_bytes());
        let mut others: Vec<String> = uses.others.into_iter().map(escape).collect();
        sys::write_out(file);
        let writes = Writes::to(number);
        if writes.is_none() {
            others.push(UNKNOWN.into());
        }
        Self { writes, uses: Uses { writer: uses.writer.map(escape), others } }
    }

    /// Returns a description of a possible writer, if any.
    pub fn writer(&self) -> Option<&str> {
        self.uses.writer.as_deref()
    }

    /// Returns warnings for the user.
    pub fn warnings(&self) -> &[String] {
        &self.uses.others
    }

    /// Returns whether the device was written to since then, or is being written to now.
    pub fn is_written(&self, file: &File) -> bool {
        let Some(writes) = &self.writes else { return false };
        sys::write_out(file);
        writes.have_changed()
    }
}

const UNKNOWN: &str = "is a device whose writes are not counted here: see to it yourself that nothing \
                       writes to it while it is read";
