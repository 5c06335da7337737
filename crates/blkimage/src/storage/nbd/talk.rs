//! Limits on a server's messages before an export is chosen.
//!
//! libnbd negotiates for as long as the server sends, and keeps any number of contexts. A flood is
//! stopped from within, in the debug messages that libnbd reports for each of its steps.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use rustix::net::Shutdown;

/// The steps and time that a connection has used.
#[derive(Debug)]
pub(super) struct Talk {
    steps: AtomicUsize,
    deadline: Option<Instant>,
    socket: Mutex<Option<OwnedFd>>,
    excess: OnceLock<Excess>,
}

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    TooLate,
    TooMuch,
}

impl Talk {
    pub fn new(deadline: Option<Instant>) -> Self {
        let (steps, socket, excess) = Default::default();
        Self { steps, deadline, socket, excess }
    }

    /// Sets the socket to shut down.
    pub fn watch(&self, socket: OwnedFd) {
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
    }

    /// Counts a step of the library. Shuts the socket down if a limit is exceeded.
    pub fn step(&self) {
        let steps = self.steps.fetch_add(1, Ordering::Relaxed);
        if steps >= MAX_STEPS || steps.is_multiple_of(STEPS_A_LOOK) && self.is_late() {
            let excess = if steps >= MAX_STEPS { Excess::TooMuch } else { Excess::TooLate };
            let _ = self.excess.set(excess);
            let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(socket) = &*socket {
                let _ = rustix::net::shutdown(socket, Shutdown::Both);
            }
        }
    }

    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the limit that was exceeded, if any.
    pub fn excess(&self) -> Option<Excess> {
        self.excess.get().copied()
    }
}

/// Maximum number of steps of libnbd before an export is chosen. Servers take a few hundred, and three for each
/// further context or name. With names of 4 KiB, libnbd keeps about 20 MiB of contexts at most.
/// Limit in steps.
const MAX_STEPS: usize = 16 << 10;

/// Number of steps between two checks of the clock.
const STEPS_A_LOOK: usize = 16;
