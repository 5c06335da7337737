//! Storages behind URIs.

use super::Storage;
#[cfg(feature = "nbd")]
use super::nbd::Nbd;
use crate::error::Result;
#[cfg(not(feature = "nbd"))]
use crate::error::{Error, ErrorKind};
use crate::location::{Protocol, Uri};
use crate::options::OpenOptions;

/// Opens an export of a server.
pub(crate) fn open(uri: &str, options: &OpenOptions) -> Result<Box<dyn Storage>> {
    let protocol = Uri::new(uri).map(|uri| uri.scheme().protocol);
    match protocol {
        // The NBD client reports the error for an unknown URI.
        Some(Protocol::Nbd) | None => open_nbd(uri, options),
    }
}

#[cfg(feature = "nbd")]
fn open_nbd(uri: &str, options: &OpenOptions) -> Result<Box<dyn Storage>> {
    Ok(Box::new(Nbd::open(uri, &options.nbd)?))
}

#[cfg(not(feature = "nbd"))]
fn open_nbd(uri: &str, _options: &OpenOptions) -> Result<Box<dyn Storage>> {
    let reason = "is a URI of a network block device, which this build does not read";
    Err(Error::new(ErrorKind::Unsupported, uri, reason))
}
