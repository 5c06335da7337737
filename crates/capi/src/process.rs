//! Which process this is: a child has the memory of its parent and none of its threads.
//!
//! The number of a process does not tell: in a PID namespace of its own a child may have that of its
//! parent. A page that the kernel empties in every child does (`MADV_WIPEONFORK`, Linux 4.14), also
//! where a child is made by `clone` itself, of which no library is told. Where the kernel cannot, the
//! number must do.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;

/// A process, unlike its parents and children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    id: u32,
    generation: u32,
}

impl Process {
    /// The calling process.
    pub(crate) fn current() -> Self {
        Self { id: std::process::id(), generation: generation() }
    }
}

/// A number that is larger in a child than in its parent, 0 where the kernel cannot.
///
/// It takes no lock: a thread that held one may be missing in a child.
fn generation() -> u32 {
    let Some(number) = page() else { return 0 };
    match number.load(SeqCst) {
        // The first call in this process.
        0 => {
            let next = NEWEST.fetch_add(1, SeqCst) + 1;
            match number.compare_exchange(0, next, SeqCst, SeqCst) {
                Ok(_) => next,
                // Another thread was faster.
                Err(theirs) => theirs,
            }
        }
        number => number,
    }
}

/// A number in a page of its own, which is 0 in a new process. None: the kernel cannot.
fn page() -> Option<&'static AtomicU32> {
    let mut page = PAGE.load(SeqCst);
    if page.is_null() {
        let mapped = map()?;
        page = match PAGE.compare_exchange(ptr::null_mut(), mapped, SeqCst, SeqCst) {
            Ok(_) => mapped,
            Err(theirs) => {
                // SAFETY: `map` made it, and nothing refers to it.
                let _ = unsafe { munmap(mapped.cast(), page_size()) };
                theirs
            }
        };
    }
    // SAFETY: the page is mapped for good, readable and writable, and only used as this.
    unsafe { page.as_ref() }
}

/// A page that is emptied in a child.
fn map() -> Option<*mut AtomicU32> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, so nothing that is there already is replaced.
    let page =
        unsafe { mmap_anonymous(ptr::null_mut(), page_size(), protection, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: the page was mapped above, and holds nothing.
    if unsafe { madvise(page, page_size(), Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: the page was mapped above, and nothing refers to it.
        let _ = unsafe { munmap(page, page_size()) };
        return None;
    }
    Some(page.cast())
}

static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The number of this process or, before the first call in a child, that of its parent.
static NEWEST: AtomicU32 = AtomicU32::new(0);
