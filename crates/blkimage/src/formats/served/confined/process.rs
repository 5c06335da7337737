//! A child process that is killed when this process ends.
//!
//! The child is forked by a dedicated thread, which then waits for it. The kernel kills the child
//! when that thread ends, and the thread ends only with the process or after the child. All output
//! of the child goes to a file in memory of fixed size, so the child can neither exhaust memory
//! nor block on a full pipe.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use blkconfine::{Filter, capabilities};
use nix::libc;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{
    self, Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, waitpid,
};

use crate::formats::served::command::Command;

/// A running or dead child. Dropping it kills the child.
pub(in crate::formats::served) struct Process {
    shared: Arc<Shared>,
    words: File,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

/// The state of a child. Its pid cannot be reused until it has been waited for.
enum State {
    Running(Pid),
    Ended(Option<ExitStatus>),
}

impl Process {
    /// Starts the child. Its program runs when this returns.
    pub fn start(command: Command) -> io::Result<Self> {
        let words = memory("stderr", MAX_WORDS)?;
        let prepared = Prepared::new(command, &words)?;
        let (sender, started) = mpsc::channel();
        let thread = std::thread::Builder::new().name("qemu-nbd".into()).spawn(move || {
            let pid = match prepared.run() {
                Ok(pid) => pid,
                Err(error) => return drop(sender.send(Err(error))),
            };
            // The child now has the descriptors. The socket in particular must be closed here, so that
            // its other ends see the end of the child.
            drop(prepared);
            let state = Mutex::new(State::Running(pid));
            let shared = Arc::new(Shared { state, ended: Condvar::new() });
            let _ = sender.send(Ok(shared.clone()));
            shared.wait(pid);
        })?;
        let gone = || Err(io::Error::other("the thread that starts it ended"));
        let shared = started.recv().unwrap_or_else(|_| gone())?;
        Ok(Self { shared, words, thread: Some(thread) })
    }

    /// Returns the exit status, if the child ends within `limit`.
    pub fn ended(&self, limit: Duration) -> Option<ExitStatus> {
        let running = |state: &mut State| matches!(state, State::Running(_));
        let waited = self.shared.ended.wait_timeout_while(self.shared.lock(), limit, running);
        match &*waited.unwrap_or_else(PoisonError::into_inner).0 {
            State::Running(_) => None,
            State::Ended(status) => *status,
        }
    }

    /// Returns the text that the child wrote to its standard output and error.
    pub fn words(&self) -> Vec<u8> {
        let mut words = vec![0; MAX_WORDS];
        let count = self.words.read_at(&mut words, 0).unwrap_or(0);
        words.truncate(count);
        let end = words.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        words.truncate(end);
        words
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let State::Running(pid) = *self.shared.lock() {
            // The child leads its own process group. Both calls fail only if it is dead.
            let _ = process::kill_process_group(pid, Signal::KILL);
            let _ = process::kill_process(pid, Signal::KILL);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, pid: Pid) {
        // The pid must not be reused while `drop` may kill it.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = process::waitid(WaitId::Pid(pid), options) {}
        let mut state = self.lock();
        let status = waitpid(Some(pid), WaitOptions::empty());
        let status = status.ok().flatten().map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        *state = State::Ended(status);
        self.ended.notify_all();
    }
}

/// Creates a file in memory with a fixed size.
pub(in crate::formats::served) fn memory(name: &str, size: usize) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create(name, flags)?);
    file.set_len(size as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(file)
}

/// Seals a file in memory against any change.
pub(in crate::formats::served) fn seal(file: &File) -> io::Result<()> {
    let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    Ok(rustix::fs::fcntl_add_seals(file, all)?)
}

/// Duplicates a descriptor to a number above those that the child uses by number.
pub(in crate::formats::served) fn out_of_the_way(
    file: impl std::os::fd::AsFd,
) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(file, FIRST_FREE)?)
}

/// A command with everything that the child needs already allocated.
struct Prepared {
    program: CString,
    arguments: Pointers,
    environment: Vec<CString>,
    listener: OwnedFd,
    files: Vec<OwnedFd>,
    rules: Option<OwnedFd>,
    filter: Option<Filter>,
    null: OwnedFd,
    words: OwnedFd,
}

/// Strings as a null-terminated array of C strings.
struct Pointers {
    pointers: Vec<*const c_char>,
    _strings: Vec<CString>,
}

// SAFETY: the pointers point into strings that the value owns and never changes.
unsafe impl Send for Pointers {}

impl Pointers {
    fn new(strings: Vec<CString>) -> Self {
        let ends = [std::ptr::null()];
        let pointers = strings.iter().map(|string| string.as_ptr()).chain(ends).collect();
        Self { pointers, _strings: strings }
    }
}

impl Prepared {
    fn new(command: Command, words: &File) -> io::Result<Self> {
        let Command { program, arguments, environment, listener, files, rules, filter } = command;
        Ok(Self {
            arguments: Pointers::new(arguments),
            program,
            environment,
            listener: out_of_the_way(listener)?,
            files,
            rules: rules.map(out_of_the_way).transpose()?,
            filter,
            null: out_of_the_way(File::open("/dev/null")?)?,
            words: out_of_the_way(words)?,
        })
    }

    /// Forks, and waits until the program runs or fails to start.
    fn run(&self) -> io::Result<Pid> {
        let (failure, report) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let report = out_of_the_way(report)?;
        let mut environment: Vec<*const c_char> =
            self.environment.iter().map(|string| string.as_ptr()).collect();
        let mut listen_pid = *LISTEN_PID;
        // The child puts its pid in place of the first null pointer.
        environment.extend([LISTEN_FDS.as_ptr(), std::ptr::null(), std::ptr::null()]);

        let parent = process::getpid();
        let blocked = block_signals();
        // SAFETY: until it runs another program or exits, the child calls only functions that are safe
        // after a fork of a process with threads. `become_program` allocates nothing and takes no lock.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            let failed = self.become_program(parent, &mut environment, &mut listen_pid);
            // SAFETY: `failed` is valid for its size, and _exit ends the process at once.
            unsafe {
                libc::write(report.as_raw_fd(), (&raw const failed).cast(), size_of_val(&failed));
                libc::_exit(127);
            }
        }
        let error = io::Error::last_os_error();
        restore_signals(&blocked);
        let Some(pid) = Pid::from_raw(forked).filter(|_| forked > 0) else { return Err(error) };

        drop(report);
        let mut errno = [0; size_of::<c_int>()];
        match File::from(failure).read_exact(&mut errno) {
            Err(_) => Ok(pid),
            Ok(()) => {
                let _ = waitpid(Some(pid), WaitOptions::empty());
                Err(io::Error::from_raw_os_error(c_int::from_ne_bytes(errno)))
            }
        }
    }

    /// Runs in the child. Returns the errno of the call that failed.
    fn become_program(
        &self,
        parent: Pid,
        environment: &mut [*const c_char],
        listen_pid: &mut [u8; LISTEN_PID.len()],
    ) -> c_int {
        if let Err(errno) = self.confine(parent) {
            return errno.raw_os_error();
        }
        let mut pid = process::getpid().as_raw_nonzero().get();
        for digit in listen_pid[..LISTEN_PID.len() - 1].iter_mut().rev().take(PID_DIGITS) {
            *digit = b'0' + (pid % 10) as u8;
            pid /= 10;
        }
        // Must come after the digits, because writing them would invalidate an earlier pointer.
        if let Some(slot) = environment.iter_mut().find(|pointer| pointer.is_null()) {
            *slot = listen_pid.as_ptr().cast();
        }
        // SAFETY: all three are terminated as execve requires, and outlive the call.
        unsafe {
            libc::execve(
                self.program.as_ptr(),
                self.arguments.pointers.as_ptr(),
                environment.as_ptr(),
            );
        }
        errno().raw_os_error()
    }

    /// Does everything between fork and exec. The functions of rustix used here are plain system calls.
    fn confine(&self, parent: Pid) -> Result<(), Errno> {
        // SAFETY: `none` is valid for the calls, which write it before anything reads it. All signals
        // are blocked until the handlers of the parent are gone.
        unsafe {
            for signal in 1..=libc::SIGRTMAX() {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
        // Ctrl-C must not reach the child, which is killed when this process ends.
        process::setpgid(None, None)?;
        process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if process::getppid() != Some(parent) {
            // The parent ended before the kernel registered the signal.
            return Err(Errno::SRCH);
        }

        rustix::stdio::dup2_stdin(&self.null)?;
        rustix::stdio::dup2_stdout(&self.words)?;
        rustix::stdio::dup2_stderr(&self.words)?;
        close_at_exec()?;
        // SAFETY: no descriptor that the child still uses has the number 3.
        if unsafe { libc::dup2(self.listener.as_raw_fd(), FIRST_SOCKET) } == -1 {
            return Err(errno());
        }
        for file in &self.files {
            rustix::io::fcntl_setfd(file, FdFlags::empty())?;
        }
        process::chdir(c"/")?;

        for (resource, most) in LIMITS {
            let maximum = process::getrlimit(resource).maximum.map_or(most, |max| max.min(most));
            let limit = Rlimit { current: Some(maximum), maximum: Some(maximum) };
            process::setrlimit(resource, limit)?;
        }

        rustix::thread::set_no_new_privs(true)?;
        if let Some(rules) = &self.rules {
            // SAFETY: a system call on a descriptor that is open, without flags.
            let result =
                unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
            if result == -1 {
                return Err(errno());
            }
        }
        // The child opens its inherited descriptors again by path.
        capabilities::keep(capabilities::READ)?;
        match self.filter.as_ref().map(Filter::enter) {
            // A kernel without system call filters.
            None | Some(Ok(()) | Err(Errno::INVAL | Errno::NOSYS)) => Ok(()),
            Some(Err(error)) => Err(error),
        }
    }
}

/// Marks all descriptors except the standard ones close-on-exec, wherever they were opened.
fn close_at_exec() -> Result<(), Errno> {
    const FLAG: libc::c_uint = libc::CLOSE_RANGE_CLOEXEC as libc::c_uint;
    // SAFETY: a system call on numbers.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, FLAG) } == 0 {
        return Ok(());
    }
    // Linux before 5.11.
    let end = process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).min(MOST_CLOSED);
    for fd in 3..end as RawFd {
        // SAFETY: a system call on a number. Nothing else uses descriptors of the child.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

fn errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Blocks all signals, so that no handler of the parent runs in the child.
fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are valid for the calls, which write them before anything reads them.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: `before` is a valid set.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut());
    }
}

/// Number of the first descriptor in socket activation.
const FIRST_SOCKET: RawFd = 3;

/// Lowest number of the parent's descriptors for the child, so that `dup2` in the child
/// overwrites none of them.
const FIRST_FREE: RawFd = 10;

const LISTEN_FDS: &CStr = c"LISTEN_FDS=1";

/// Ends with NUL. The child writes the digits of its own pid.
const LISTEN_PID: &[u8; 22] = b"LISTEN_PID=0000000000\0";
const PID_DIGITS: usize = 10;

/// Maximum size of the output of the child that is kept, far more than a user reads.
/// Limit in bytes.
const MAX_WORDS: usize = 16 << 10;

/// Maximum number of descriptors to mark without `close_range`.
const MOST_CLOSED: u64 = 1 << 16;

/// Maximum number of open files of the child, more than enough for the largest number of extents.
/// Limit in descriptors.
const MAX_FILES: u64 = 4096;

/// Maximum size of the data of the child in memory. QEMU itself needs less than 100 MiB, and less than 600
/// MiB with all its threads. Its formats may allocate 512 MiB at a time.
/// Limit in bytes.
const MAX_DATA: u64 = 2 << 30;

/// Resource limits of the child. It writes no core files, and no files larger than its output.
const LIMITS: [(Resource, u64); 4] = [
    (Resource::Core, 0),
    (Resource::Fsize, MAX_WORDS as u64),
    (Resource::Nofile, MAX_FILES),
    (Resource::Data, MAX_DATA),
];
