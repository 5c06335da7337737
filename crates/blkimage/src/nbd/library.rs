//! libnbd, opened at run time: everything about NBD that is unsafe.
//!
//! `libnbd.so.0` is looked for when the first URI is opened, so that neither building nor anything
//! else needs it. [`Handle`] is a connection with the library's own lock around it: every method may
//! be called by any thread. What the library calls back are plain functions over reference counts,
//! which take no lock that is ever held across a call of the library, and which Rust stops from
//! unwinding into C.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::coverage::Coverage;
use super::tracker::Tracker;
use crate::error::excerpt;

/// What the library says of a failure.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// 0 if there is none.
    pub errno: i32,
    pub text: String,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    /// The server answers options; only with [`Handle::set_option_mode`].
    Negotiating,
    /// Requests can be sent.
    Ready,
    /// Nothing is in flight, nothing can be sent: every request was completed.
    Dead,
}

/// What the library waits for on its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub read: bool,
    pub write: bool,
}

/// A limit that the server has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockSize {
    Minimum = 0,
    Preferred = 1,
    Maximum = 2,
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    Disable = 0,
    Require = 2,
}

/// How a read is cut into requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub request_size: usize,
    /// The most requests in flight, at least 2.
    pub depth: usize,
}

/// Why a read failed: the first of its requests that did.
#[derive(Clone, Debug)]
pub(super) struct ReadFault {
    pub offset: u64,
    pub length: usize,
    pub reason: ReadFaultReason,
}

#[derive(Clone, Debug)]
pub(super) enum ReadFaultReason {
    /// The server's error, or that of the connection.
    Errno(i32),
    /// What is wrong with the answer.
    Malformed(&'static str),
    /// The library did not take the request.
    Refused(Fault),
}

/// Takes what the server says about extents: the context, the first byte, lengths and flags.
pub(super) trait ExtentSink: Send {
    fn extents(
        &mut self,
        context: &[u8],
        offset: u64,
        entries: &mut dyn Iterator<Item = (u64, u64)>,
    );
}

/// A connection to a server.
pub(super) struct Handle {
    raw: NonNull<RawHandle>,
    functions: &'static Functions,
}

// SAFETY: libnbd locks the handle in each call ("handles are thread safe", libnbd(3)).
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is ours alone, and nothing uses it after this.
        unsafe { (self.functions.nbd_close)(self.raw.as_ptr()) }
    }
}

impl Handle {
    /// A handle that is not connected. The error says what to install.
    pub fn new() -> Result<Self, String> {
        let functions = library()?;
        // SAFETY: no arguments.
        let raw = unsafe { (functions.nbd_create)() };
        let raw = NonNull::new(raw).ok_or_else(|| last_error(functions).text)?;
        let handle = Self { raw, functions };
        if let Some(nbd_set_pread_initialize) = functions.nbd_set_pread_initialize {
            // The buffers are initialised, and what is not filled is found out.
            // SAFETY: the handle is live.
            let _ = unsafe { nbd_set_pread_initialize(handle.raw(), false) };
        }
        Ok(handle)
    }

    pub fn set_tls(&self, tls: Tls) -> Result<(), Fault> {
        // SAFETY: the handle is live.
        self.check(unsafe { (self.functions.nbd_set_tls)(self.raw(), tls as c_int) })
    }

    pub fn set_tls_certificates(&self, folder: &CStr) -> Result<(), Fault> {
        let set = self.functions.nbd_set_tls_certificates;
        // SAFETY: the handle is live, and the library copies the string.
        self.check(unsafe { set(self.raw(), folder.as_ptr()) })
    }

    pub fn allow_local_files(&self, allow: bool) -> Result<(), Fault> {
        // SAFETY: the handle is live.
        self.check(unsafe { (self.functions.nbd_set_uri_allow_local_file)(self.raw(), allow) })
    }

    /// Lets requests end where the export ends, wherever that is.
    pub fn allow_unaligned(&self) {
        if let (Some(get), Some(set)) =
            (self.functions.nbd_get_strict_mode, self.functions.nbd_set_strict_mode)
        {
            // SAFETY: the handle is live.
            let _ = unsafe { set(self.raw(), get(self.raw()) & !STRICT_ALIGN) };
        }
    }

    pub fn add_meta_context(&self, name: &CStr) -> Result<(), Fault> {
        // SAFETY: the handle is live, and the library copies the string.
        self.check(unsafe { (self.functions.nbd_add_meta_context)(self.raw(), name.as_ptr()) })
    }

    /// Stops before an export is chosen.
    pub fn set_option_mode(&self) -> Result<(), Fault> {
        // SAFETY: the handle is live.
        self.check(unsafe { (self.functions.nbd_set_opt_mode)(self.raw(), true) })
    }

    /// Starts connecting. Looks up the host's name, and waits for the answer.
    pub fn connect_uri(&self, uri: &CStr) -> Result<(), Fault> {
        // SAFETY: the handle is live, and the library copies the string.
        self.check(unsafe { (self.functions.nbd_aio_connect_uri)(self.raw(), uri.as_ptr()) })
    }

    /// Starts talking to the server at the other end of `socket`.
    pub fn connect_socket(&self, socket: OwnedFd) -> Result<(), Fault> {
        let connect = self.functions.nbd_aio_connect_socket;
        // SAFETY: the handle is live, and the descriptor is the library's from here on.
        self.check(unsafe { connect(self.raw(), socket.into_raw_fd()) })
    }

    pub fn state(&self) -> State {
        let is = |function: Test| {
            // SAFETY: the handle is live.
            unsafe { function(self.raw()) == 1 }
        };
        let functions = self.functions;
        if is(functions.nbd_aio_is_ready) || is(functions.nbd_aio_is_processing) {
            State::Ready
        } else if is(functions.nbd_aio_is_dead) || is(functions.nbd_aio_is_closed) {
            State::Dead
        } else if is(functions.nbd_aio_is_negotiating) {
            State::Negotiating
        } else {
            State::Connecting
        }
    }

    pub fn direction(&self) -> Direction {
        // SAFETY: the handle is live.
        let bits = unsafe { (self.functions.nbd_aio_get_direction)(self.raw()) };
        Direction { read: bits & 1 != 0, write: bits & 2 != 0 }
    }

    /// The socket of the connection, as another descriptor; None if there is none yet or any more.
    ///
    /// Exclusive, since the library closes its descriptor when a connection fails.
    pub fn socket(&mut self) -> Option<OwnedFd> {
        // SAFETY: the handle is live.
        let fd = unsafe { (self.functions.nbd_aio_get_fd)(self.raw()) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor is open: only calls on the handle close it, and it is ours alone.
        unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().ok()
    }

    /// Lets the library read from its socket. Completes requests.
    pub fn notify_read(&self) -> Result<(), Fault> {
        // SAFETY: the handle is live; buffers of requests are valid until those complete.
        self.check(unsafe { (self.functions.nbd_aio_notify_read)(self.raw()) })
    }

    /// Lets the library write to its socket.
    pub fn notify_write(&self) -> Result<(), Fault> {
        // SAFETY: as for `notify_read`.
        self.check(unsafe { (self.functions.nbd_aio_notify_write)(self.raw()) })
    }

    /// Tells the server, as far as its socket takes it at once, that nothing will follow.
    pub fn disconnect(&self) {
        // SAFETY: the handle is live.
        let _ = unsafe { (self.functions.nbd_aio_disconnect)(self.raw(), 0) };
    }

    /// Size of the export. A negative number stands for more than there can be.
    pub fn size(&self) -> Result<i64, Fault> {
        // SAFETY: the handle is live.
        let size = unsafe { (self.functions.nbd_get_size)(self.raw()) };
        if size == -1 { Err(self.last_error()) } else { Ok(size) }
    }

    /// None if the server or the library does not say.
    pub fn block_size(&self, which: BlockSize) -> Option<u64> {
        let nbd_get_block_size = self.functions.nbd_get_block_size?;
        // SAFETY: the handle is live.
        let size = unsafe { nbd_get_block_size(self.raw(), which as c_int) };
        u64::try_from(size).ok().filter(|size| *size > 0)
    }

    pub fn can_multi_conn(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { (self.functions.nbd_can_multi_conn)(self.raw()) == 1 }
    }

    pub fn can_meta_context(&self, name: &CStr) -> bool {
        // SAFETY: the handle is live, and the string is not kept.
        unsafe { (self.functions.nbd_can_meta_context)(self.raw(), name.as_ptr()) == 1 }
    }

    pub fn is_encrypted(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { (self.functions.nbd_get_tls_negotiated)(self.raw()) == 1 }
    }

    /// Whether block status may be asked for more than 32 bits can say.
    pub fn has_long_status(&self) -> bool {
        let functions = self.functions;
        functions.nbd_aio_block_status_64.is_some()
            && functions.nbd_get_extended_headers_negotiated.is_some_and(|negotiated| {
                // SAFETY: the handle is live.
                unsafe { negotiated(self.raw()) == 1 }
            })
    }

    /// Reads into `buf` in several requests.
    ///
    /// `wait` is called whenever this has to wait; it lets the library work, or waits for another
    /// thread that does, until [`Tracker::is_reached`] of `tracker`, which is this read's alone.
    pub fn read(
        &self,
        buf: &mut [u8],
        offset: u64,
        cut: Cut,
        tracker: &Arc<Tracker>,
        mut wait: impl FnMut(),
    ) -> Result<(), ReadFault> {
        // However this ends, the library has done with `buf` then.
        let _lent = Lent(tracker);
        let read = Arc::new(Read { tracker: tracker.clone(), fault: Mutex::new(None) });
        let mut position = offset;
        for part in buf.chunks_mut(cut.request_size) {
            if read.lock().is_some() {
                break;
            }
            while tracker.pending() >= cut.depth {
                tracker.wait_until(cut.depth / 2);
                wait();
            }
            self.start_read(part, position, &read);
            position += part.len() as u64;
        }
        tracker.wait_until(0);
        while tracker.pending() > 0 {
            wait();
        }
        let fault = read.lock().take();
        fault.map_or(Ok(()), Err)
    }

    /// Starts one request of `read`, whose caller does not return before it is completed.
    fn start_read(&self, buf: &mut [u8], offset: u64, read: &Arc<Read>) {
        let request = Arc::new(ReadRequest {
            read: read.clone(),
            offset,
            length: buf.len(),
            coverage: Mutex::new(Coverage::new(offset..offset + buf.len() as u64)),
            is_completed: AtomicBool::new(false),
        });
        read.tracker.start();
        // SAFETY: the handle is live. `buf` is borrowed for longer than `Handle::read` runs, which
        // waits until this request is completed; the library does not touch the buffer after that.
        // Each callback owns a reference count of the request that its `free` gives back.
        let cookie = unsafe {
            (self.functions.nbd_aio_pread_structured)(
                self.raw(),
                buf.as_mut_ptr().cast(),
                buf.len(),
                offset,
                Callback::new(on_chunk, &request),
                Callback::new(on_read_completed, &request),
                0,
            )
        };
        if cookie == -1 {
            request.complete(Some(ReadFaultReason::Refused(self.last_error())));
        }
    }

    /// Asks for extents. They come to `sink`, and the error, if there is one, to what is returned,
    /// before `tracker` counts it as completed.
    pub fn block_status<S: ExtentSink + 'static>(
        &self,
        length: u64,
        offset: u64,
        tracker: &Arc<Tracker>,
        sink: S,
    ) -> Result<Arc<Status<S>>, Fault> {
        let status = Arc::new(Status {
            tracker: tracker.clone(),
            outcome: Mutex::new((Some(sink), 0)),
            is_completed: AtomicBool::new(false),
        });
        tracker.start();
        let completed = Callback::<OnCompletion>::new(on_status_completed::<S>, &status);
        let cookie = match self.functions.nbd_aio_block_status_64 {
            Some(nbd_aio_block_status_64) => {
                let extents = Callback::<OnExtents<_>>::new(on_extents_64::<S>, &status);
                // SAFETY: the handle is live, and each callback owns a reference count that its
                // `free` gives back.
                unsafe {
                    nbd_aio_block_status_64(self.raw(), length, offset, extents, completed, 0)
                }
            }
            None => {
                let extents = Callback::<OnExtents<_>>::new(on_extents::<S>, &status);
                // SAFETY: as above.
                unsafe {
                    (self.functions.nbd_aio_block_status)(
                        self.raw(),
                        length,
                        offset,
                        extents,
                        completed,
                        0,
                    )
                }
            }
        };
        if cookie == -1 {
            let fault = self.last_error();
            status.complete(fault.errno);
            return Err(fault);
        }
        Ok(status)
    }

    /// Asks for the names of the exports, of which at most `limit` are kept.
    pub fn list_exports(&self, limit: usize) -> Result<Arc<Exports>, Fault> {
        let exports = Arc::new(Exports {
            names: Mutex::new(Vec::new()),
            limit,
            is_completed: AtomicBool::new(false),
        });
        // SAFETY: the handle is live, and each callback owns a reference count that its `free`
        // gives back.
        let result = unsafe {
            (self.functions.nbd_aio_opt_list)(
                self.raw(),
                Callback::new(on_export, &exports),
                Callback::new(on_list_completed, &exports),
            )
        };
        self.check(result).map(|()| exports)
    }

    fn raw(&self) -> *mut RawHandle {
        self.raw.as_ptr()
    }

    fn check(&self, result: c_int) -> Result<(), Fault> {
        if result == -1 { Err(self.last_error()) } else { Ok(()) }
    }

    fn last_error(&self) -> Fault {
        last_error(self.functions)
    }
}

/// Block status that was asked for.
pub(super) struct Status<S> {
    tracker: Arc<Tracker>,
    outcome: Mutex<(Option<S>, i32)>,
    is_completed: AtomicBool,
}

impl<S> Status<S> {
    /// The sink, if nobody has taken it yet, and the errno value or 0.
    pub fn take(&self) -> (Option<S>, i32) {
        let mut outcome = self.outcome();
        (outcome.0.take(), outcome.1)
    }

    fn outcome(&self) -> MutexGuard<'_, (Option<S>, i32)> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, errno: i32) {
        if !self.is_completed.swap(true, Ordering::Relaxed) {
            self.outcome().1 = errno;
            self.tracker.complete();
        }
    }
}

/// A list of exports that was asked for.
pub(super) struct Exports {
    names: Mutex<Vec<Vec<u8>>>,
    limit: usize,
    is_completed: AtomicBool,
}

impl Exports {
    pub fn is_completed(&self) -> bool {
        self.is_completed.load(Ordering::Relaxed)
    }

    /// The names so far, one more than the limit if there are more.
    pub fn names(&self) -> Vec<Vec<u8>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The requests of one read.
struct Read {
    tracker: Arc<Tracker>,
    fault: Mutex<Option<ReadFault>>,
}

impl Read {
    fn lock(&self) -> MutexGuard<'_, Option<ReadFault>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ReadRequest {
    read: Arc<Read>,
    offset: u64,
    length: usize,
    coverage: Mutex<Coverage>,
    is_completed: AtomicBool,
}

impl ReadRequest {
    fn coverage(&self) -> MutexGuard<'_, Coverage> {
        self.coverage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, reason: Option<ReadFaultReason>) {
        if self.is_completed.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(reason) = reason {
            let mut first = self.read.lock();
            if first.as_ref().is_none_or(|first| self.offset < first.offset) {
                *first = Some(ReadFault { offset: self.offset, length: self.length, reason });
            }
        }
        self.read.tracker.complete();
    }
}

/// A buffer that the library may write to as long as requests are pending.
struct Lent<'a>(&'a Tracker);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // Only a panic leads here early. The buffer's owner must not get it back.
        if self.0.pending() > 0 {
            std::process::abort();
        }
    }
}

unsafe extern "C" fn on_chunk(
    data: *mut c_void,
    _subbuf: *const c_void,
    count: usize,
    offset: u64,
    status: c_uint,
    error: *mut c_int,
) -> c_int {
    // SAFETY: `data` is the request that this callback was made with, and it is not freed yet.
    let request = unsafe { &*data.cast::<ReadRequest>() };
    if status != READ_ERROR && !request.coverage().add(offset, count as u64) {
        // SAFETY: the library passes a valid pointer.
        unsafe { *error = EPROTO };
        return -1;
    }
    0
}

unsafe extern "C" fn on_read_completed(data: *mut c_void, error: *mut c_int) -> c_int {
    // SAFETY: as in `on_chunk`.
    let (request, errno) = unsafe { (&*data.cast::<ReadRequest>(), *error) };
    let fault = request.coverage().fault();
    request.complete(match (errno, fault) {
        (0, None) => None,
        // The answer made the error, or there was none.
        (0 | EPROTO, Some(fault)) => Some(ReadFaultReason::Malformed(fault)),
        (errno, _) => Some(ReadFaultReason::Errno(errno)),
    });
    RETIRE
}

unsafe extern "C" fn on_extents<S: ExtentSink>(
    data: *mut c_void,
    context: *const c_char,
    offset: u64,
    entries: *mut u32,
    count: usize,
    _error: *mut c_int,
) -> c_int {
    // SAFETY: `data` is the request that this callback was made with, and it is not freed yet;
    // the context is a C string, and there are `count` numbers.
    let (status, context, entries) =
        unsafe { (&*data.cast::<Status<S>>(), CStr::from_ptr(context), slice(entries, count)) };
    let mut pairs =
        entries.as_chunks().0.iter().map(|[length, flags]| (u64::from(*length), u64::from(*flags)));
    if let Some(sink) = &mut status.outcome().0 {
        sink.extents(context.to_bytes(), offset, &mut pairs);
    }
    0
}

unsafe extern "C" fn on_extents_64<S: ExtentSink>(
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
        sink.extents(context.to_bytes(), offset, &mut pairs);
    }
    0
}

unsafe extern "C" fn on_status_completed<S>(data: *mut c_void, error: *mut c_int) -> c_int {
    // SAFETY: as in `on_chunk`.
    unsafe { (*data.cast::<Status<S>>()).complete(*error) };
    RETIRE
}

unsafe extern "C" fn on_export(
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

unsafe extern "C" fn on_list_completed(data: *mut c_void, _error: *mut c_int) -> c_int {
    // SAFETY: as in `on_export`.
    unsafe { (*data.cast::<Exports>()).is_completed.store(true, Ordering::Relaxed) };
    RETIRE
}

/// Gives back the reference count of a callback.
unsafe extern "C" fn release<T>(data: *mut c_void) {
    // SAFETY: `data` came from `Arc::into_raw` of this type, and the library frees it once.
    drop(unsafe { Arc::from_raw(data.cast::<T>().cast_const()) });
}

/// `count` items, or none where a null pointer says so.
///
/// # Safety
///
/// A pointer that is not null leads to so many items, which live as long as the result.
unsafe fn slice<'a, T>(items: *const T, count: usize) -> &'a [T] {
    if items.is_null() {
        return &[];
    }
    // SAFETY: as promised by the caller.
    unsafe { std::slice::from_raw_parts(items, count) }
}

/// A callback as libnbd.h has it, passed by value.
#[repr(C)]
struct Callback<F> {
    callback: Option<F>,
    data: *mut c_void,
    free: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl<F> Callback<F> {
    /// A callback that owns a reference count of `data`.
    fn new<T>(callback: F, data: &Arc<T>) -> Self {
        let data = Arc::into_raw(data.clone()).cast_mut().cast();
        Self { callback: Some(callback), data, free: Some(release::<T>) }
    }
}

/// `nbd_extent` of libnbd.h.
#[repr(C)]
struct LongExtent {
    length: u64,
    flags: u64,
}

/// `struct nbd_handle` of libnbd.h, which nobody looks into.
#[repr(C)]
struct RawHandle {
    _private: [u8; 0],
}

type Test = unsafe extern "C" fn(*mut RawHandle) -> c_int;

type OnCompletion = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;

type OnChunk =
    unsafe extern "C" fn(*mut c_void, *const c_void, usize, u64, c_uint, *mut c_int) -> c_int;

type OnExtents<T> =
    unsafe extern "C" fn(*mut c_void, *const c_char, u64, *mut T, usize, *mut c_int) -> c_int;

type OnExport = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int;

/// Makes a struct of the library's functions out of their prototypes.
macro_rules! functions {
    (
        required { $($name:ident($($arg:ty),*) $(-> $result:ty)?;)* }
        optional { $($extra:ident($($extra_arg:ty),*) $(-> $extra_result:ty)?;)* }
    ) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
            $($extra: Option<unsafe extern "C" fn($($extra_arg),*) $(-> $extra_result)?>,)*
        }

        impl Functions {
            /// # Safety
            ///
            /// `library` is libnbd, whose header has these prototypes, and is never closed.
            unsafe fn find(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: as promised by the caller.
                    $($name: *unsafe { library.get(stringify!($name)) }?,)*
                    // SAFETY: as promised by the caller.
                    $($extra: unsafe { library.get(stringify!($extra)) }.ok().map(|found| *found),)*
                })
            }
        }
    };
}

functions! {
    required {
        nbd_create() -> *mut RawHandle;
        nbd_close(*mut RawHandle);
        nbd_get_error() -> *const c_char;
        nbd_get_errno() -> c_int;
        nbd_set_tls(*mut RawHandle, c_int) -> c_int;
        nbd_set_tls_certificates(*mut RawHandle, *const c_char) -> c_int;
        nbd_get_tls_negotiated(*mut RawHandle) -> c_int;
        nbd_set_uri_allow_local_file(*mut RawHandle, bool) -> c_int;
        nbd_set_opt_mode(*mut RawHandle, bool) -> c_int;
        nbd_add_meta_context(*mut RawHandle, *const c_char) -> c_int;
        nbd_can_meta_context(*mut RawHandle, *const c_char) -> c_int;
        nbd_can_multi_conn(*mut RawHandle) -> c_int;
        nbd_get_size(*mut RawHandle) -> i64;
        nbd_aio_connect_uri(*mut RawHandle, *const c_char) -> c_int;
        nbd_aio_connect_socket(*mut RawHandle, c_int) -> c_int;
        nbd_aio_disconnect(*mut RawHandle, u32) -> c_int;
        nbd_aio_opt_list(*mut RawHandle, Callback<OnExport>, Callback<OnCompletion>) -> c_int;
        nbd_aio_pread_structured(
            *mut RawHandle, *mut c_void, usize, u64, Callback<OnChunk>, Callback<OnCompletion>, u32
        ) -> i64;
        nbd_aio_block_status(
            *mut RawHandle, u64, u64, Callback<OnExtents<u32>>, Callback<OnCompletion>, u32
        ) -> i64;
        nbd_aio_get_fd(*mut RawHandle) -> c_int;
        nbd_aio_get_direction(*mut RawHandle) -> c_uint;
        nbd_aio_notify_read(*mut RawHandle) -> c_int;
        nbd_aio_notify_write(*mut RawHandle) -> c_int;
        nbd_aio_is_negotiating(*mut RawHandle) -> c_int;
        nbd_aio_is_ready(*mut RawHandle) -> c_int;
        nbd_aio_is_processing(*mut RawHandle) -> c_int;
        nbd_aio_is_dead(*mut RawHandle) -> c_int;
        nbd_aio_is_closed(*mut RawHandle) -> c_int;
    }
    optional {
        nbd_get_block_size(*mut RawHandle, c_int) -> i64;
        nbd_set_pread_initialize(*mut RawHandle, bool) -> c_int;
        nbd_get_strict_mode(*mut RawHandle) -> u32;
        nbd_set_strict_mode(*mut RawHandle, u32) -> c_int;
        nbd_get_extended_headers_negotiated(*mut RawHandle) -> c_int;
        nbd_aio_block_status_64(
            *mut RawHandle, u64, u64, Callback<OnExtents<LongExtent>>, Callback<OnCompletion>, u32
        ) -> i64;
    }
}

/// The library, or why there is none.
fn library() -> Result<&'static Functions, String> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    let found = FUNCTIONS.get_or_init(|| {
        // SAFETY: libnbd's initialisers do nothing but prepare a key for thread-local data.
        let library = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|_| format!("needs {LIBRARY}, which cannot be loaded: {INSTALL}"))?;
        // SAFETY: the name is that of libnbd's stable interface, and the library is leaked below.
        let functions = unsafe { Functions::find(&library) }
            .map_err(|_| format!("needs a newer {LIBRARY} than is installed: {INSTALL}"))?;
        std::mem::forget(library);
        Ok(functions)
    });
    found.as_ref().map_err(Clone::clone)
}

/// What the library says of the last call of this thread.
fn last_error(functions: &Functions) -> Fault {
    // SAFETY: no arguments.
    let (text, errno) = unsafe { ((functions.nbd_get_error)(), (functions.nbd_get_errno)()) };
    if text.is_null() {
        return Fault { errno, text: "unknown error".into() };
    }
    // SAFETY: a C string, valid until the next call by this thread.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    // "nbd_connect_uri: connect: Connection refused" says in front which function it was.
    let is_function = |name: &[u8]| name.starts_with(b"nbd_") && !name.contains(&b' ');
    let text = match text.windows(2).position(|pair| pair == b": ") {
        Some(colon) if is_function(&text[..colon]) => &text[colon + 2..],
        _ => text,
    };
    Fault { errno, text: excerpt(text) }
}

const LIBRARY: &str = "libnbd.so.0";

const INSTALL: &str = "install libnbd0 (Debian, Ubuntu) or libnbd (Fedora)";

/// `LIBNBD_READ_ERROR` of libnbd.h.
const READ_ERROR: c_uint = 3;

/// `LIBNBD_STRICT_ALIGN` of libnbd.h.
const STRICT_ALIGN: u32 = 0x10;

/// What a completion callback returns for the request to be forgotten.
const RETIRE: c_int = 1;

const EPROTO: c_int = rustix::io::Errno::PROTO.raw_os_error();
