//! The signal that asks for progress. Linux has no `SIGINFO`.
//!
//! It stays blocked in every thread and is read from a descriptor: it ends nothing and interrupts no system call.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The signals that ask for progress and came in since they were held.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Keeps signals for [`new`](Self::new). Called before there is another thread.
    pub fn hold() {
        // It fails for what is no signal.
        let _ = signals().thread_block();
    }

    /// Receives the signals that are held.
    ///
    /// # Errors
    ///
    /// Fails if there are no more descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self(SignalFd::with_flags(&signals(), flags)?))
    }

    /// Waits for a signal, without end if there is no `timeout`. Returns whether there was one.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: timeout.subsec_nanos() as _,
        });
        let fd = self.0.as_fd();
        // Interrupted by another signal, it has waited long enough.
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref());
        matches!(self.0.read_signal(), Ok(Some(_)))
    }
}

fn signals() -> SigSet {
    SigSet::from(Signal::SIGUSR1)
}
