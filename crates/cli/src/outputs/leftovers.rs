//! Removes new files of a command that did not complete them, and empties those that were empty.
//!
//! A process that reads images may not remove files, and one that is killed cannot. So a child is forked before the
//! process is restricted. It waits until its parent ends, however that happens, and then removes what the parent did
//! not say to keep. It reads nothing but the numbers of files to keep.
//!
//! The child shares the open files of its parent, and so the locks on them. A process that goes on with a map waits for
//! the lock, and finds that the name is gone. If another process locked a file first, it is left alone.

#![allow(unsafe_code, reason = "there is no safe fork")]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, Stat, flock, fstat, ftruncate, openat, statat, unlinkat,
};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, waitpid};

/// A new file that is removed at the end of the process, or one that was empty and is emptied again, unless it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Leftover {
    number: Option<u32>,
    is_new: bool,
}

impl Leftover {
    /// A file that was there before.
    pub const NONE: Self = Self { number: None, is_new: false };

    /// Removes this new file at the end.
    pub fn new(folder: Arc<OwnedFd>, name: &OsStr, file: &File, metadata: &Metadata) -> Self {
        Self { number: add(Some((folder, name.to_owned())), file, metadata), is_new: true }
    }

    /// Empties this file at the end, which was empty.
    pub fn emptied(file: &File, metadata: &Metadata) -> Self {
        Self { number: add(None, file, metadata), is_new: false }
    }

    /// Returns whether this process created the file.
    pub fn is_new(self) -> bool {
        self.is_new
    }

    /// Keeps the file.
    pub fn keep(self) {
        Self::keep_all(&[self]);
    }

    /// Keeps a few files, all of them or, if the process is killed meanwhile, none.
    pub fn keep_all(leftovers: &[Self]) {
        let mut state = state();
        let mut message = Vec::new();
        for number in leftovers.iter().filter_map(|leftover| leftover.number) {
            if !std::mem::replace(&mut state.files[number as usize].is_kept, true) {
                message.extend(number.to_ne_bytes());
            }
        }
        if let Some(remover) = &mut state.remover {
            // A pipe takes a short message whole. A child that is gone removes nothing.
            let _ = remover.pipe.write_all(&message);
        }
    }
}

/// Takes note of a file. `place` is the folder and the name of a new one.
fn add(place: Option<(Arc<OwnedFd>, OsString)>, file: &File, metadata: &Metadata) -> Option<u32> {
    let mut state = state();
    let number = u32::try_from(state.files.len()).ok();
    let (device, inode) = (metadata.dev(), metadata.ino());
    state.files.push(Unfinished { place, fd: file.as_raw_fd(), device, inode, is_kept: false });
    number
}

/// Opens the folder of a new file.
pub fn folder(path: &Path) -> io::Result<Arc<OwnedFd>> {
    let mut state = state();
    // Maps of many images lie in one folder.
    if let Some((last, folder)) = &state.folder
        && last == path
    {
        return Ok(folder.clone());
    }
    let folder = Arc::new(blksys::open_folder(path)?);
    state.folder = Some((path.to_owned(), folder.clone()));
    Ok(folder)
}

/// Ensures that new files are removed although this process gives up the permission for it. Called before that, and
/// before there is another thread.
pub fn guard() {
    let mut state = state();
    if state.remover.is_some() || state.files.iter().all(|file| file.is_kept) {
        return;
    }
    let Ok((read, write)) = io::pipe() else { return };
    // The child is to outlive its parent.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    // SAFETY: this process has no other thread, so the child may do anything.
    match unsafe { libc::fork() } {
        0 => {
            drop(write);
            wait_and_remove(OwnedFd::from(read).into(), &mut state.files);
            // SAFETY: ends the child, which must not return to what its parent does next.
            unsafe { libc::_exit(0) }
        }
        child => {
            let _ = mask.and_then(|mask| mask.thread_set_mask());
            state.remover = Pid::from_raw(child).filter(|_| child > 0).map(|child| {
                // Signals to the group of a terminal are not for the child.
                let _ = rustix::process::setpgid(Some(child), Some(child));
                Remover { child, pipe: OwnedFd::from(write).into() }
            });
        }
    }
}

/// Removes new files that are not kept. Called at the end of the process.
pub fn settle() {
    let mut state = state();
    match state.remover.take() {
        Some(Remover { child, pipe }) => {
            drop(pipe);
            let _ = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
        }
        None => state.files.iter().filter(|file| !file.is_kept).for_each(Unfinished::undo),
    }
    state.files.clear();
}

/// The child. Reads which files are kept until the parent ends, and removes the others.
fn wait_and_remove(mut pipe: File, files: &mut [Unfinished]) {
    let folders = files.iter().filter_map(|file| file.place.as_ref());
    let folders = folders.map(|(folder, _)| folder.as_raw_fd());
    let fds = files.iter().map(|file| file.fd).chain(folders);
    close_all_except(&fds.chain([pipe.as_raw_fd()]).collect::<Vec<_>>());
    let mut number = [0; 4];
    while pipe.read_exact(&mut number).is_ok() {
        let Some(file) = files.get_mut(u32::from_ne_bytes(number) as usize) else { continue };
        // The lock of a file that is kept ends with the parent.
        if !std::mem::replace(&mut file.is_kept, true) && file.is_open() {
            // SAFETY: the child uses the descriptor no more, and ends without dropping its owner.
            unsafe { libc::close(file.fd) };
        }
    }
    files.iter().filter(|file| !file.is_kept).for_each(Unfinished::undo);
}

/// Closes descriptors, so that readers of pipes see the end of the parent, and its locks end with it.
fn close_all_except(kept: &[RawFd]) {
    let open = blksys::open_descriptors().unwrap_or_else(|| (0..MAX_GUESSED).collect());
    for fd in open.into_iter().filter(|fd| !kept.contains(fd)) {
        // SAFETY: the child uses no other descriptors, and ends without dropping their owners.
        unsafe { libc::close(fd) };
    }
}

/// A file that this process created, or found empty.
struct Unfinished {
    /// The folder and the name of a new file.
    place: Option<(Arc<OwnedFd>, OsString)>,
    /// The descriptor with which it was opened. It may be another file's by now.
    fd: RawFd,
    device: u64,
    inode: u64,
    is_kept: bool,
}

impl Unfinished {
    /// Removes or empties the file.
    fn undo(&self) {
        match &self.place {
            Some((folder, name)) => self.remove(folder, name),
            None => self.empty(),
        }
    }

    /// Removes the file, if it is still the one with its name, and no other process has locked it.
    fn remove(&self, folder: &OwnedFd, name: &OsStr) {
        if !self.has_name(folder, name) {
            return;
        }
        let is_locked = if self.is_open() {
            // SAFETY: `is_open` found the descriptor open, and nothing closes it meanwhile: this process ends, or is
            // the child, which has one thread.
            let file = unsafe { BorrowedFd::borrow_raw(self.fd) };
            flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
        } else {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            openat(folder, name, flags, Mode::empty())
                .and_then(|file| flock(&file, FlockOperation::NonBlockingLockExclusive))
                .is_ok()
        };
        // The name may have been given to another file meanwhile.
        if is_locked && self.has_name(folder, name) {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }

    /// Empties the file, which was empty, if no other process has locked it.
    fn empty(&self) {
        if self.is_open() {
            // SAFETY: as above.
            let file = unsafe { BorrowedFd::borrow_raw(self.fd) };
            if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = ftruncate(file, 0);
            }
        }
    }

    /// Returns whether the file still has its name.
    fn has_name(&self, folder: &OwnedFd, name: &OsStr) -> bool {
        statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|it| self.is_this(&it))
    }

    /// Returns whether the descriptor is open, and that of the file.
    fn is_open(&self) -> bool {
        // SAFETY: fails without an effect if the descriptor is closed.
        fstat(unsafe { BorrowedFd::borrow_raw(self.fd) }).is_ok_and(|it| self.is_this(&it))
    }

    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    fn is_this(&self, stat: &Stat) -> bool {
        (stat.st_dev as u64, stat.st_ino as u64) == (self.device, self.inode)
    }
}

/// The child that removes files.
struct Remover {
    child: Pid,
    pipe: File,
}

struct State {
    files: Vec<Unfinished>,
    /// The folder of the last new file.
    folder: Option<(PathBuf, Arc<OwnedFd>)>,
    remover: Option<Remover>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

static STATE: Mutex<State> = Mutex::new(State { files: Vec::new(), folder: None, remover: None });

/// Descriptors that are closed where procfs does not list those that are open.
const MAX_GUESSED: RawFd = 1024;
