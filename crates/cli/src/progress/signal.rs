//! SIGUSR1, which asks for a line of progress. Linux has no SIGINFO.
//!
//! The signal stays blocked in every thread and is read from a descriptor: it ends nothing and
//! interrupts no system call, at any time after [`hold`]. Programs that are run get their signals back
//! from what runs them.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Keeps signals until [`Signals`] takes them. Called before there is another thread.
pub fn hold() {
    // It fails for what is no signal.
    let _ = signals().thread_block();
}

/// The signals that came in since they were held.
pub struct Signals(SignalFd);

impl Signals {
    /// Fails where there are no more descriptors.
    pub fn new() -> Result<Self, Errno> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        SignalFd::with_flags(&signals(), flags).map(Self)
    }

    /// Waits for a signal, for ever without `timeout`. True if there was one.
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
