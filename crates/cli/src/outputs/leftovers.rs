//! Removes new files of a command that did not complete them.
//!
//! A process that reads images may not remove files, and one that is killed cannot. So a child is forked before the
//! process is restricted. It waits until its parent ends, however that happens, and then removes what the parent did
//! not say to keep. It reads nothing but the numbers of files to keep.
//!
//! The child removes a file only if it can lock it: another process may have begun to write to it.

#![allow(unsafe_code, reason = "there is no safe fork")]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

/// A new file that is removed at the end of the process, unless it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Leftover(Option<u32>);

impl Leftover {
    /// A file that was there before.
    pub const NONE: Self = Self(None);

    /// Removes this new file at the end.
    pub fn new(folder: Arc<OwnedFd>, name: &OsStr, metadata: &Metadata) -> Self {
        let mut state = state();
        let number = u32::try_from(state.files.len()).ok();
        let (device, inode) = (metadata.dev(), metadata.ino());
        state.files.push(NewFile { folder, name: name.to_owned(), device, inode, is_kept: false });
        Self(number)
    }

    /// Keeps the file.
    pub fn keep(self) {
        let Some(number) = self.0 else { return };
        let mut state = state();
        let file = &mut state.files[number as usize];
        if !std::mem::replace(&mut file.is_kept, true)
            && let Some(remover) = &mut state.remover
        {
            // A child that is gone removes nothing.
            let _ = remover.pipe.write_all(&number.to_ne_bytes());
        }
    }
}

/// Opens the folder of a new file.
pub fn folder(path: &Path) -> Result<Arc<OwnedFd>, Errno> {
    let mut state = state();
    // Maps of many images lie in one folder.
    if let Some((last, folder)) = &state.folder
        && last == path
    {
        return Ok(folder.clone());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = Arc::new(openat(CWD, path, flags, Mode::empty())?);
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
    let Ok((read, write)) = pipe_with(PipeFlags::CLOEXEC) else { return };
    // The child is to outlive its parent.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    // SAFETY: this process has no other thread, so the child may do anything.
    match unsafe { libc::fork() } {
        0 => {
            drop(write);
            wait_and_remove(read.into(), &mut state.files);
            // SAFETY: ends the child, which must not return to what its parent does next.
            unsafe { libc::_exit(0) }
        }
        child => {
            let _ = mask.and_then(|mask| mask.thread_set_mask());
            state.remover = Pid::from_raw(child).filter(|_| child > 0).map(|child| {
                // Signals to the group of a terminal are not for the child.
                let _ = rustix::process::setpgid(Some(child), Some(child));
                Remover { child, pipe: write.into() }
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
        None => state.files.iter().filter(|file| !file.is_kept).for_each(|file| file.remove(1)),
    }
    state.files.clear();
}

/// The child. Reads which files are kept until the parent ends, and removes the others.
fn wait_and_remove(mut pipe: File, files: &mut [NewFile]) {
    let folders = files.iter().map(|file| file.folder.as_raw_fd());
    close_all_except(&folders.chain([pipe.as_raw_fd()]).collect::<Vec<_>>());
    let mut number = [0; 4];
    while pipe.read_exact(&mut number).is_ok() {
        if let Some(file) = files.get_mut(u32::from_ne_bytes(number) as usize) {
            file.is_kept = true;
        }
    }
    // The locks of a process that was killed end a moment after its end of the pipe.
    files.iter().filter(|file| !file.is_kept).for_each(|file| file.remove(MAX_TRIES));
}

/// Closes descriptors, so that readers of pipes see the end of the parent, and its locks end with it.
fn close_all_except(kept: &[RawFd]) {
    let open: Vec<RawFd> = match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => {
            entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok()).collect()
        }
        Err(_) => (0..MAX_GUESSED).collect(),
    };
    for fd in open.into_iter().filter(|fd| !kept.contains(fd)) {
        // SAFETY: the child uses no other descriptors, and ends without dropping their owners.
        unsafe { libc::close(fd) };
    }
}

/// A file that this process created.
struct NewFile {
    folder: Arc<OwnedFd>,
    name: OsString,
    device: u64,
    inode: u64,
    is_kept: bool,
}

impl NewFile {
    /// Removes the file, if it is still the one with its name, and no other process has locked it. Tries to lock it this
    /// many times.
    fn remove(&self, tries: u32) {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(self.folder.as_fd(), &self.name, flags, Mode::empty()) else {
            return;
        };
        let file = File::from(file);
        let is_same = |it: Metadata| (it.dev(), it.ino()) == (self.device, self.inode);
        if !file.metadata().is_ok_and(is_same) {
            return;
        }
        for left in (0..tries).rev() {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let _ = unlinkat(self.folder.as_fd(), &self.name, AtFlags::empty());
                    return;
                }
                Err(_) if left > 0 => std::thread::sleep(PAUSE),
                Err(_) => {}
            }
        }
    }
}

/// The child that removes files.
struct Remover {
    child: Pid,
    pipe: File,
}

struct State {
    files: Vec<NewFile>,
    /// The folder of the last new file.
    folder: Option<(PathBuf, Arc<OwnedFd>)>,
    remover: Option<Remover>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

static STATE: Mutex<State> = Mutex::new(State { files: Vec::new(), folder: None, remover: None });

/// More attempts are not made to lock a file, which another process may keep.
const MAX_TRIES: u32 = 300;

const PAUSE: Duration = Duration::from_millis(10);

/// Descriptors that are closed where procfs does not list those that are open.
const MAX_GUESSED: RawFd = 1024;
