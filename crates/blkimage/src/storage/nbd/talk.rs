//! Bounds what a server may say before an export is chosen.
//!
//! The library goes on for as long as something comes, and keeps a part of it: contexts without a
//! number. A flood has to be cut off from within, from the reports that the library makes of its
//! steps.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use rustix::net::Shutdown;

/// What a connection has used up of its bounds.
#[derive(Debug)]
pub(super) struct Talk {
    steps: AtomicUsize,
    deadline: Option<Instant>,
    socket: Mutex<Option<OwnedFd>>,
    excess: OnceLock<Excess>,
}

/// Which bound was passed.
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

    /// Says which socket to shut down.
    pub fn watch(&self, socket: OwnedFd) {
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
    }

    /// Counts a step of the library.
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

    /// The bound that was passed, if one was.
    pub fn excess(&self) -> Option<Excess> {
        self.excess.get().copied()
    }
}

/// Steps before an export is chosen. Servers take some hundred, and three for each further context or
/// name: with names of 4 KiB, libnbd keeps at most some 20 MiB of contexts.
const MAX_STEPS: usize = 16 << 10;

/// How many steps the clock is not looked at.
const STEPS_A_LOOK: usize = 16;
