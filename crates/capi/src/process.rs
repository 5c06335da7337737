//! Detects whether a hash is used in a child process, which has the memory of its parent and none
//! of its threads.
//!
//! The process ID is not enough, because a child in its own PID namespace may have the ID of its
//! parent. So a page is used that the kernel clears in every child (on Linux since 4.14, and FreeBSD).
//! This works even if `clone` is called directly, which bypasses the handlers of libraries. If the
//! kernel lacks this feature, only the process ID is compared.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;

/// The identity of a process, which differs from its parents' and children's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    id: u32,
    generation: u32,
}

impl Process {
    /// Returns the identity of the calling process.
    pub(crate) fn current() -> Self {
        Self { id: std::process::id(), generation: generation() }
    }
}

/// Returns a number that is larger in a child than in its parent, or 0 if the kernel lacks the
/// feature.
///
/// Takes no lock, because the thread that holds it may be missing in a child.
fn generation() -> u32 {
    let Some(number) = page() else { return 0 };
    match number.load(SeqCst) {
        // The first call in this process.
        0 => {
            let next = NEWEST.fetch_add(1, SeqCst) + 1;
            match number.compare_exchange(0, next, SeqCst, SeqCst) {
                Ok(_) => next,
                // Another thread was first.
                Err(theirs) => theirs,
            }
        }
        number => number,
    }
}

/// Returns a number in its own page, which is 0 in a new process, or `None` if the kernel lacks the
/// feature.
fn page() -> Option<&'static AtomicU32> {
    let mut page = PAGE.load(SeqCst);
    if page.is_null() {
        let mapped = map()?;
        page = match PAGE.compare_exchange(ptr::null_mut(), mapped, SeqCst, SeqCst) {
            Ok(_) => mapped,
            Err(theirs) => {
                // SAFETY: `map` created it, and nothing refers to it.
                let _ = unsafe { munmap(mapped.cast(), page_size()) };
                theirs
            }
        };
    }
    // SAFETY: the page stays mapped, readable and writable, and is only used for this number.
    unsafe { page.as_ref() }
}

/// Maps a page that is cleared in a child.
fn map() -> Option<*mut AtomicU32> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
    let page =
        unsafe { mmap_anonymous(ptr::null_mut(), page_size(), protection, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: the page was mapped above, and is empty.
    if unsafe { blksys::wipe_on_fork(page, page_size()) }.is_err() {
        // SAFETY: the page was mapped above, and nothing refers to it.
        let _ = unsafe { munmap(page, page_size()) };
        return None;
    }
    Some(page.cast())
}

static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// The number of this process. Before the first call in a child, the number of its parent.
static NEWEST: AtomicU32 = AtomicU32::new(0);
