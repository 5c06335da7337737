//! The devices of a file system, and what can be read of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

use blkimage::Source;

use crate::error::Error;

/// A device and what to call it.
#[derive(Clone)]
pub struct Device {
    /// What messages call it.
    pub name: String,
    /// Its content.
    pub source: Arc<dyn Source>,
}

/// The devices that are there.
pub(crate) struct Devices {
    by_number: BTreeMap<u64, Device>,
    /// Why nothing can be read any more.
    down: OnceLock<blkimage::Error>,
}

impl Devices {
    pub(crate) fn new(by_number: BTreeMap<u64, Device>) -> Self {
        Self { by_number, down: OnceLock::new() }
    }

    /// The devices by their numbers.
    pub(crate) fn all(&self) -> &BTreeMap<u64, Device> {
        &self.by_number
    }

    /// Takes a device away.
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
                // Sectors that cannot be read say nothing then.
                let _ = self.down.set(error);
            }
            ReadError::Image(text)
        })
    }

    /// Why nothing can be read any more: a server is gone.
    pub(crate) fn down(&self) -> Option<Error> {
        let error = self.down.get()?;
        let reason = match error.io_error() {
            Some(source) => format!("{}: {source}", error.reason()),
            None => error.reason().to_owned(),
        };
        Some(blkimage::Error::new(error.kind(), error.name(), reason).into())
    }
}

/// Why bytes of a device cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("device {0} is missing")]
    Missing(u64),
    #[error("the device ends before it, at {size}")]
    PastEnd { size: u64 },
    #[error("{0}")]
    Image(String),
}
