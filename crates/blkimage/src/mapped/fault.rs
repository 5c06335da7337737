//! SIGBUS: what the kernel sends where a page of a mapped file cannot be had, because the file was cut
//! off or its disk failed.
//!
//! The handler looks the address up among the windows that are watched. There it puts zeros in the
//! place of the whole window, so that the thread can go on, and marks the window: what was made of it
//! is thrown away. Any other SIGBUS goes to whoever handled it before. A handler may only touch
//! atomics, so the windows stand in a table of fixed size.

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
        let (mut action, mut previous): (libc::sigaction, libc::sigaction) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        action.sa_sigaction = handle as *const () as usize;
        // The standard library's guard pages need the stack of their own.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both live until the calls return. The previous action is known before the new one
        // is in force.
        let result = unsafe {
            libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous);
            PREVIOUS.get_or_init(|| previous);
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut())
        };
        (result == 0).then_some(())
    })
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over a valid structure, which has an address if the kernel itself
    // raised the signal.
    let address = unsafe { ((*info).si_code > 0).then(|| (*info).si_addr().addr()) };
    let found = address.and_then(|address| {
        SLOTS.iter().find_map(|slot| slot.window_of(address).map(|window| (slot, window)))
    });
    if let Some((slot, (start, length))) = found {
        // Before the zeros are there to be read.
        slot.is_broken.store(true, SeqCst);
        if put_zeros(start, length) {
            return;
        }
    }
    pass_on(signal, info, context);
}

/// Replaces a window by zeros.
fn put_zeros(start: usize, length: usize) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let start = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the range is a window's, which its reader keeps mapped: he waits for us.
    unsafe { mmap_anonymous(start, length, ProtFlags::READ, flags) }.is_ok()
}

/// Does what would have been done without us.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.get().filter(|previous| {
        previous.sa_sigaction != libc::SIG_DFL && previous.sa_sigaction != libc::SIG_IGN
    });
    match previous {
        Some(previous) if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with this flag it is a function of that type.
            let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { mem::transmute(previous.sa_sigaction) };
            function(signal, info, context);
        }
        Some(previous) => {
            // SAFETY: without the flag it is a function of this type.
            let function: extern "C" fn(c_int) = unsafe { mem::transmute(previous.sa_sigaction) };
            function(signal);
        }
        // SAFETY: both calls are allowed in a handler. The signal waits until we return, and then ends
        // the process.
        None => unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        },
    }
}

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
