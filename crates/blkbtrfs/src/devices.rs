//! Devices of a file system, and reading from them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

use blkimage::Source;

use crate::error::Error;

/// A device and its name.
#[derive(Clone)]
pub struct Device {
    /// Name of the device in messages.
    pub name: String,
    /// Content of the device.
    pub source: Arc<dyn Source>,
}

/// The devices that were given.
pub(crate) struct Devices {
    by_number: BTreeMap<u64, Device>,
    /// Error after which nothing can be read any more.
    down: OnceLock<blkimage::Error>,
}

impl Devices {
    pub(crate) fn new(by_number: BTreeMap<u64, Device>) -> Self {
        Self { by_number, down: OnceLock::new() }
    }

    /// Returns the devices by their numbers.
    pub(crate) fn all(&self) -> &BTreeMap<u64, Device> {
        &self.by_number
    }

    /// Removes a device.
    pub(crate) fn remove(&mut self, number: u64) {
        self.by_number.remove(&number);
    }

    /// Reads from a device.
    pub(crate) fn read(
        &self,
        device: u64,
        physical: u64,
        buffer: &mut [u8],
    ) -> Result<(), ReadError> {
        let known = self.by_number.get(&device).ok_or(ReadError::Missing(device))?;
        let end = physical.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > known.source.size()) {
            return Err(ReadError::PastEnd { size: known.source.size() });
        }
        known.source.read_exact_at(buffer, physical).map_err(|error| {
            let text = error.to_string();
            if error.io_error().is_some_and(|it| it.kind() == io::ErrorKind::ConnectionAborted) {
                // From here on, failed reads do not mean that sectors are bad.
                let _ = self.down.set(error);
            }
            ReadError::Image(text)
        })
    }

    /// Returns an error if nothing can be read any more because a server is gone.
    pub(crate) fn down(&self) -> Option<Error> {
        let error = self.down.get()?;
        let reason = match error.io_error() {
            Some(source) => format!("{}: {source}", error.reason()),
            None => error.reason().to_owned(),
        };
        Some(blkimage::Error::new(error.kind(), error.name(), reason).into())
    }
}

/// Reason why bytes of a device cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("device {0} is missing")]
    Missing(u64),
    #[error("the device ends before it, at {size}")]
    PastEnd { size: u64 },
    #[error("{0}")]
    Image(String),
}
