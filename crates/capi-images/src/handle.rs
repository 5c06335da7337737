//! Objects that C holds. A use of one that was freed, or that is of another type, is an error.
//!
//! A pointer of C leads to a cell, whose memory is never returned to the allocator, so that it can be read after the object
//! was freed. A cell is used again only after many others. The value is counted: a thread that uses it while another one
//! frees the object keeps it.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use crate::failure::{Failure, Kind};
use crate::process::Process;

/// A type of objects. It is the type to which the pointer points for the compiler, and has no values.
pub(crate) trait Handle: Sized {
    /// The value of an object.
    type Value: Send + Sync + 'static;

    /// Identifies the type in a cell. Not 0.
    const TAG: u32;

    /// Names an object for messages.
    const NOUN: &'static str;
}

/// What a pointer of C leads to.
struct Cell {
    /// The type of the object, or 0 if it was freed.
    tag: AtomicU32,
    /// A child does not lock it, because the thread that holds the lock may be missing there.
    value: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    /// The process of all objects that the cell ever has.
    process: Process,
}

/// The cells of freed objects.
struct Pool {
    free: Mutex<VecDeque<&'static Cell>>,
    process: Process,
}

/// Creates an object that C owns.
pub(crate) fn create<H: Handle>(value: H::Value) -> *mut H {
    let cell = Pool::current().take();
    *cell.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(value));
    cell.tag.store(H::TAG, SeqCst);
    ptr::from_ref(cell).cast_mut().cast()
}

/// Returns the value of an object.
///
/// # Safety
///
/// `handle` is null or came from [`create`], of any type.
pub(crate) unsafe fn value<H: Handle>(handle: *const H) -> Result<Arc<H::Value>, Failure> {
    // SAFETY: the caller's promise; cells are never freed.
    let cell = unsafe { handle.cast::<Cell>().as_ref() };
    let cell = cell.ok_or_else(|| Failure::argument(format!("the {} is NULL", H::NOUN)))?;
    let not = || Failure::argument(format!("this is no {}, or it was freed", H::NOUN));
    if cell.process != Process::current() {
        let message = format!("this {} belongs to the process that created it", H::NOUN);
        return Err(Failure::new(Kind::Fork, message));
    }
    if cell.tag.load(SeqCst) != H::TAG {
        return Err(not());
    }
    let value = cell.value.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // Another thread may have freed the object just now.
    value.and_then(|value| value.downcast().ok()).ok_or_else(not)
}

/// Frees an object. Does nothing if it was freed, is of another type or belongs to another process.
///
/// # Safety
///
/// `handle` is null or came from [`create`], of any type.
pub(crate) unsafe fn free<H: Handle>(handle: *mut H) {
    // SAFETY: the caller's promise; cells are never freed.
    let Some(cell) = (unsafe { handle.cast::<Cell>().as_ref() }) else { return };
    if cell.process != Process::current()
        || cell.tag.compare_exchange(H::TAG, 0, SeqCst, SeqCst).is_err()
    {
        return;
    }
    let value = cell.value.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A panic here would be a bug, of which C can be told nothing.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    Pool::current().give(cell);
}

impl Pool {
    /// Returns the pool of this process. A child has its own, because a thread of its parent may hold the lock.
    fn current() -> &'static Self {
        static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());
        let process = Process::current();
        loop {
            let known = POOL.load(SeqCst);
            // SAFETY: pools are never freed.
            if let Some(pool) = unsafe { known.as_ref() }.filter(|pool| pool.process == process) {
                return pool;
            }
            let new = Box::into_raw(Box::new(Self { free: Mutex::default(), process }));
            if POOL.compare_exchange(known, new, SeqCst, SeqCst).is_err() {
                // SAFETY: nothing else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    fn take(&self) -> &'static Cell {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() >= QUARANTINE
            && let Some(cell) = free.pop_front()
        {
            return cell;
        }
        let (tag, value) = (AtomicU32::new(0), Mutex::new(None));
        Box::leak(Box::new(Cell { tag, value, process: self.process }))
    }

    fn give(&self, cell: &'static Cell) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push_back(cell);
    }
}

/// Freed objects whose use is noticed for certain.
const QUARANTINE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl Handle for One {
        type Value = u32;
        const TAG: u32 = 1;
        const NOUN: &'static str = "one";
    }

    struct Other;

    impl Handle for Other {
        type Value = String;
        const TAG: u32 = 2;
        const NOUN: &'static str = "other";
    }

    fn get<H: Handle>(handle: *const H) -> Result<Arc<H::Value>, Kind> {
        // SAFETY: these tests pass what `create` returned.
        unsafe { value(handle) }.map_err(|failure| failure.kind)
    }

    #[test]
    fn freed_objects_and_other_types_are_noticed() {
        let one = create::<One>(7);
        assert_eq!(get(one).as_deref(), Ok(&7));
        assert_eq!(get(one.cast::<Other>()), Err(Kind::Argument));
        assert_eq!(get(ptr::null::<One>()), Err(Kind::Argument));
        // SAFETY: `one` came from `create`.
        unsafe { free(one.cast::<Other>()) };
        assert_eq!(get(one).as_deref(), Ok(&7));
        let held = get(one).unwrap();
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { free(one) };
            assert_eq!(get(one), Err(Kind::Argument));
        }
        assert_eq!(*held, 7);
    }

    #[test]
    fn memory_is_used_again_after_many_objects() {
        let mut seen = std::collections::HashSet::new();
        for index in 0..3 * QUARANTINE {
            let object = create::<One>(index as u32);
            seen.insert(object);
            // SAFETY: `object` came from `create`.
            unsafe { free(object) };
        }
        assert!(seen.len() <= QUARANTINE + 8, "{}", seen.len());
    }
}
