//! Storages to which URIs refer.

use super::Storage;
#[cfg(feature = "nbd")]
use super::nbd::Nbd;
#[cfg(feature = "http")]
use super::web::Web;
use crate::error::Result;
#[cfg(not(all(feature = "nbd", feature = "http")))]
use crate::error::{Error, ErrorKind};
use crate::location::{Protocol, Uri};
use crate::options::OpenOptions;

/// Opens an export of a server, or an object of one that has ranges.
pub(crate) fn open(uri: &str, options: &OpenOptions) -> Result<Box<dyn Storage>> {
    let protocol = Uri::new(uri).map(|uri| uri.scheme().protocol);
    match protocol {
        Some(Protocol::Http) => open_object(uri, options),
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

#[cfg(feature = "http")]
fn open_object(url: &str, options: &OpenOptions) -> Result<Box<dyn Storage>> {
    let object = Web::open(url, options)?;
    match object.has_ranges() {
        true => Ok(Box::new(object)),
        false => Err(object.without_ranges("this")),
    }
}

#[cfg(not(feature = "http"))]
fn open_object(url: &str, _options: &OpenOptions) -> Result<Box<dyn Storage>> {
    let reason = "is the URL of an HTTP or S3 server, which this build does not read";
    Err(Error::new(ErrorKind::Unsupported, url, reason))
}
