//! The prototypes of libnbd.h, and the lookup of the functions.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, OnceLock};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::outcome::Fault;
use crate::error::excerpt;
use crate::sys::LIBNBD;

/// A callback as in libnbd.h, passed by value.
#[repr(C)]
pub(super) struct Callback<F> {
    pub callback: Option<F>,
    pub data: *mut c_void,
    pub free: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl<F> Callback<F> {
    /// Creates a callback that owns a reference count of `data`.
    pub fn new<T>(callback: F, data: &Arc<T>) -> Self {
        let data = Arc::into_raw(data.clone()).cast_mut().cast();
        Self { callback: Some(callback), data, free: Some(release::<T>) }
    }
}

/// Releases the reference count of a callback.
unsafe extern "C" fn release<T>(data: *mut c_void) {
    // SAFETY: `data` came from `Arc::into_raw` of this type, and the library frees it once.
    drop(unsafe { Arc::from_raw(data.cast::<T>().cast_const()) });
}

/// `nbd_extent` in libnbd.h.
#[repr(C)]
pub(super) struct LongExtent {
    pub length: u64,
    pub flags: u64,
}

/// `struct nbd_handle` in libnbd.h, which is opaque.
#[repr(C)]
pub(super) struct RawHandle {
    _private: [u8; 0],
}

pub(super) type Test = unsafe extern "C" fn(*mut RawHandle) -> c_int;

pub(super) type OnCompletion = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;

pub(super) type OnChunk =
    unsafe extern "C" fn(*mut c_void, *const c_void, usize, u64, c_uint, *mut c_int) -> c_int;

pub(super) type OnExtents<T> =
    unsafe extern "C" fn(*mut c_void, *const c_char, u64, *mut T, usize, *mut c_int) -> c_int;

pub(super) type OnDebug = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int;

pub(super) type OnExport = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int;

/// Defines a struct of the library's functions from their prototypes.
macro_rules! functions {
    (
        required { $($name:ident($($arg:ty),*) $(-> $result:ty)?;)* }
        optional { $($extra:ident($($extra_arg:ty),*) $(-> $extra_result:ty)?;)* }
    ) => {
        pub(super) struct Functions {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
            $(pub $extra: Option<unsafe extern "C" fn($($extra_arg),*) $(-> $extra_result)?>,)*
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
        nbd_get_version(*mut RawHandle) -> *const c_char;
        nbd_get_debug(*mut RawHandle) -> c_int;
        nbd_set_debug(*mut RawHandle, bool) -> c_int;
        nbd_set_debug_callback(*mut RawHandle, Callback<OnDebug>) -> c_int;
        nbd_clear_debug_callback(*mut RawHandle) -> c_int;
        nbd_set_tls(*mut RawHandle, c_int) -> c_int;
        nbd_set_tls_certificates(*mut RawHandle, *const c_char) -> c_int;
        nbd_set_tls_psk_file(*mut RawHandle, *const c_char) -> c_int;
        nbd_get_tls_verify_peer(*mut RawHandle) -> c_int;
        nbd_get_tls_negotiated(*mut RawHandle) -> c_int;
        nbd_set_uri_allow_local_file(*mut RawHandle, bool) -> c_int;
        nbd_set_opt_mode(*mut RawHandle, bool) -> c_int;
        nbd_add_meta_context(*mut RawHandle, *const c_char) -> c_int;
        nbd_can_meta_context(*mut RawHandle, *const c_char) -> c_int;
        nbd_can_multi_conn(*mut RawHandle) -> c_int;
        nbd_get_size(*mut RawHandle) -> i64;
        nbd_is_read_only(*mut RawHandle) -> c_int;
        nbd_can_zero(*mut RawHandle) -> c_int;
        nbd_can_flush(*mut RawHandle) -> c_int;
        nbd_aio_connect_uri(*mut RawHandle, *const c_char) -> c_int;
        nbd_aio_connect_socket(*mut RawHandle, c_int) -> c_int;
        nbd_aio_disconnect(*mut RawHandle, u32) -> c_int;
        nbd_aio_opt_list(*mut RawHandle, Callback<OnExport>, Callback<OnCompletion>) -> c_int;
        nbd_aio_pread_structured(
            *mut RawHandle, *mut c_void, usize, u64, Callback<OnChunk>, Callback<OnCompletion>, u32
        ) -> i64;
        nbd_aio_pwrite(
            *mut RawHandle, *const c_void, usize, u64, Callback<OnCompletion>, u32
        ) -> i64;
        nbd_aio_zero(*mut RawHandle, u64, u64, Callback<OnCompletion>, u32) -> i64;
        nbd_aio_flush(*mut RawHandle, Callback<OnCompletion>, u32) -> i64;
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

/// Returns the functions of the library, or the reason why it is unavailable.
pub(super) fn library() -> Result<&'static Functions, String> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    let found = FUNCTIONS.get_or_init(|| {
        let name = LIBNBD[0];
        // SAFETY: the initialisers of libnbd only prepare a key for thread-local data.
        let open = |name: &&str| unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_LOCAL) }.ok();
        let library = LIBNBD.iter().find_map(open);
        let library =
            library.ok_or_else(|| format!("needs {name}, which cannot be loaded: {INSTALL}"))?;
        // SAFETY: the name belongs to libnbd's stable interface, and the library is leaked below.
        let functions = unsafe { Functions::find(&library) }
            .map_err(|_| format!("needs a newer {name} than is installed: {INSTALL}"))?;
        std::mem::forget(library);
        Ok(functions)
    });
    found.as_ref().map_err(Clone::clone)
}

/// Returns the library's error of the last call of this thread, if that failed.
pub(super) fn last_error(functions: &Functions) -> Option<Fault> {
    // SAFETY: no arguments.
    let (text, errno) = unsafe { ((functions.nbd_get_error)(), (functions.nbd_get_errno)()) };
    if text.is_null() {
        return None;
    }
    // SAFETY: a C string, valid until the next call by this thread.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    // "nbd_connect_uri: connect: Connection refused" begins with the name of the function.
    let is_function = |name: &[u8]| name.starts_with(b"nbd_") && !name.contains(&b' ');
    let text = match text.windows(2).position(|pair| pair == b": ") {
        Some(colon) if is_function(&text[..colon]) => &text[colon + 2..],
        _ => text,
    };
    Some(Fault { errno, text: excerpt(text) })
}

const INSTALL: &str = "install libnbd0 (Debian, Ubuntu) or libnbd (Fedora)";
