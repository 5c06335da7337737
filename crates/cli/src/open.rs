//! From a name to an image, for commands to which a pipe is of no use.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use blkimage::{Error, ErrorKind, Image, OpenOptions, Result};

use crate::blksum::is_uri;

/// Opens a file, a block device or the export of a URI.
pub fn open(name: &Path, options: &OpenOptions) -> Result<Image> {
    if !is_uri(name.as_os_str()) {
        return options.open(name);
    }
    match name.to_str() {
        Some(uri) => options.open_uri(uri),
        None => Err(Error::new(ErrorKind::Argument, name, "URI is not UTF-8")),
    }
}

/// Whether `name` leads to a block device.
pub fn is_device(name: &Path) -> bool {
    !is_uri(name.as_os_str())
        && std::fs::metadata(name).is_ok_and(|found| found.file_type().is_block_device())
}
