//! SIGBUS: what the kernel sends where a page of a mapped file cannot be had, because the file was cut
//! off or its disk failed.
//!
//! The handler looks the address up among the windows that are watched. There it puts zeros in the
//! place of the whole window, so that the thread can go on, and marks the window: what was made of it
//! is thrown away. A handler may only touch atomics, so the windows stand in a table of fixed size.
//!
//! Any other SIGBUS does what it did before the handler was set. A fault goes to the previous handler,
//! or ends the process. A signal that another process sent goes there as well, and is ignored where it
//! was ignored; the handler is then set again, since that of Rust's runtime removes itself when it
//! meets a signal that it does not know. News of a damaged page that no thread has touched yet
//! (`BUS_MCEERR_AO`) needs no answer: its window may not be in use, and may be gone at any moment.

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
    /// Where the window begins; [`FREE`], or [`TAKEN`] while the rest is being written.
    start: AtomicUsize,
    length: AtomicUsize,
    is_broken: AtomicBool,
}

impl Watch {
    /// Watches `length` bytes of memory at `start`. None: the table is full.
    pub fn new(start: usize, length: usize) -> Option<Self> {
        let slot = SLOTS
            .iter()
            .find(|slot| slot.start.compare_exchange(FREE, TAKEN, SeqCst, SeqCst).is_ok())?;
        slot.length.store(length, SeqCst);
        slot.is_broken.store(false, SeqCst);
        slot.start.store(start, SeqCst);
        Some(Self(slot))
    }

    /// Whether no page of it was missing so far.
    pub fn is_intact(&self) -> bool {
        !self.0.is_broken.load(SeqCst)
    }

    /// Stops watching.
    pub fn end(&self) {
        self.0.start.store(FREE, SeqCst);
    }
}

impl Slot {
    /// The window, if `address` lies in it. The one that the address lies in is there for as long as
    /// the handler runs, since its reader is in the handler; others come and go.
    fn window_of(&self, address: usize) -> Option<(usize, usize)> {
        let start = self.start.load(SeqCst);
        let length = self.length.load(SeqCst);
        let is_settled = start > TAKEN && self.start.load(SeqCst) == start;
        (is_settled && address.checked_sub(start)? < length).then_some((start, length))
    }
}

/// Sets the handler, once in a process. None: the system does not let us.
pub(super) fn install() -> Option<()> {
    *INSTALLED.get_or_init(|| {
        // SAFETY: a `sigaction` of zeros is one without flags and with the default action.
        let mut previous: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: it lives until the call returns. The previous action is known before the new one is
        // in force.
        let result = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous) };
        PREVIOUS.get_or_init(|| previous);
        (result == 0 && set_handler() == 0).then_some(())
    })
}

fn set_handler() -> c_int {
    // SAFETY: a `sigaction` of zeros is one without flags and with the default action.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    // The standard library's guard pages need the stack of their own.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: it lives until the call returns, which is allowed in a handler.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) }
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over a valid structure.
    let code = unsafe { (*info).si_code };
    // Another process has sent it, and it has no address.
    if code <= 0 {
        return pass_on_sent(signal, info, context);
    }
    // SAFETY: the kernel itself raised the signal, and says where.
    let address = unsafe { (*info).si_addr().addr() };
    let found = SLOTS.iter().find_map(|slot| slot.window_of(address).map(|window| (slot, window)));
    if let Some((slot, (start, length))) = found {
        if code == BUS_MCEERR_AO {
            return;
        }
        // Before the zeros are there to be read.
        slot.is_broken.store(true, SeqCst);
        if put_zeros(start, length) {
            return;
        }
    }
    if code == BUS_MCEERR_AO {
        return pass_on_sent(signal, info, context);
    }
    if !run_previous(signal, info, context) {
        // The kernel ends a process that ignores a fault, too.
        end(signal);
    }
}

/// Does with a signal that is no fault of this thread what would have been done without us.
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

/// Replaces a window by zeros.
fn put_zeros(start: usize, length: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let start = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the range is a window's, which its reader keeps mapped: he waits for us.
    unsafe { mmap_anonymous(start, length, ProtFlags::READ, flags) }.is_ok()
}

/// Runs the handler that was there before. False: there was none.
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
    // SAFETY: both calls are allowed in a handler. The signal waits until the handler returns, and then
    // ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// A page is damaged, and no thread has touched it so far.
const BUS_MCEERR_AO: c_int = 5;

static INSTALLED: OnceLock<Option<()>> = OnceLock::new();
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// More windows than that are not lent at a time: some for each thread of a large machine.
static SLOTS: [Slot; 256] = [const {
    Slot {
        start: AtomicUsize::new(FREE),
        length: AtomicUsize::new(0),
        is_broken: AtomicBool::new(false),
    }
}; 256];

/// No window begins at these addresses.
const FREE: usize = 0;
const TAKEN: usize = 1;
