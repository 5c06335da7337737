//! Buffers that C lends, and the queue by which it learns that it has them back.

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::slice;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::boundary::{PANICKED, count, status};
use crate::hash::{Hash, checked_length};

/// `struct blkhash_completion`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Completion {
    user_data: *mut c_void,
    error: c_int,
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
    fn start(&self) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.in_flight == self.depth {
            return Err(Errno::EAGAIN);
        }
        state.in_flight += 1;
        Ok(())
    }

    fn complete(&self, completion: Completion) {
        let mut state = self.lock();
        state.completed.push_back(completion);
        // Whoever was woken for those before fetches this one along.
        let is_first = state.completed.len() == 1;
        drop(state);
        if is_first {
            self.wake();
        }
    }

    fn fetch(&self, out: &mut [MaybeUninit<Completion>]) -> usize {
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

/// A buffer that C lends until this is dropped.
pub(crate) struct Lent {
    data: *const u8,
    length: usize,
    lender: Lender,
}

/// Who waits for a buffer.
pub(crate) enum Lender {
    /// Somebody who fetches completions.
    Asynchronous(Arc<Completions>, *mut c_void),
    /// A thread in [`Returned::wait`].
    Waiting(Arc<Returned>),
}

/// Tells a thread that a buffer has come back. A channel would leave memory behind in that thread.
#[derive(Default)]
pub(crate) struct Returned {
    is_back: Mutex<bool>,
    changed: Condvar,
}

impl Returned {
    pub(crate) fn wait(&self) {
        let is_back = self.is_back.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(is_back, |is_back| !*is_back));
    }

    fn tell(&self) {
        *self.is_back.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

// SAFETY: the bytes stay as they are until this is dropped (`Lent::new`), so that any thread may read
// them; `user_data` is never followed.
unsafe impl Send for Lent {}
// SAFETY: the same: there is nothing to change through a reference.
unsafe impl Sync for Lent {}

impl Lent {
    /// Lends the `length` bytes at `data`.
    ///
    /// # Safety
    ///
    /// The bytes can be read, and nobody changes them, until this is dropped.
    pub(crate) unsafe fn new(data: *const u8, length: usize, lender: Lender) -> Self {
        Self { data, length, lender }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: `Lent::new` was promised that the bytes are there as long as this is.
        unsafe { slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        match &self.lender {
            Lender::Asynchronous(completions, user_data) => {
                let error = if thread::panicking() { PANICKED as c_int } else { 0 };
                completions.complete(Completion { user_data: *user_data, error });
            }
            Lender::Waiting(returned) => returned.tell(),
        }
    }
}

/// `blkhash_aio_update()`.
///
/// # Safety
///
/// `h` is null or from a function that makes one. `buf` has `len` bytes that stay as they are until
/// the completion of this update was fetched, or the hash was freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_aio_update(
    h: *mut Hash,
    buf: *const c_void,
    len: usize,
    user_data: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    status(Hash::with_hasher(hash, |hash, hasher| {
        let completions = hash.completions.as_ref().ok_or(Errno::ENOTSUP)?;
        checked_length(buf, len, hasher)?;
        completions.start()?;
        let lender = Lender::Asynchronous(Arc::clone(completions), user_data);
        // SAFETY: the caller's promise; a completion is there only after the drop.
        hasher.update_owned(unsafe { Lent::new(buf.cast(), len, lender) });
        Ok(())
    }))
}

/// `blkhash_aio_completion_fd()`.
///
/// # Safety
///
/// `h` is null or from a function that makes one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_aio_completion_fd(h: *mut Hash) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    count(hash.ok_or(Errno::EINVAL).and_then(|hash| {
        let completions = hash.completions.as_ref().ok_or(Errno::ENOTSUP)?;
        Ok(completions.event.as_fd().as_raw_fd())
    }))
}

/// `blkhash_aio_completions()`.
///
/// # Safety
///
/// `h` is null or from a function that makes one; `out` is null or has room for `count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blkhash_aio_completions(
    h: *mut Hash,
    out: *mut Completion,
    count: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    let hash = unsafe { h.as_ref() };
    crate::boundary::count(Hash::usable(hash).and_then(|hash| {
        let completions = hash.completions.as_ref().ok_or(Errno::ENOTSUP)?;
        // More than were in flight are never there.
        let count = (count as usize).min(completions.depth);
        if out.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the caller has room for that many, which may hold anything before.
        let out = unsafe { slice::from_raw_parts_mut(out.cast(), count) };
        Ok(completions.fetch(out) as c_int)
    }))
}
