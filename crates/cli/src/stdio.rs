//! The standard descriptors as the process got them.
//!
//! Rust's runtime opens `/dev/null` for a standard descriptor that is closed, and its handles take
//! EBADF for success: a closed standard input would be an empty one, and lines for a closed standard
//! output would be lost without an error. So descriptors are looked at before the runtime starts. Later
//! nothing tells its `/dev/null` from one that the caller chose: daemons and Python open that in the
//! same way.

#![allow(unsafe_code, reason = "a function that runs before main is put into a section")]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::event::EventfdFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::stdio;

/// Standard input under a descriptor of its own.
///
/// # Errors
///
/// EBADF: it was closed.
pub fn stdin() -> io::Result<File> {
    Stream::Input.check()?;
    Ok(stdio::stdin().try_clone_to_owned()?.into())
}

/// Standard output, without a buffer. Writing fails if it was closed.
#[derive(Debug)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Stream::Output.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error, without a buffer. Writing fails if it was closed.
#[derive(Debug)]
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Stream::Error.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One of the three, with its number.
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

    /// Fails if it was closed.
    fn check(self) -> io::Result<()> {
        if WAS_CLOSED[self as usize].load(Relaxed) { Err(Errno::BADF.into()) } else { Ok(()) }
    }

    fn write(self, buf: &[u8]) -> io::Result<usize> {
        self.check()?;
        Ok(retry_on_intr(|| rustix::io::write(self.descriptor(), buf))?)
    }
}

extern "C" fn look() {
    for stream in [Stream::Input, Stream::Output, Stream::Error] {
        let is_closed = rustix::io::fcntl_getfd(stream.descriptor()) == Err(Errno::BADF);
        WAS_CLOSED[stream as usize].store(is_closed, Relaxed);
    }
    // In the place of the runtime's `/dev/null`: what no path leads into. As the first free descriptor it
    // gets the number of standard input.
    if Stream::Input.check().is_err()
        && let Ok(closed) = rustix::event::eventfd(0, EventfdFlags::empty())
    {
        std::mem::forget(closed);
    }
}

/// The loader calls what stands in this section before `main`, and so before the runtime. `look` makes
/// a few system calls, allocates nothing and needs nothing of the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

static WAS_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
