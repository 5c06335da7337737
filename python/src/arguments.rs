//! Arguments that determine the value or the speed of a checksum.

use std::num::NonZero;

use blkhash::{Algorithm, BlockSize, Construction, Parameters, Salt};
use blksum::Tuning;
use blksum::changes::Changes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::buffer::Buffer;

/// Returns the algorithm with this name.
pub fn algorithm(name: &str) -> PyResult<Algorithm> {
    name.parse().map_err(|error| match error {
        blkhash::Error::UnknownAlgorithm(_) => {
            let known: Vec<_> = Algorithm::ALL.iter().map(|known| known.name()).collect();
            value_error(format!("{error}: use {}", known.join(", ")))
        }
        error => value_error(error),
    })
}

/// Returns a block size.
pub fn block_size(bytes: u64) -> PyResult<BlockSize> {
    BlockSize::try_from(bytes).map_err(value_error)
}

/// Returns a salt.
pub fn salt(salt: Option<&Bound<'_, PyAny>>) -> PyResult<Salt> {
    match salt {
        None => Ok(Salt::EMPTY),
        Some(salt) => Salt::try_from(Buffer::of(salt)?.bytes()).map_err(value_error),
    }
}

/// Returns the extents with these offsets and lengths.
pub fn changes(extents: Vec<(u64, u64)>) -> PyResult<Changes> {
    let extent = |(offset, length): (u64, u64)| {
        let end = offset.checked_add(length);
        end.map(|end| offset..end).ok_or_else(|| value_error("an extent ends past 2^64"))
    };
    extents.into_iter().map(extent).collect()
}

/// The parameters of checksums, except for the digest.
pub struct Definition {
    construction: Construction,
    block_size: BlockSize,
    salt: Salt,
}

impl Definition {
    pub fn new(
        construction: &str,
        size: Option<u64>,
        salt_bytes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let construction: Construction = construction.parse().map_err(value_error)?;
        let default = || Ok(construction.default_block_size());
        let block_size = size.map_or_else(default, block_size)?;
        Ok(Self { construction, block_size, salt: salt(salt_bytes)? })
    }

    /// Returns the parameters of the checksum with this digest.
    pub fn parameters(&self, digest: &str) -> PyResult<Parameters> {
        Parameters::new(algorithm(digest)?, self.construction, self.block_size)
            .and_then(|parameters| parameters.with_salt(self.salt))
            .map_err(value_error)
    }
}

/// Returns the digests that one name or several say.
pub fn digests(names: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if names.is_instance_of::<PyString>() {
        return Ok(vec![names.extract()?]);
    }
    // Its values would be ignored.
    if names.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err(
            "digests: a name or a list of names is wanted, not a dict",
        ));
    }
    let mut all: Vec<String> = Vec::new();
    for name in names.try_iter()? {
        let name = name?.extract()?;
        if all.contains(&name) {
            return Err(PyValueError::new_err(format!("digest '{name}' is named twice")));
        }
        all.push(name);
    }
    if all.is_empty() {
        return Err(PyValueError::new_err("no digest is named"));
    }
    Ok(all)
}

/// Returns the settings for a pass over an image.
pub fn tuning(threads: Option<usize>, max_zeros: Option<u64>) -> PyResult<Tuning> {
    let threads = self::threads(threads)?;
    Ok(Tuning::default().with_threads(threads).with_max_zeros(max_zeros))
}

/// Returns the number of threads, by default one per processor.
pub fn threads(threads: Option<usize>) -> PyResult<usize> {
    match threads.map(NonZero::new) {
        None => Ok(Tuning::default().threads),
        Some(Some(threads)) => Ok(threads.get()),
        Some(None) => Err(PyValueError::new_err("threads must be at least 1")),
    }
}

/// Refuses to pickle an object.
pub fn cannot_pickle(class: &str) -> PyErr {
    PyTypeError::new_err(format!("cannot pickle '{class}' object"))
}

/// Says that the value of an argument is invalid.
pub fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
