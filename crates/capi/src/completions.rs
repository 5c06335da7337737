//! Completions of asynchronous updates, which return the buffers to C.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use blksys::Event;
use nix::errno::Errno;

/// `struct blkhash_completion`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Completion {
    pub(crate) user_data: *mut c_void,
    pub(crate) error: c_int,
}

// SAFETY: the pointer is only returned to the caller that passed it, and never followed here.
unsafe impl Send for Completion {}

/// The asynchronous updates of a hash, from start to fetched completion.
pub(crate) struct Completions {
    state: Mutex<State>,
    /// Readable when there may be completions.
    event: Event,
    depth: usize,
}

struct State {
    completed: VecDeque<Completion>,
    /// Number of updates that were started and whose completion was not fetched.
    in_flight: usize,
}

impl Completions {
    pub(crate) fn new(depth: usize) -> Result<Self, Errno> {
        let event = Event::new()
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
        let state = State { completed: VecDeque::new(), in_flight: 0 };
        Ok(Self { state: Mutex::new(state), event, depth })
    }

    /// Counts one more update in flight.
    pub(crate) fn start(&self) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.in_flight == self.depth {
            return Err(Errno::EAGAIN);
        }
        state.in_flight += 1;
        Ok(())
    }

    pub(crate) fn complete(&self, completion: Completion) {
        let mut state = self.lock();
        state.completed.push_back(completion);
        // If others wait already, the caller was woken for these and fetches this one, too.
        let is_first = state.completed.len() == 1;
        drop(state);
        if is_first {
            self.event.set();
        }
    }

    /// Moves completions to the front of `out`, and returns their number.
    pub(crate) fn fetch(&self, out: &mut [MaybeUninit<Completion>]) -> usize {
        let mut state = self.lock();
        let fetched = out.len().min(state.completed.len());
        for (slot, completion) in out.iter_mut().zip(state.completed.drain(..fetched)) {
            slot.write(completion);
        }
        state.in_flight -= fetched;
        let is_rest = fetched > 0 && !state.completed.is_empty();
        drop(state);
        if is_rest {
            self.event.set();
        }
        fetched
    }

    /// Returns the maximum number of updates in flight.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the descriptor, which is readable when there may be completions.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Ignores poisoning, because each statement that holds the lock leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
