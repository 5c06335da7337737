//! Callbacks from the library, and the data that they collect.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::functions::LongExtent;
use super::outcome::{ExtentSink, ReadFault, ReadFaultReason};
use crate::storage::nbd::coverage::Coverage;
use crate::storage::nbd::talk::Talk;
use crate::storage::nbd::tracker::Tracker;

/// A request for block status.
pub(in crate::storage::nbd) struct Status<S> {
    tracker: Arc<Tracker>,
    outcome: Mutex<(Option<S>, i32)>,
    is_completed: AtomicBool,
}

impl<S> Status<S> {
    pub(super) fn new(tracker: &Arc<Tracker>, sink: S) -> Self {
        let outcome = Mutex::new((Some(sink), 0));
        Self { tracker: tracker.clone(), outcome, is_completed: AtomicBool::new(false) }
    }

    /// Takes the sink, if it has not been taken yet, and the errno value or 0.
    pub fn take(&self) -> (Option<S>, i32) {
        let mut outcome = self.outcome();
        (outcome.0.take(), outcome.1)
    }

    fn outcome(&self) -> MutexGuard<'_, (Option<S>, i32)> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn complete(&self, errno: i32) {
        if !self.is_completed.swap(true, Ordering::Relaxed) {
            self.outcome().1 = errno;
            self.tracker.complete();
        }
    }
}

/// A request for a list of exports.
pub(in crate::storage::nbd) struct Exports {
    names: Mutex<Vec<Vec<u8>>>,
    limit: usize,
    is_completed: AtomicBool,
}

impl Exports {
    pub(super) fn new(limit: usize) -> Self {
        Self { names: Mutex::new(Vec::new()), limit, is_completed: AtomicBool::new(false) }
    }

    pub fn is_completed(&self) -> bool {
        self.is_completed.load(Ordering::Relaxed)
    }

    /// Returns the names so far, at most one more than the limit.
    pub fn names(&self) -> Vec<Vec<u8>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The requests of one transfer.
pub(super) struct Read {
    tracker: Arc<Tracker>,
    fault: Mutex<Option<ReadFault>>,
}

impl Read {
    pub fn new(tracker: &Arc<Tracker>) -> Self {
        Self { tracker: tracker.clone(), fault: Mutex::new(None) }
    }

    /// Records a failure, if none at a lower offset is.
    fn fail(&self, offset: u64, length: u64, reason: ReadFaultReason) {
        let mut first = self.fault();
        if first.as_ref().is_none_or(|first| offset < first.offset) {
            *first = Some(ReadFault { offset, length, reason });
        }
    }

    /// Returns the failure with the lowest offset so far.
    pub fn fault(&self) -> MutexGuard<'_, Option<ReadFault>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct ReadRequest {
    read: Arc<Read>,
    offset: u64,
    length: usize,
    coverage: Mutex<Coverage>,
    is_completed: AtomicBool,
}

impl ReadRequest {
    /// Creates a request of `read` that is about to be sent.
    pub fn start(read: &Arc<Read>, offset: u64, length: usize) -> Self {
        read.tracker.start();
        Self {
            read: read.clone(),
            offset,
            length,
            coverage: Mutex::new(Coverage::new(offset..offset + length as u64)),
            is_completed: AtomicBool::new(false),
        }
    }

    fn coverage(&self) -> MutexGuard<'_, Coverage> {
        self.coverage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn complete(&self, reason: Option<ReadFaultReason>) {
        if self.is_completed.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(reason) = reason {
            self.read.fail(self.offset, self.length as u64, reason);
        }
        self.read.tracker.complete();
    }
}

/// A request that changes the export.
pub(super) struct WriteRequest {
    read: Arc<Read>,
    offset: u64,
    length: u64,
    is_completed: AtomicBool,
}

impl WriteRequest {
    /// Creates a request that is about to be sent.
    pub fn start(read: &Arc<Read>, offset: u64, length: u64) -> Self {
        read.tracker.start();
        Self { read: read.clone(), offset, length, is_completed: AtomicBool::new(false) }
    }

    pub fn complete(&self, reason: Option<ReadFaultReason>) {
        if self.is_completed.swap(true, Ordering::Relaxed) {
            return;
        }
        let Self { offset, length, .. } = *self;
        match reason {
            None => self.read.tracker.tell(length),
            Some(reason) => self.read.fail(offset, length, reason),
        }
        self.read.tracker.complete();
    }
}

pub(super) unsafe extern "C" fn on_write_completed(data: *mut c_void, error: *mut c_int) -> c_int {
    // SAFETY: `data` is the request that this callback was made with, and it is not freed yet.
    let (request, errno) = unsafe { (&*data.cast::<WriteRequest>(), *error) };
    request.complete((errno != 0).then_some(ReadFaultReason::Errno(errno)));
    RETIRE
}

pub(super) unsafe extern "C" fn on_chunk(
    data: *mut c_void,
    _subbuf: *const c_void,
    count: usize,
    offset: u64,
    status: c_uint,
    error: *mut c_int,
) -> c_int {
    // SAFETY: `data` is the request that this callback was made with, and it is not freed yet.
    let request = unsafe { &*data.cast::<ReadRequest>() };
    if status == READ_ERROR {
        return 0;
    }
    if !request.coverage().add(offset, count as u64) {
        // SAFETY: the library passes a valid pointer.
        unsafe { *error = EPROTO };
        return -1;
    }
    request.read.tracker.tell(count as u64);
    0
}

pub(super) unsafe extern "C" fn on_read_completed(data: *mut c_void, error: *mut c_int) -> c_int {
    // SAFETY: as in `on_chunk`.
    let (request, errno) = unsafe { (&*data.cast::<ReadRequest>(), *error) };
    let fault = request.coverage().fault();
    request.complete(match (errno, fault) {
        (0, None) => None,
        // The invalid reply caused the error, or there was none.
        (0 | EPROTO, Some(fault)) => Some(ReadFaultReason::Malformed(fault)),
        (errno, _) => Some(ReadFaultReason::Errno(errno)),
    });
    RETIRE
}

pub(super) unsafe extern "C" fn on_extents<S: ExtentSink>(
    data: *mut c_void,
    context: *const c_char,
    offset: u64,
    entries: *mut u32,
    count: usize,
    _error: *mut c_int,
) -> c_int {
    // SAFETY: `data` is the request that this callback was made with, and it is not freed yet. The
    // context is a C string, and there are `count` numbers.
    let (status, context, entries) =
        unsafe { (&*data.cast::<Status<S>>(), CStr::from_ptr(context), slice(entries, count)) };
    let mut pairs =
        entries.as_chunks().0.iter().map(|[length, flags]| (u64::from(*length), u64::from(*flags)));
    if let Some(sink) = &mut status.outcome().0 {
        status.tracker.tell(sink.extents(context.to_bytes(), offset, &mut pairs));
    }
    0
}

pub(super) unsafe extern "C" fn on_extents_64<S: ExtentSink>(
    data: *mut c_void,
    context: *const c_char,
    offset: u64,
    entries: *mut LongExtent,
    count: usize,
    _error: *mut c_int,
) -> c_int {
    // SAFETY: as in `on_extents`, with `count` pairs.
    let (status, context, entries) =
        unsafe { (&*data.cast::<Status<S>>(), CStr::from_ptr(context), slice(entries, count)) };
    let mut pairs = entries.iter().map(|entry| (entry.length, entry.flags));
    if let Some(sink) = &mut status.outcome().0 {
        status.tracker.tell(sink.extents(context.to_bytes(), offset, &mut pairs));
    }
    0
}

pub(super) unsafe extern "C" fn on_status_completed<S>(
    data: *mut c_void,
    error: *mut c_int,
) -> c_int {
    // SAFETY: as in `on_chunk`.
    unsafe { (*data.cast::<Status<S>>()).complete(*error) };
    RETIRE
}

pub(super) unsafe extern "C" fn on_export(
    data: *mut c_void,
    name: *const c_char,
    _description: *const c_char,
) -> c_int {
    // SAFETY: `data` is the list that this callback was made with, and the name is a C string.
    let (exports, name) = unsafe { (&*data.cast::<Exports>(), CStr::from_ptr(name)) };
    let mut names = exports.names.lock().unwrap_or_else(PoisonError::into_inner);
    if names.len() <= exports.limit {
        names.push(name.to_bytes().to_owned());
    }
    0
}

pub(super) unsafe extern "C" fn on_list_completed(data: *mut c_void, _error: *mut c_int) -> c_int {
    // SAFETY: as in `on_export`.
    unsafe { (*data.cast::<Exports>()).is_completed.store(true, Ordering::Relaxed) };
    RETIRE
}

pub(super) unsafe extern "C" fn on_debug(
    data: *mut c_void,
    _context: *const c_char,
    _message: *const c_char,
) -> c_int {
    // SAFETY: `data` is the `Talk` that this callback was made with, and it is not freed yet.
    unsafe { (*data.cast::<Talk>()).step() };
    0
}

/// Returns `count` items, or none for a null pointer.
///
/// # Safety
///
/// `items` is null or points to `count` items that live as long as the result.
unsafe fn slice<'a, T>(items: *const T, count: usize) -> &'a [T] {
    if items.is_null() {
        return &[];
    }
    // SAFETY: as promised by the caller.
    unsafe { std::slice::from_raw_parts(items, count) }
}

/// `LIBNBD_READ_ERROR` in libnbd.h.
const READ_ERROR: c_uint = 3;

/// Return value of a completion callback that retires the request.
const RETIRE: c_int = 1;

const EPROTO: c_int = rustix::io::Errno::PROTO.raw_os_error();
