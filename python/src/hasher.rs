//! `blkhash.new()`: checksums of content that is pushed.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use blkhash::{Algorithm, Digest, Hasher, Parameters};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{Definition, cannot_pickle, threads};
use crate::buffer::Buffer;
use crate::errors;
use crate::lent::Lent;
use crate::process::Process;

/// A checksum in progress, with the methods of the objects of `hashlib`.
#[pyclass(frozen, module = "blkhash")]
pub struct Hash {
    /// `None` only while it is dropped.
    hasher: Option<Mutex<Hasher>>,
    /// Objects that threads of the hasher read. Dropped after them.
    lent: Mutex<Lent>,
    parameters: Parameters,
    threads: usize,
    /// The process that created the hash and runs its threads.
    process: Process,
    /// The process that last took the lock. Only used by threads that are attached to the
    /// interpreter, and therefore
    /// consistent in a child.
    locked_by: Mutex<Process>,
}

/// Returns a `Hash` for content that is passed to it, like `hashlib.new`.
///
/// Args:
///     name: name of a digest, as in `algorithms_available`.
///     data: the first bytes of the content.
///     construction: how digests of blocks become one checksum: "streams:4", "flat", "concat",
///         "linear", "dm-verity" or "fs-verity".
///     block_size: bytes of a block, a power of two from 512 to 64 MiB, by default the
///         construction's (64 KiB).
///     salt: bytes that are hashed before each block, for dm-verity and fs-verity.
///     threads: number of threads, by default one per processor. A hash with 1 also works
///         after `os.fork()`.
///
/// Raises:
///     ValueError, TypeError: an argument is invalid.
///
/// >>> h = blkhash.new("sha256", b"boot sector")
/// >>> h.zero(10 * 2**30)
/// >>> h.hexdigest()
/// 'bb16f6fb950a8d2f49a073f4e6bdb914a187b7561344b5388bf42946b016e0d8'
#[pyfunction]
#[pyo3(
    signature = (name, data=None, *, construction="streams:4", block_size=None, salt=None, threads=None),
    text_signature = "(name, data=b'', *, construction='streams:4', block_size=None, salt=b'', threads=None)"
)]
pub fn new(
    py: Python<'_>,
    name: &str,
    data: Option<&Bound<'_, PyAny>>,
    construction: &str,
    block_size: Option<u64>,
    salt: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Hash> {
    let parameters = Definition::new(construction, block_size, salt)?.parameters(name)?;
    let threads = self::threads(threads)?;
    let hash = Hash::of(Hasher::new(parameters, threads), parameters, threads);
    if let Some(data) = data {
        hash.update(py, data)?;
    }
    Ok(hash)
}

/// Returns the names of all digests.
#[pyfunction(name = "_algorithms_available")]
pub fn algorithms_available() -> Vec<&'static str> {
    let usable = |algorithm: &&Algorithm| {
        let definition = blkhash::Construction::default();
        Parameters::new(**algorithm, definition, definition.default_block_size()).is_ok()
    };
    Algorithm::ALL.iter().filter(usable).map(|algorithm| algorithm.name()).collect()
}

#[pymethods]
impl Hash {
    /// Appends the bytes of `data`, an object with a C-contiguous buffer, to the content.
    ///
    /// `bytes` of 64 KiB or more are lent to other threads, and the call returns before they are
    /// hashed.
    fn update(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(object) = data.cast_exact::<PyBytes>()
            && self.threads > 1
            && object.as_bytes().len() >= LEND
        {
            self.usable(py)?;
            let length = object.as_bytes().len() as u64;
            let mut bytes = self.lent().lend(object);
            return self.append(py, length, move |hasher| {
                bytes.wait(self.threads * LENT);
                hasher.update_owned(bytes);
            });
        }
        // Dropped after the last use of its bytes, and while this thread is attached.
        let buffer = Buffer::of(data)?;
        let bytes = buffer.bytes();
        let in_place = self.threads > 1 && bytes.len() >= IN_PLACE;
        self.append(py, bytes.len() as u64, |hasher| {
            if in_place { hasher.update_in_place(bytes) } else { hasher.update(bytes) }
        })
    }

    /// Appends `length` zero bytes to the content, without hashing them one by one.
    fn zero(&self, py: Python<'_>, length: u64) -> PyResult<()> {
        self.append(py, length, |hasher| hasher.zero(length))
    }

    /// Returns the checksum of the content so far.
    fn digest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.checksum(py)?.as_bytes()))
    }

    /// Returns the checksum of the content so far in hexadecimal digits.
    fn hexdigest(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.checksum(py)?.to_string())
    }

    /// Returns an independent hash with the same content.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let hasher = self.detached(py, |hasher| hasher.clone())?;
        Ok(Self::of(hasher, self.parameters, self.threads))
    }

    /// Name of the digest.
    #[getter]
    fn name(&self) -> &'static str {
        self.parameters.algorithm().name()
    }

    /// Length of the checksum in bytes.
    #[getter]
    fn digest_size(&self) -> usize {
        self.parameters.algorithm().digest_size()
    }

    /// Length of a block of the content in bytes.
    #[getter]
    fn block_size(&self) -> usize {
        self.parameters.block_size().get()
    }

    /// Name of the construction.
    #[getter]
    fn construction(&self) -> String {
        self.parameters.construction().to_string()
    }

    fn __repr__(&self) -> String {
        let (name, construction) = (self.name(), self.construction());
        format!("<blkhash.Hash {name} {construction} block_size={}>", self.block_size())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(cannot_pickle("blkhash.Hash"))
    }
}

impl Hash {
    fn of(hasher: Hasher, parameters: Parameters, threads: usize) -> Self {
        let process = Process::current();
        let locked_by = Mutex::new(process);
        Self {
            hasher: Some(Mutex::new(hasher)),
            lent: Mutex::default(),
            parameters,
            threads,
            process,
            locked_by,
        }
    }

    /// Appends `length` bytes to the content with `append`.
    fn append(
        &self,
        py: Python<'_>,
        length: u64,
        append: impl FnOnce(&mut Hasher) + Send,
    ) -> PyResult<()> {
        let append = move |hasher: &mut Hasher| {
            let fits = hasher.length().checked_add(length).is_some();
            fits.then(|| append(hasher))
        };
        let appended =
            if length < RELEASE { self.attached(py, append) } else { self.detached(py, append) };
        appended?.ok_or_else(|| PyOverflowError::new_err("the content has at most 2**64 - 1 bytes"))
    }

    fn checksum(&self, py: Python<'_>) -> PyResult<Digest> {
        let parameters = self.parameters;
        let digest = self.detached(py, move |hasher| {
            parameters.check_length(hasher.length()).map(|()| hasher.clone().finalize())
        })?;
        self.lent().release();
        digest.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the hasher. Other threads of Python run meanwhile.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Hasher) -> R + Send,
    ) -> PyResult<R> {
        let hasher = self.usable(py)?;
        py.detach(|| hasher.lock().ok().map(|mut hasher| work(&mut hasher)))
            .ok_or_else(|| failed(py))
    }

    /// Calls `work` with the hasher. For short work, which takes less time than to release the GIL,
    /// unless another
    /// thread uses the hasher.
    fn attached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Hasher) -> R + Send,
    ) -> PyResult<R> {
        match self.usable(py)?.try_lock() {
            Ok(mut hasher) => Ok(work(&mut hasher)),
            Err(TryLockError::WouldBlock) => self.detached(py, work),
            Err(TryLockError::Poisoned(_)) => Err(failed(py)),
        }
    }

    /// Returns the hasher if this process can lock it. In a child, threads of the hasher are
    /// missing, and so may be
    /// the thread that has the lock.
    fn usable(&self, py: Python<'_>) -> PyResult<&Mutex<Hasher>> {
        let here = Process::current();
        if self.process != here && self.threads > 1 {
            return Err(errors::fork(
                py,
                "this hash has threads, which a forked process does not have: \
                 create it after the fork, or with threads=1",
            ));
        }
        let hasher = self.hasher.as_ref().expect("is there until it is dropped");
        let mut locked_by = self.locked_by.lock().unwrap_or_else(PoisonError::into_inner);
        if *locked_by != here {
            if let Err(TryLockError::WouldBlock) = hasher.try_lock() {
                return Err(errors::fork(
                    py,
                    "another thread was using this hash when the process forked",
                ));
            }
            *locked_by = here;
        }
        Ok(hasher)
    }
}

impl Drop for Hash {
    fn drop(&mut self) {
        if self.process != Process::current() {
            // Ending threads that are missing would wait forever.
            mem::forget(self.hasher.take());
        }
    }
}

/// Says that an earlier call panicked, so that a part of the content is missing.
fn failed(py: Python<'_>) -> PyErr {
    errors::other(py, "an earlier call of this hash failed")
}

/// Bytes from which it pays to release the GIL, as in hashlib.
const RELEASE: u64 = 2048;

/// Bytes of an immutable object from which it pays to lend them to other threads instead of a copy.
const LEND: usize = 64 << 10;

/// Bytes for each thread that may wait, so that no thread has to.
const LENT: usize = 2 << 20;

/// Bytes from which it pays that all threads hash a buffer in place and the caller waits.
const IN_PLACE: usize = 4 << 20;
