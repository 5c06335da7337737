//! Removes new files of a command that did not complete them, and empties those that were empty.
//!
//! A process that reads images may not remove files, and one that is killed cannot. So a child is forked before the
//! process is restricted. It waits until its parent ends, however that happens, and then removes what the parent did
//! not say to keep. It reads nothing but the numbers of files to keep, and the permissions of new ones: a file is private until
//! all files of its image are known.
//!
//! The child shares the open files of its parent, and so the locks on them. A process that continues a map waits for
//! the lock, and finds that the name is gone. If another process locked a file first, it is left alone.

#![allow(unsafe_code, reason = "there is no safe fork")]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blkimage::Image;
use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, ftruncate, openat, statat,
    unlinkat,
};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::mode::mode_of;

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
    ///
    /// `later` are the permissions that [`share`](Self::share) may give.
    pub fn new(
        folder: Arc<OwnedFd>,
        name: &OsStr,
        file: &File,
        metadata: &Metadata,
        later: Option<u32>,
    ) -> Self {
        let place = Some((folder, name.to_owned()));
        Self { number: add(place, file, metadata, later), is_new: true }
    }

    /// Empties this file at the end, which was empty.
    pub fn emptied(file: &File, metadata: &Metadata) -> Self {
        Self { number: add(None, file, metadata, None), is_new: false }
    }

    /// Lets the users read the file who may read all files of `image`, of which its mode so far knew the first. `None` is a
    /// stream, which has no others. Called before anything is in the file.
    pub fn share(self, image: Option<&Image>) {
        let Some(number) = self.number.filter(|_| self.is_new) else { return };
        let mut state = state();
        let State { files, remover, .. } = &mut *state;
        let Some(file) = files.get_mut(number as usize) else { return };
        let of_all = image.map(|image| mode_of(image.files().map(Path::as_os_str)));
        let bits = of_all.map_or(0o666, |mode| mode.for_group(file.group));
        match remover {
            // This process may not change modes.
            Some(remover) => {
                remover.send([(number, bits)]);
                remover.wait();
            }
            None => file.share(bits),
        }
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
        let State { files, remover, .. } = &mut *state;
        let numbers = leftovers.iter().filter_map(|leftover| leftover.number);
        let lost = numbers.filter(|it| !std::mem::replace(&mut files[*it as usize].is_kept, true));
        let messages: Vec<_> = lost.map(|number| (number, KEEP)).collect();
        if let Some(remover) = remover {
            remover.send(messages);
        }
    }
}

/// What becomes of the files if the process ends now. No other is kept until this is dropped.
pub struct Fate(MutexGuard<'static, State>);

impl Fate {
    pub fn now() -> Self {
        Self(state())
    }

    /// Returns whether a file is removed.
    pub fn is_lost(&self, leftover: Leftover) -> bool {
        let file = leftover.number.and_then(|number| self.0.files.get(number as usize));
        file.is_some_and(|file| !file.is_kept)
    }
}

/// Takes note of a file. `place` is the folder and the name of a new one.
fn add(
    place: Option<(Arc<OwnedFd>, OsString)>,
    file: &File,
    metadata: &Metadata,
    later: Option<u32>,
) -> Option<u32> {
    let mut state = state();
    let number = u32::try_from(state.files.len()).ok();
    let (device, inode, group) = (metadata.dev(), metadata.ino(), metadata.gid());
    let fd = file.as_raw_fd();
    state.files.push(Unfinished { place, fd, device, inode, group, is_kept: false, later });
    number
}

/// Opens the folder of a new file.
pub fn folder(path: &Path) -> io::Result<Arc<OwnedFd>> {
    let mut state = state();
    // Maps of many images are in one folder.
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
    let (Ok((read, write)), Ok((answer, answers))) = (io::pipe(), io::pipe()) else { return };
    // The child is to outlive its parent.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    // SAFETY: this process has no other thread, so the child may do anything.
    match unsafe { libc::fork() } {
        0 => {
            drop((write, answer));
            let answers = OwnedFd::from(answers).into();
            wait_and_remove(OwnedFd::from(read).into(), answers, &mut state.files);
            // SAFETY: ends the child, which must not return to what its parent does next.
            unsafe { libc::_exit(0) }
        }
        child => {
            let _ = mask.and_then(|mask| mask.thread_set_mask());
            state.remover = Pid::from_raw(child).filter(|_| child > 0).map(|child| {
                // Signals to the group of a terminal are not for the child.
                let _ = rustix::process::setpgid(Some(child), Some(child));
                let (pipe, answers) = (OwnedFd::from(write).into(), OwnedFd::from(answer).into());
                Remover { child, pipe, answers }
            });
        }
    }
}

/// Removes new files that are not kept. Called at the end of the process.
pub fn settle() {
    let mut state = state();
    match state.remover.take() {
        Some(Remover { child, pipe, .. }) => {
            drop(pipe);
            let _ = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
        }
        None => state.files.iter().filter(|file| !file.is_kept).for_each(Unfinished::undo),
    }
    state.files.clear();
}

/// The child. Reads which files are kept, and with which users they are shared, until the parent ends, and removes the
/// others.
fn wait_and_remove(mut pipe: File, mut answers: File, files: &mut [Unfinished]) {
    let folders = files.iter().filter_map(|file| file.place.as_ref());
    let folders = folders.map(|(folder, _)| folder.as_raw_fd());
    let fds = files.iter().map(|file| file.fd).chain(folders);
    let pipes = [pipe.as_raw_fd(), answers.as_raw_fd()];
    close_all_except(&fds.chain(pipes).collect::<Vec<_>>());
    let (mut number, mut bits) = ([0; 4], [0; 4]);
    while pipe.read_exact(&mut number).and_then(|()| pipe.read_exact(&mut bits)).is_ok() {
        let Some(file) = files.get_mut(u32::from_ne_bytes(number) as usize) else { continue };
        let bits = u32::from_ne_bytes(bits);
        if bits != KEEP {
            file.share(bits);
            let _ = answers.write_all(&[0]);
            continue;
        }
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
    group: u32,
    is_kept: bool,
    /// Permissions that the file may get once all files of its image are known.
    later: Option<u32>,
}

impl Unfinished {
    /// Gives a new file these permissions, but no more than it was to get when it was created.
    fn share(&mut self, bits: u32) {
        if !self.is_open() {
            return;
        }
        // SAFETY: `is_open` found the descriptor open, and nothing closes it before the file is kept.
        let fd = unsafe { BorrowedFd::borrow_raw(self.fd) };
        let Ok(stat) = fstat(fd) else { return };
        #[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
        let most = self.later.take().unwrap_or(stat.st_mode as u32 & 0o777);
        // A file that stays private is no reason to fail.
        let _ = fchmod(fd, Mode::from_raw_mode((most & bits | 0o600) as _));
    }

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

    /// Returns whether the descriptor is open, and the one of the file.
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
    /// Has a byte for each file that was shared.
    answers: File,
}

impl Remover {
    /// Sends numbers of files with permissions, or [`KEEP`].
    fn send(&mut self, messages: impl IntoIterator<Item = (u32, u32)>) {
        let messages = messages.into_iter();
        let bytes: Vec<_> = messages.flat_map(|(number, bits)| [number, bits]).collect();
        let bytes: Vec<_> = bytes.into_iter().flat_map(u32::to_ne_bytes).collect();
        // A pipe takes a short message whole. A child that is gone removes nothing.
        let _ = self.pipe.write_all(&bytes);
    }

    /// Waits until a file is shared: a mode that changes while the file is read back is a change of the file.
    fn wait(&mut self) {
        // The pipe of a child that is gone ends.
        let _ = self.answers.read_exact(&mut [0]);
    }
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

/// Says that a file is kept.
const KEEP: u32 = u32::MAX;

/// Descriptors that are closed where procfs does not list those that are open.
const MAX_GUESSED: RawFd = 1024;
