//! A list of changed extents on the command line.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};

use blksum::changes::{Changes, Form, List, ListError};

use crate::problem::{Failure, Outcome, Problem};
use crate::values::one_of;
use crate::{messages, quote};

/// Returns the help of `--changes-format`.
pub fn form_help() -> String {
    format!("Form of the list: {} [default: as recognised]", one_of(&Form::names()))
}

/// The value of `--changes`, opened before the process is confined.
pub struct ChangeList<'a> {
    name: &'a OsStr,
    text: Box<dyn Read>,
    form: Option<Form>,
}

impl<'a> ChangeList<'a> {
    /// Opens a file, or standard input for `-`.
    pub fn open(name: &'a OsString, form: Option<Form>) -> Result<Self, Failure> {
        if name == "-" {
            return Ok(Self { name, text: Box::new(io::stdin()), form });
        }
        let file = File::open(name).map_err(|error| {
            let (name, reason) = (quote::name(name.as_encoded_bytes()), messages::reason(&error));
            Failure::usage(format!("--changes: {name}: {reason}"))
        })?;
        Ok(Self { name, text: Box::new(file), form })
    }

    /// Reads the extents. A list may say how large its disk is, which must be `size`.
    pub fn read(self, size: u64) -> Result<Changes, Problem> {
        let Self { name, text, form } = self;
        let list = List::parse(text, form).map_err(|error| match error {
            ListError::Read(error) => Problem::from(&error).about(name),
            error => Problem::new(error.to_string()).about(name),
        })?;
        if let Some(disk) = list.disk_size.filter(|disk| *disk != size) {
            let reason = format!("is the list of a disk of {disk} bytes, and the image has {size}");
            return Err(Problem::new(reason).about(name).with_outcome(Outcome::Useless));
        }
        if let Some(covered) = list.covered.filter(|covered| *covered < size) {
            let reason = format!("covers {covered} bytes of a disk, and the image has {size}");
            return Err(Problem::new(reason).about(name).with_outcome(Outcome::Useless));
        }
        // A tracker may round its last extent up, but not begin one past the end.
        match list.changes.extents().last() {
            Some(last) if last.start >= size => {
                let reason =
                    format!("an extent begins at {}, past the end of the image", last.start);
                Err(Problem::new(reason).about(name))
            }
            Some(last) if last.end > size => {
                let note = format!(
                    "note: the last extent ends at {}, and the image at {size}: is it the list of another disk?",
                    last.end
                );
                messages::remark_of(name.as_encoded_bytes(), &note);
                Ok(list.changes)
            }
            _ => Ok(list.changes),
        }
    }
}
