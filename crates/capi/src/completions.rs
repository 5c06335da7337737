//! Completions of asynchronous updates, by which C learns that it has its buffers back.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// `struct blkhash_completion`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Completion {
    pub(crate) user_data: *mut c_void,
    pub(crate) error: c_int,
}

// SAFETY: the pointer is handed back to who handed it in, and never followed here.
unsafe impl Send for Completion {}

/// The asynchronous updates of a hash.
pub(crate) struct Completions {
    state: Mutex<State>,
    /// Readable when completions may be there.
    event: EventFd,
    depth: usize,
}

struct State {
    completed: VecDeque<Completion>,
    /// Updates that were started and whose completion was not fetched.
    in_flight: usize,
}

impl Completions {
    pub(crate) fn new(depth: usize) -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_value_and_flags(0, flags)?;
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
        // Whoever was woken for those before fetches this one along.
        let is_first = state.completed.len() == 1;
        drop(state);
        if is_first {
            self.wake();
        }
    }

    /// Moves completions to the front of `out`; returns how many.
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
            self.wake();
        }
        fetched
    }

    /// Updates in flight at most.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Becomes readable when completions may be there.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn wake(&self) {
        // It fails only where the counter is full: then it is readable already.
        let _ = self.event.write(1);
    }

    /// The state is whole between any two statements that hold the lock, so a poisoned lock has
    /// nothing to hide.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
