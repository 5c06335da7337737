//! Writes new files, which are removed if the work fails.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::Duration;

use blkcopy::Refused;
use blkimage::Identity;
use blksum::map::new_file;

use crate::errors::Failure;
use crate::process::Process;

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

/// New files of a copy that one thread creates and writes. Another one of the same process can remove them meanwhile.
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
    Remove(PathBuf, Identity),
    /// It was there, and empty, and is emptied again.
    Empty(File),
}

impl Unfinished {
    pub fn new() -> Self {
        Self { state: Mutex::default(), changes: RwLock::default(), process: Process::current() }
    }

    /// Opens a file, or creates it for users who may read `files`, the files of an image. Returns whether it is new.
    pub fn open<'a>(
        &self,
        path: &Path,
        files: impl IntoIterator<Item = &'a OsStr>,
    ) -> io::Result<(File, bool)> {
        let mut state = self.active()?;
        let (file, undo) = open_or_create(path, files)?;
        let is_new = undo.is_some();
        state.files.extend(undo);
        Ok((file, is_new))
    }

    /// Opens a regular file like [`open`](Self::open), and locks it (`flock`).
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
            Self::Remove(path, identity) if Identity::of(&path) == Some(identity) => {
                let _ = fs::remove_file(path);
            }
            Self::Remove(..) => {}
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return Ok((opened?, None)),
    }
    // The current folder may change.
    let absolute = absolute(path)?;
    let file = new_file(path, files)?;
    let identity = Identity::new(&file.metadata()?);
    Ok((file, Some(Undo::Remove(absolute, identity))))
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
