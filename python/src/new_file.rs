//! Writes new files, which are removed if the work fails.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Mutex, PoisonError};

use blkimage::Identity;
use blksum::map::new_file;

use crate::errors::Failure;

/// Writes a new file that may be read by users who may read `files`, the files of an image or maps, or removes the
/// file.
pub fn to_new_file<'a>(
    output: &Path,
    files: impl IntoIterator<Item = &'a OsStr>,
    write: impl FnOnce(File) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Map(error.into(), output.as_os_str().to_owned());
    // The current folder may change, and another file may get the name.
    let made = absolute(output).and_then(|path| Ok((new_file(output, files)?, path)));
    let (file, path) = made.map_err(failed)?;
    let identity = Identity::new(&file.metadata().map_err(failed)?);
    // An unfinished map is refused by every command, but half an export may pass as a whole one.
    write(file).inspect_err(|_| {
        if Identity::of(&path) == Some(identity) {
            let _ = fs::remove_file(path);
        }
    })
}

/// A file that one thread creates and writes. Another one can remove it meanwhile.
#[derive(Default)]
pub struct Unfinished(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    NotCreated,
    Created(PathBuf, Identity),
    /// It was there, and empty.
    Empty(File),
    Abandoned,
}

impl Unfinished {
    /// Opens a file, or creates it for users who may read `files`, the files of an image. Returns whether it is new.
    pub fn open<'a>(
        &self,
        path: &Path,
        files: impl IntoIterator<Item = &'a OsStr>,
    ) -> io::Result<(File, bool)> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Abandoned) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match File::options().read(true).write(true).custom_flags(NONBLOCK).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((opened?, false)),
        }
        // The current folder may change.
        let absolute = absolute(path)?;
        let file = new_file(path, files)?;
        *state = State::Created(absolute, Identity::new(&file.metadata()?));
        Ok((file, true))
    }

    /// Takes note of a file that was there, is empty, and is about to be written.
    pub fn found_empty(&self, file: File) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::NotCreated) {
            *state = State::Empty(file);
        }
    }

    /// Removes the file, if it was created and still has its name, or empties it again. It is not created later.
    pub fn abandon(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *state, State::Abandoned) {
            State::Created(path, identity) if Identity::of(&path) == Some(identity) => {
                let _ = fs::remove_file(path);
            }
            State::Empty(file) => {
                let _ = file.set_len(0);
            }
            _ => {}
        }
    }
}

/// A pipe in place of the file does not block.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
