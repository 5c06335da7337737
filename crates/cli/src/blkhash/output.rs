//! Files that are written in addition to the standard output.
//!
//! They are opened before the process is restricted, and emptied only when they are written: none of them
//! may be a file of an image, or written twice.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use blkimage::{Identity, Image};
use rustix::fs::OFlags;

use super::source::shown;
use crate::messages;
use crate::outputs::{self, FileMode, Leftover, Named, Opened};

/// A file to write.
pub struct Output {
    pub file: File,
    option: &'static str,
    /// `None` for what does not keep what is written, such as pipes and terminals.
    identity: Option<Identity>,
    /// Whether it is a regular file that was not empty.
    has_content: bool,
    leftover: Leftover,
}

impl Output {
    /// Opens the file that an option names, or creates it with this mode. Leaves its content alone.
    pub fn open(
        option: &'static str,
        name: Option<&Path>,
        mode: FileMode,
    ) -> Result<Option<Self>, String> {
        let Some(name) = name else { return Ok(None) };
        let opened = outputs::open(name, Named::ByUser, mode, OFlags::WRONLY);
        let Opened { file, metadata, leftover } =
            opened.map_err(|reason| format!("{option}: {}: {reason}", shown(name.as_os_str())))?;
        let is_kept = metadata.is_file() || metadata.file_type().is_block_device();
        let identity = is_kept.then(|| Identity::new(&metadata));
        let has_content = metadata.is_file() && metadata.len() > 0;
        Ok(Some(Self { file, option, identity, has_content, leftover }))
    }

    /// Refuses the file if it is a file of the image, or the file with the identity `other`. A new file may then be read by those
    /// that may read all files of the image.
    pub fn check_apart(&self, image: &Image, other: Option<Identity>) -> Result<(), String> {
        let Some(identity) = self.identity else { return Ok(()) };
        if identity.is_in(image) {
            return Err(format!("{}: is a file of the image", self.option));
        }
        if other == Some(identity) {
            return Err(format!("{}: is written by another option, too", self.option));
        }
        self.leftover.share(Some(image));
        Ok(())
    }

    /// Returns whether it is a regular file that was not empty when it was opened.
    pub fn has_content(&self) -> bool {
        self.has_content
    }

    /// Removes the old content.
    pub fn empty(&self) -> Result<(), String> {
        match self.identity {
            Some(Identity::File(..)) => self.file.set_len(0).map_err(|error| self.reason(&error)),
            _ => Ok(()),
        }
    }

    /// Returns the identity, unless it is a pipe or a terminal.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// Writes all of the content, and keeps the file.
    pub fn write(&self, bytes: &[u8]) -> Result<(), String> {
        self.empty()?;
        (&self.file).write_all(bytes).map_err(|error| self.reason(&error))?;
        self.keep();
        Ok(())
    }

    /// Keeps the file if it is new. It is removed at the end otherwise.
    pub fn keep(&self) {
        self.leftover.keep();
    }

    /// Describes a failure.
    pub fn reason(&self, error: &io::Error) -> String {
        format!("{}: {}", self.option, messages::reason(error))
    }
}
