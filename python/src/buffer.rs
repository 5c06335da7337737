//! Buffers of Python objects, used in place.
//!
//! The buffer protocol became part of the stable ABI in Python 3.11, so PyO3 hides it from modules for 3.9. The
//! functions and the layout of their argument are the same in 3.9 and 3.10, so they are declared here.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::slice;

use pyo3::ffi::{Py_ssize_t, PyObject};
use pyo3::prelude::*;

/// The C-contiguous bytes of an object, which cannot be resized or freed before this is dropped.
pub struct Buffer {
    /// Objects may keep pointers to it, so it does not move.
    view: Box<View>,
}

/// `Py_buffer`.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: Py_ssize_t,
    itemsize: Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut Py_ssize_t,
    strides: *mut Py_ssize_t,
    suboffsets: *mut Py_ssize_t,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

impl Buffer {
    /// Gets the bytes of an object.
    ///
    /// # Errors
    ///
    /// Fails if the object has no buffer, or its bytes are not contiguous.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::with_flags(object, SIMPLE)
    }

    /// Gets the bytes of an object to write to.
    ///
    /// # Errors
    ///
    /// Fails like [`of`](Self::of), and if the object is read-only.
    pub fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::with_flags(object, WRITABLE)
    }

    fn with_flags(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = Box::new(View {
            buf: ptr::null_mut(),
            obj: ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: ptr::null_mut(),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        });
        // SAFETY: `object` is attached to the interpreter and alive, and `view` can be written.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self { view })
    }

    /// Returns the bytes. Other threads of Python can write to them meanwhile. Callers only hash or copy them, which
    /// no value of a byte makes unsafe, and use what they computed, not the bytes again.
    pub fn bytes(&self) -> &[u8] {
        if self.view.len <= 0 {
            return &[];
        }
        // SAFETY: without a format or strides, the view has `len` contiguous bytes at `buf`, until it is released.
        unsafe { slice::from_raw_parts(self.view.buf.cast(), self.view.len as usize) }
    }

    /// Returns the bytes to write to, of a buffer from [`writable`](Self::writable).
    ///
    /// # Panics
    ///
    /// Panics if the buffer is read-only.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert_eq!(self.view.readonly, 0);
        if self.view.len <= 0 {
            return &mut [];
        }
        // SAFETY: as in `bytes`, and the exporter said that they can be written.
        unsafe { slice::from_raw_parts_mut(self.view.buf.cast(), self.view.len as usize) }
    }
}

// SAFETY: the view is only read, apart from its release, for which `drop` attaches to the interpreter.
unsafe impl Send for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: this thread is attached, and the view was filled by `PyObject_GetBuffer`.
            unsafe { PyBuffer_Release(&raw mut *self.view) }
        });
    }
}

/// `PyBUF_SIMPLE`.
const SIMPLE: c_int = 0;

/// `PyBUF_WRITABLE`.
const WRITABLE: c_int = 1;
