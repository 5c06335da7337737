//! The signals that ask for progress: `SIGUSR1`, and Ctrl-T on a system that has `SIGINFO`.
//!
//! They stay blocked in every thread but one that waits for them: they end nothing and interrupt no system call.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags};

use super::Event;
use crate::posix::poll;

/// The signals that ask for progress and came in since they were held.
#[derive(Debug)]
pub struct Signals(Arc<Event>);

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
    /// Fails if there are no more descriptors or threads.
    pub fn new() -> io::Result<Self> {
        let event = Arc::new(Event::new()?);
        let sender = event.clone();
        let wait = move || {
            while signals().wait().is_ok() {
                sender.set();
            }
        };
        // It ends with the process.
        thread::Builder::new().name("signals".into()).spawn(wait)?;
        Ok(Self(event))
    }

    /// Waits for a signal, without end if there is no `timeout`. Returns whether there was one.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let fd = self.0.as_fd();
        let is_set = poll(&mut [PollFd::new(&fd, PollFlags::IN)], deadline).unwrap_or(false);
        self.0.clear();
        is_set
    }
}

fn signals() -> SigSet {
    SIGNALS.into_iter().collect()
}

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
const SIGNALS: [Signal; 2] = [Signal::SIGUSR1, Signal::SIGINFO];

#[cfg(not(any(target_os = "macos", target_os = "freebsd")))]
const SIGNALS: [Signal; 1] = [Signal::SIGUSR1];
