//! The standard descriptors as the process inherited them.
//!
//! The runtime of Rust opens `/dev/null` for each standard descriptor that is closed, and its handles
//! treat EBADF as success. A closed standard input would read as empty, and output to a closed standard
//! output would be lost without an error. The descriptors are therefore checked before the runtime
//! starts. Afterwards, its `/dev/null` cannot be told from one that the parent process passed on, as
//! daemons and Python do.

#![allow(unsafe_code, reason = "a function that runs before main is put into a section")]

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::stdio;
use rustix::termios::tcgetwinsize;

use crate::status_line;

/// Standard input under a descriptor of its own.
///
/// # Errors
///
/// Fails with EBADF if standard input was closed at the start of the process.
pub fn stdin() -> io::Result<File> {
    Stream::Input.check()?;
    Ok(stdio::stdin().try_clone_to_owned()?.into())
}

/// A stream that is read to its end, also where another process made it one that does not block.
#[derive(Debug)]
pub struct Patient(pub File);

impl Read for Patient {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.0.as_fd(), PollFlags::IN)?;
                }
                result => return result,
            }
        }
    }
}

/// Returns when a descriptor can be read from or written to, or fails to.
fn wait(descriptor: BorrowedFd<'_>, events: PollFlags) -> io::Result<()> {
    retry_on_intr(|| poll(&mut [PollFd::new(&descriptor, events)], None))?;
    Ok(())
}

/// Returns when standard output is where it stays, if it is a file or a device.
pub fn sync_stdout() -> io::Result<()> {
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() { file.sync_all() } else { Ok(()) }
}

/// Returns the width of the terminal that standard output is. What goes elsewhere does not depend on a terminal.
pub fn columns() -> Option<usize> {
    let columns = tcgetwinsize(stdio::stdout()).map_or(0, |size| usize::from(size.ws_col));
    (columns > 0).then_some(columns)
}

/// Unbuffered standard output. Writes fail if it was closed at the start of the process.
#[derive(Debug)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Stream::Output.write(buf)
    }

    fn write_all(&mut self, buf: &[u8]) -> io::Result<()> {
        Stream::Output.write_all(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Unbuffered standard error. Writes fail if it was closed at the start of the process.
#[derive(Debug)]
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Stream::Error.write(buf)
    }

    fn write_all(&mut self, buf: &[u8]) -> io::Result<()> {
        Stream::Error.write_all(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A standard stream. The discriminant is its descriptor number.
#[derive(Clone, Copy)]
enum Stream {
    Input = 0,
    Output = 1,
    Error = 2,
}

impl Stream {
    fn descriptor(self) -> BorrowedFd<'static> {
        match self {
            Self::Input => stdio::stdin(),
            Self::Output => stdio::stdout(),
            Self::Error => stdio::stderr(),
        }
    }

    /// Fails if the stream was closed at the start of the process.
    fn check(self) -> io::Result<()> {
        if WAS_CLOSED[self as usize].load(Relaxed) { Err(Errno::BADF.into()) } else { Ok(()) }
    }

    fn write(self, buf: &[u8]) -> io::Result<usize> {
        self.check()?;
        loop {
            match retry_on_intr(|| rustix::io::write(self.descriptor(), buf)) {
                Err(Errno::AGAIN) => wait(self.descriptor(), PollFlags::OUT)?,
                result => return Ok(result?),
            }
        }
    }

    /// On a terminal the line of progress makes way.
    fn write_all(self, buf: &[u8]) -> io::Result<()> {
        let is_terminal = &IS_TERMINAL[self as usize];
        if *is_terminal.get_or_init(|| self.descriptor().is_terminal()) {
            return status_line::write_instead(buf, || Parts(self).write_all(buf));
        }
        Parts(self).write_all(buf)
    }
}

/// A stream that is written in parts, if one write does not take all.
struct Parts(Stream);

impl Write for Parts {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

extern "C" fn look() {
    for stream in [Stream::Input, Stream::Output, Stream::Error] {
        let is_closed = rustix::io::fcntl_getfd(stream.descriptor()) == Err(Errno::BADF);
        WAS_CLOSED[stream as usize].store(is_closed, Relaxed);
    }
    // A socket takes the place of the runtime's `/dev/null`, so that reading fails, and opening `/dev/stdin` on
    // Linux. It gets the number of standard input, which is the lowest free one.
    if Stream::Input.check().is_err()
        && let Ok(closed) = socket(AddressFamily::UNIX, SocketType::STREAM, None)
    {
        std::mem::forget(closed);
    }
}

// `look` makes a few system calls, allocates nothing and uses nothing of the runtime.
blksys::before_main!(look);

static IS_TERMINAL: [OnceLock<bool>; 3] = [const { OnceLock::new() }; 3];

static WAS_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
