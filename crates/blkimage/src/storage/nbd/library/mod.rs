//! libnbd, loaded at run time. Contains all unsafe code for NBD.
//!
//! `libnbd.so.0` is loaded when the first URI is opened, so that neither the build nor other commands
//! need it. [`Handle`] is a connection, which the library protects by its own lock. Any thread may call
//! any method. The callbacks are plain functions over reference counts. They take no lock that is held
//! across a call of the library, and Rust aborts if one of them would unwind into C.
#![allow(unsafe_code)]

mod callbacks;
mod functions;
mod outcome;

use std::ffi::{CStr, c_int};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use self::callbacks::{
    Exports, Read, ReadRequest, Status, WriteRequest, on_chunk, on_debug, on_export, on_extents,
    on_extents_64, on_list_completed, on_read_completed, on_status_completed, on_write_completed,
};
use self::functions::{
    Callback, Functions, OnCompletion, OnDebug, OnExtents, RawHandle, Test, last_error, library,
};
pub(super) use self::outcome::{ExtentSink, Fault, ReadFault, ReadFaultReason, errno_text};
use super::talk::Talk;
use super::tracker::Tracker;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    /// Options can be sent. Only with [`Handle::set_option_mode`].
    Negotiating,
    /// Requests can be sent.
    Ready,
    /// Nothing can be sent, and every request was completed.
    Dead,
}

/// The events on its socket that the library waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub read: bool,
    pub write: bool,
}

/// A block size that the server announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockSize {
    Minimum = 0,
    Preferred = 1,
    Maximum = 2,
}

/// The encryption of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    Disable = 0,
    Require = 2,
}

/// The division of a read into requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub request_size: usize,
    /// Maximum number of requests in flight, at least 2.
    pub depth: usize,
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
        // SAFETY: this is the only owner of the handle, and nothing uses it after this.
        unsafe { (self.functions.nbd_close)(self.raw.as_ptr()) }
    }
}

impl Handle {
    /// Creates a handle that is not connected. If the library is missing, the error says what to install.
    pub fn new() -> Result<Self, String> {
        let functions = library()?;
        // SAFETY: no arguments.
        let raw = unsafe { (functions.nbd_create)() };
        let raw = NonNull::new(raw)
            .ok_or_else(|| last_error(functions).unwrap_or_else(Fault::unknown).text)?;
        let handle = Self { raw, functions };
        if let Some(nbd_set_pread_initialize) = functions.nbd_set_pread_initialize {
            // The buffers are initialised, and bytes that are not filled are detected.
            // SAFETY: the handle is live.
            let _ = unsafe { nbd_set_pread_initialize(handle.raw(), false) };
        }
        Ok(handle)
    }

    /// Returns the version of the library. Usually three numbers, but a distribution may change it.
    pub fn version(&self) -> String {
        // SAFETY: the handle is live, and the C string is static.
        let version = unsafe { (self.functions.nbd_get_version)(self.raw()) };
        if version.is_null() {
            return String::new();
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
    }

    /// Reports the library's steps to `talk` until [`unwatch`](Self::unwatch) is called with the result.
    pub fn watch(&self, talk: &Arc<Talk>) -> Result<bool, Fault> {
        let callback = Callback::<OnDebug>::new(on_debug, talk);
        let functions = self.functions;
        // SAFETY: the handle is live, and the callback owns a reference count that its `free` releases.
        self.check(unsafe { (functions.nbd_set_debug_callback)(self.raw(), callback) })?;
        // SAFETY: the handle is live.
        let had_debug = unsafe { (functions.nbd_get_debug)(self.raw()) == 1 };
        // SAFETY: the handle is live.
        self.check(unsafe { (functions.nbd_set_debug)(self.raw(), true) })?;
        Ok(had_debug)
    }

    /// Ends the reports. `had_debug` is the result of [`watch`](Self::watch).
    pub fn unwatch(&self, had_debug: bool) {
        // SAFETY: the handle is live.
        let _ = unsafe { (self.functions.nbd_set_debug)(self.raw(), had_debug) };
        // SAFETY: the handle is live, and frees the callback.
        let _ = unsafe { (self.functions.nbd_clear_debug_callback)(self.raw()) };
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

    pub fn set_tls_psk_file(&self, file: &CStr) -> Result<(), Fault> {
        let set = self.functions.nbd_set_tls_psk_file;
        // SAFETY: the handle is live, and the library copies the string.
        self.check(unsafe { set(self.raw(), file.as_ptr()) })
    }

    pub fn allow_local_files(&self, allow: bool) -> Result<(), Fault> {
        // SAFETY: the handle is live.
        self.check(unsafe { (self.functions.nbd_set_uri_allow_local_file)(self.raw(), allow) })
    }

    /// Allows a request to end at the end of the export even if that is not aligned.
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

    /// Makes the negotiation stop before an export is chosen.
    pub fn set_option_mode(&self) -> Result<(), Fault> {
        // SAFETY: the handle is live.
        self.check(unsafe { (self.functions.nbd_set_opt_mode)(self.raw(), true) })
    }

    /// Starts connecting. Blocks until the host name is resolved.
    pub fn connect_uri(&self, uri: &CStr) -> Result<(), Fault> {
        // SAFETY: the handle is live, and the library copies the string.
        self.check(unsafe { (self.functions.nbd_aio_connect_uri)(self.raw(), uri.as_ptr()) })
    }

    /// Starts the protocol with the server at the other end of `socket`.
    pub fn connect_socket(&self, socket: OwnedFd) -> Result<(), Fault> {
        let connect = self.functions.nbd_aio_connect_socket;
        // SAFETY: the handle is live, and the call takes ownership of the descriptor.
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

    /// Returns a duplicate of the socket. Returns `None` if the connection has no socket, yet or any more.
    ///
    /// Takes `&mut self`, because the library closes its descriptor when a connection fails.
    pub fn socket(&mut self) -> Option<OwnedFd> {
        // SAFETY: the handle is live.
        let fd = unsafe { (self.functions.nbd_aio_get_fd)(self.raw()) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor is open. Only calls on the handle close it, and the
        // exclusive borrow rules those out.
        unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().ok()
    }

    /// Lets the library read from its socket. Completes requests.
    pub fn notify_read(&self) -> Result<(), Fault> {
        // SAFETY: the handle is live, and buffers of requests are valid until the requests complete.
        self.check(unsafe { (self.functions.nbd_aio_notify_read)(self.raw()) })
    }

    /// Lets the library write to its socket.
    pub fn notify_write(&self) -> Result<(), Fault> {
        // SAFETY: as for `notify_read`.
        self.check(unsafe { (self.functions.nbd_aio_notify_write)(self.raw()) })
    }

    /// Announces the end of the connection to the server, if the socket takes the message at once.
    pub fn disconnect(&self) {
        // SAFETY: the handle is live.
        let _ = unsafe { (self.functions.nbd_aio_disconnect)(self.raw(), 0) };
    }

    /// Returns the size of the export in bytes, which is negative if it is too large.
    pub fn size(&self) -> Result<i64, Fault> {
        // SAFETY: the handle is live.
        let size = unsafe { (self.functions.nbd_get_size)(self.raw()) };
        match last_error(self.functions) {
            Some(fault) if size == -1 => Err(fault),
            // Without an error, -1 is the size that the server sent.
            _ => Ok(size),
        }
    }

    /// Returns the block size, or `None` if the server or the library does not report it.
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

    pub fn is_read_only(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { (self.functions.nbd_is_read_only)(self.raw()) != 0 }
    }

    pub fn can_zero(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { (self.functions.nbd_can_zero)(self.raw()) == 1 }
    }

    pub fn can_flush(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { (self.functions.nbd_can_flush)(self.raw()) == 1 }
    }

    pub fn can_meta_context(&self, name: &CStr) -> bool {
        // SAFETY: the handle is live, and the string is not kept.
        unsafe { (self.functions.nbd_can_meta_context)(self.raw(), name.as_ptr()) == 1 }
    }

    pub fn is_encrypted(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { (self.functions.nbd_get_tls_negotiated)(self.raw()) == 1 }
    }

    /// Returns whether the library checks certificates.
    pub fn verifies_peer(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { (self.functions.nbd_get_tls_verify_peer)(self.raw()) == 1 }
    }

    /// Returns whether a request for block status may exceed 32 bits.
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
    /// Calls `wait` to block until [`Tracker::is_reached`]. `wait` runs the library, or waits for
    /// another thread that does. `tracker` belongs to this read only.
    pub fn read(
        &self,
        buf: &mut [u8],
        offset: u64,
        cut: Cut,
        tracker: &Arc<Tracker>,
        mut wait: impl FnMut(),
    ) -> Result<(), ReadFault> {
        // However this ends, the library no longer uses `buf`.
        let _lent = Lent(tracker);
        let read = Arc::new(Read::new(tracker));
        let mut position = offset;
        for part in buf.chunks_mut(cut.request_size) {
            if read.fault().is_some() {
                break;
            }
            while tracker.pending() >= cut.depth {
                tracker.wait_until(cut.depth / 2);
                wait();
            }
            self.start_read(part, position, &read);
            position += part.len() as u64;
        }
        finish(&read, tracker, wait)
    }

    /// Starts one request of `read`. The caller does not return before the request is completed.
    fn start_read(&self, buf: &mut [u8], offset: u64, read: &Arc<Read>) {
        let request = Arc::new(ReadRequest::start(read, offset, buf.len()));
        // SAFETY: the handle is live. `buf` is borrowed for longer than `Handle::read` runs, which
        // waits until this request is completed, and the library does not touch the buffer after that.
        // Each callback owns a reference count of the request that its `free` releases.
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

    /// Writes `bytes` in several requests. Calls `wait` like [`read`](Self::read).
    pub fn write(
        &self,
        bytes: &[u8],
        offset: u64,
        cut: Cut,
        tracker: &Arc<Tracker>,
        mut wait: impl FnMut(),
    ) -> Result<(), ReadFault> {
        // However this ends, the library no longer uses `bytes`.
        let _lent = Lent(tracker);
        let transfer = Arc::new(Read::new(tracker));
        let mut position = offset;
        for part in bytes.chunks(cut.request_size) {
            if transfer.fault().is_some() {
                break;
            }
            while tracker.pending() >= cut.depth {
                tracker.wait_until(cut.depth / 2);
                wait();
            }
            let request = Arc::new(WriteRequest::start(&transfer, position, part.len() as u64));
            let done = Callback::<OnCompletion>::new(on_write_completed, &request);
            // SAFETY: the handle is live. `part` is borrowed for longer than this function runs, which waits until this
            // request is completed. The callback owns a reference count that its `free` releases.
            let cookie = unsafe {
                let write = self.functions.nbd_aio_pwrite;
                write(self.raw(), part.as_ptr().cast(), part.len(), position, done, 0)
            };
            self.refuse(cookie, &request);
            position += part.len() as u64;
        }
        finish(&transfer, tracker, wait)
    }

    /// Makes a range zero in one request. Calls `wait` like [`read`](Self::read).
    pub fn zero(
        &self,
        offset: u64,
        length: u64,
        tracker: &Arc<Tracker>,
        wait: impl FnMut(),
    ) -> Result<(), ReadFault> {
        let transfer = Arc::new(Read::new(tracker));
        let request = Arc::new(WriteRequest::start(&transfer, offset, length));
        let done = Callback::<OnCompletion>::new(on_write_completed, &request);
        // SAFETY: the handle is live, and the callback owns a reference count that its `free` releases.
        let cookie = unsafe { (self.functions.nbd_aio_zero)(self.raw(), length, offset, done, 0) };
        self.refuse(cookie, &request);
        finish(&transfer, tracker, wait)
    }

    /// Waits until what was written is on the disk of the server. Calls `wait` like [`read`](Self::read).
    pub fn flush(&self, tracker: &Arc<Tracker>, wait: impl FnMut()) -> Result<(), ReadFault> {
        let transfer = Arc::new(Read::new(tracker));
        let request = Arc::new(WriteRequest::start(&transfer, 0, 0));
        let done = Callback::<OnCompletion>::new(on_write_completed, &request);
        // SAFETY: the handle is live, and the callback owns a reference count that its `free` releases.
        let cookie = unsafe { (self.functions.nbd_aio_flush)(self.raw(), done, 0) };
        self.refuse(cookie, &request);
        finish(&transfer, tracker, wait)
    }

    /// Completes a request that the library did not accept.
    fn refuse(&self, cookie: i64, request: &WriteRequest) {
        if cookie == -1 {
            request.complete(Some(ReadFaultReason::Refused(self.last_error())));
        }
    }

    /// Requests extents, which go to `sink`. The result holds the error, if any. Both are complete
    /// before `tracker` counts the request as completed.
    pub fn block_status<S: ExtentSink + 'static>(
        &self,
        length: u64,
        offset: u64,
        tracker: &Arc<Tracker>,
        sink: S,
    ) -> Result<Arc<Status<S>>, Fault> {
        let status = Arc::new(Status::new(tracker, sink));
        tracker.start();
        let completed = Callback::<OnCompletion>::new(on_status_completed::<S>, &status);
        let cookie = match self.functions.nbd_aio_block_status_64 {
            Some(nbd_aio_block_status_64) => {
                let extents = Callback::<OnExtents<_>>::new(on_extents_64::<S>, &status);
                // SAFETY: the handle is live, and each callback owns a reference count
                // that its `free` releases.
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

    /// Requests the names of the exports. Keeps at most one more than `limit`.
    pub fn list_exports(&self, limit: usize) -> Result<Arc<Exports>, Fault> {
        let exports = Arc::new(Exports::new(limit));
        // SAFETY: the handle is live, and each callback owns a reference count that its `free` releases.
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
        last_error(self.functions).unwrap_or_else(Fault::unknown)
    }
}

/// Waits for all requests of a transfer.
fn finish(
    transfer: &Read,
    tracker: &Arc<Tracker>,
    mut wait: impl FnMut(),
) -> Result<(), ReadFault> {
    tracker.wait_until(0);
    while tracker.pending() > 0 {
        wait();
    }
    let fault = transfer.fault().take();
    fault.map_or(Ok(()), Err)
}

/// A buffer that the library may use while requests are pending.
struct Lent<'a>(&'a Tracker);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // Requests are pending only after a panic. The owner of the buffer must not get it back.
        if self.0.pending() > 0 {
            std::process::abort();
        }
    }
}

/// `LIBNBD_STRICT_ALIGN` in libnbd.h.
const STRICT_ALIGN: u32 = 0x10;

#[cfg(test)]
mod tests;
