//! Files that work makes, which are removed if it fails.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::Duration;

use blkcopy::Refused;
use blkimage::Identity;
use blksum::map::{NewName, new_file};

use crate::process::Process;

/// Files that one thread creates and writes. Another one of the same process can remove them meanwhile.
pub struct Unfinished {
    state: Mutex<State>,
    /// Held for reading while a file is changed.
    changes: RwLock<()>,
    process: Process,
}

#[derive(Default)]
struct State {
    is_abandoned: bool,
    files: Vec<Undo>,
}

/// What becomes of a file that is not kept.
enum Undo {
    /// It is removed, if it still has its name.
    Remove(NewName),
    /// It was there, and empty, and is emptied again.
    Empty(File),
}

impl Unfinished {
    pub fn new() -> Self {
        Self { state: Mutex::default(), changes: RwLock::default(), process: Process::current() }
    }

    /// Creates a file for users who may read `files`, the files of an image or maps.
    pub fn create<'a>(
        &self,
        path: &Path,
        files: impl IntoIterator<Item = &'a OsStr>,
    ) -> io::Result<File> {
        let mut state = self.active()?;
        let (file, name) = new_file(path, files)?;
        state.files.push(Undo::Remove(name));
        Ok(file)
    }

    /// Opens a regular file, or creates it for users who may read `files`, and locks it (`flock`). Returns whether it is new.
    pub fn open_locked(&self, path: &Path, files: &[&OsStr]) -> Result<(File, bool), Refused> {
        for _ in 0..MAX_TRIES {
            drop(self.active().map_err(Refused::Open)?);
            let (file, undo) = match open_or_create(path, files.iter().copied()) {
                // It came or went meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened.map_err(Refused::Open)?,
            };
            let metadata = file.metadata().map_err(Refused::Open)?;
            if !metadata.is_file() {
                return Err(Refused::Kind);
            }
            lock(&file)?;
            // A process that failed removes its file, and may have done so before it was locked here.
            if Identity::of(path) != Some(Identity::new(&metadata)) {
                continue;
            }
            // Another process was the first to lock the new file, and wrote something that is not to be removed.
            let is_empty = file.metadata().is_ok_and(|metadata| metadata.len() == 0);
            let undo = undo.filter(|_| is_empty);
            let is_new = undo.is_some();
            match self.active() {
                Ok(mut state) => state.files.extend(undo),
                Err(error) => {
                    undo.into_iter().for_each(Undo::run);
                    return Err(Refused::Open(error));
                }
            }
            return Ok((file, is_new));
        }
        Err(Refused::Open(io::Error::from_raw_os_error(EEXIST)))
    }

    /// Takes note of a file that was there, is empty, and is about to be written.
    pub fn found_empty(&self, file: File) -> io::Result<()> {
        self.active()?.files.push(Undo::Empty(file));
        Ok(())
    }

    /// Allows a change of a file while the result exists. Fails if the files were abandoned.
    pub fn change(&self) -> io::Result<RwLockReadGuard<'_, ()>> {
        let change = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        drop(self.active()?);
        Ok(change)
    }

    /// Keeps the files, all of them or, if they were abandoned, none.
    pub fn keep(&self) {
        self.state().files.clear();
    }

    /// Removes the files that were created and still have their names, and empties others again, unless they are kept. None is
    /// created or changed later. A child, as of a callback that forks, leaves them to its parent.
    pub fn abandon(&self) {
        if self.process != Process::current() {
            return;
        }
        let mut state = self.state();
        state.is_abandoned = true;
        let files = mem::take(&mut state.files);
        drop(state);
        // A file that is emptied must not grow again. One that is removed may, and a write to a dead server does not end.
        let is_emptied = files.iter().any(|undo| matches!(undo, Undo::Empty(_)));
        let _no_changes =
            is_emptied.then(|| self.changes.write().unwrap_or_else(PoisonError::into_inner));
        files.into_iter().for_each(Undo::run);
    }

    /// Returns the state, or an error if the files were abandoned.
    fn active(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.is_abandoned { Err(io::ErrorKind::Interrupted.into()) } else { Ok(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Undo {
    fn run(self) {
        match self {
            Self::Remove(name) => name.remove(),
            Self::Empty(file) => {
                let _ = file.set_len(0);
            }
        }
    }
}

/// Opens a file, or creates it, and returns what removes it then.
fn open_or_create<'a>(
    path: &Path,
    files: impl IntoIterator<Item = &'a OsStr>,
) -> io::Result<(File, Option<Undo>)> {
    match File::options().read(true).write(true).custom_flags(NONBLOCK).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            new_file(path, files).map(|(file, name)| (file, Some(Undo::Remove(name))))
        }
        opened => Ok((opened?, None)),
    }
}

/// Locks a file, if no other process has locked it.
fn lock(file: &File) -> Result<(), Refused> {
    // A command that was killed holds its lock until its child has removed the file or left it.
    for _ in 0..MAX_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(Refused::Open(error)),
        }
    }
    Err(Refused::Busy)
}

/// The error of a file that exists, as a link that leads nowhere.
const EEXIST: i32 = rustix::io::Errno::EXIST.raw_os_error();

/// A pipe in place of the file does not block.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Maximum number of times that a lock or a file that comes and goes is tried, for half a second in all.
const MAX_TRIES: u32 = 50;

const PAUSE: Duration = Duration::from_millis(10);
