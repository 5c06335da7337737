//! SIGBUS, which the kernel sends if a page of a mapped file is unavailable, because the file was
//! truncated or its disk failed.
//!
//! The handler looks the address up among the watched windows. If it finds one, it replaces the whole
//! window by zeros, so that the thread can continue, and marks the window as broken. Results computed
//! from it are discarded. A handler may only access atomics, so the windows are in a table of fixed size.
//!
//! Any other SIGBUS has the same effect as before the handler was installed. A fault runs the previous
//! handler or ends the process. So does a signal that another process sent, unless it was ignored. The
//! handler is then installed again, because the one of Rust's runtime removes itself on an unknown signal.
//! A notification of a damaged page that no thread has touched yet (`BUS_MCEERR_AO`) needs no action,
//! because its window may be unused and may be unmapped at any moment.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use nix::libc;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// A window in the table.
#[derive(Debug)]
pub(super) struct Watch(&'static Slot);

#[derive(Debug)]
struct Slot {
    /// Start address of the window, [`FREE`], or [`TAKEN`] while the other fields are written.
    start: AtomicUsize,
    length: AtomicUsize,
    is_broken: AtomicBool,
}

impl Watch {
    /// Watches `length` bytes of memory at `start`. Returns `None` if the table is full.
    pub fn new(start: usize, length: usize) -> Option<Self> {
        let slot = SLOTS
            .iter()
            .find(|slot| slot.start.compare_exchange(FREE, TAKEN, SeqCst, SeqCst).is_ok())?;
        slot.length.store(length, SeqCst);
        slot.is_broken.store(false, SeqCst);
        slot.start.store(start, SeqCst);
        Some(Self(slot))
    }

    /// Returns whether no page of the window has been unavailable so far.
    pub fn is_intact(&self) -> bool {
        !self.0.is_broken.load(SeqCst)
    }

    /// Stops watching.
    pub fn end(&self) {
        self.0.start.store(FREE, SeqCst);
    }
}

impl Slot {
    /// Returns the window, if `address` is in it. The window with the address exists while the
    /// handler runs, because its reader is inside the handler. Other windows may come and go.
    fn window_of(&self, address: usize) -> Option<(usize, usize)> {
        let start = self.start.load(SeqCst);
        let length = self.length.load(SeqCst);
        let is_settled = start > TAKEN && self.start.load(SeqCst) == start;
        (is_settled && address.checked_sub(start)? < length).then_some((start, length))
    }
}

/// Installs the handler, once in a process. Returns `None` if the system refuses.
pub(super) fn install() -> Option<()> {
    *INSTALLED.get_or_init(|| {
        // SAFETY: a `sigaction` of zeros has no flags and the default action.
        let mut previous: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: `previous` lives until the call returns. The previous action is known
        // before the new one is in force.
        let result = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous) };
        PREVIOUS.get_or_init(|| previous);
        (result == 0 && set_handler() == 0).then_some(())
    })
}

fn set_handler() -> c_int {
    // SAFETY: a `sigaction` of zeros has no flags and the default action.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    // The standard library's guard pages need the alternate stack.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` lives until the call returns, and the call is allowed in a handler.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) }
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid structure.
    let code = unsafe { (*info).si_code };
    // Another process sent the signal, so there is no address.
    if code <= 0 {
        return pass_on_sent(signal, info, context);
    }
    // SAFETY: the kernel raised the signal and set the address.
    let address = unsafe { (*info).si_addr().addr() };
    let found = SLOTS.iter().find_map(|slot| slot.window_of(address).map(|window| (slot, window)));
    if let Some((slot, (start, length))) = found {
        if code == BUS_MCEERR_AO {
            return;
        }
        // Must be set before the zeros can be read.
        slot.is_broken.store(true, SeqCst);
        if put_zeros(start, length) {
            return;
        }
    }
    if code == BUS_MCEERR_AO {
        return pass_on_sent(signal, info, context);
    }
    if !run_previous(signal, info, context) {
        // The kernel also ends a process that ignores a fault.
        end(signal);
    }
}

/// Handles a signal that is not a fault of this thread as before the handler was installed.
fn pass_on_sent(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if PREVIOUS.get().is_some_and(|previous| previous.sa_sigaction == libc::SIG_IGN) {
        return;
    }
    if run_previous(signal, info, context) {
        set_handler();
    } else {
        end(signal);
    }
}

/// Replaces a window by zeros. Returns whether that succeeded.
fn put_zeros(start: usize, length: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    let start = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the range is a window's, which its reader keeps mapped while it waits for the handler.
    unsafe { mmap_anonymous(start, length, ProtFlags::READ, flags) }.is_ok()
}

/// Runs the previous handler. Returns `false` if there is none.
fn run_previous(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> bool {
    let Some(previous) = PREVIOUS.get() else { return false };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => return false,
        action if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with this flag it is a function of that type.
            let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { mem::transmute(action) };
            function(signal, info, context);
        }
        action => {
            // SAFETY: without the flag it is a function of this type.
            let function: extern "C" fn(c_int) = unsafe { mem::transmute(action) };
            function(signal);
        }
    }
    true
}

/// Ends the process, as the default action does.
fn end(signal: c_int) {
    // SAFETY: both calls are allowed in a handler. The signal is delivered when the handler returns and
    // ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Code for a damaged page that no thread has touched yet.
const BUS_MCEERR_AO: c_int = 5;

static INSTALLED: OnceLock<Option<()>> = OnceLock::new();
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// The watched windows. Enough for several per thread on a large machine. No more are lent at a time.
static SLOTS: [Slot; 256] = [const {
    Slot {
        start: AtomicUsize::new(FREE),
        length: AtomicUsize::new(0),
        is_broken: AtomicBool::new(false),
    }
}; 256];

/// Values that are never the start address of a window.
const FREE: usize = 0;
const TAKEN: usize = 1;
