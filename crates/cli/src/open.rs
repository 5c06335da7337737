//! Opens images by name, for commands that cannot read pipes.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use blkimage::{Image, Location, OpenOptions, Result};

/// Opens a file, a block device or an NBD URI.
pub fn open(name: &Path, options: &OpenOptions) -> Result<Image> {
    options.open_location(Location::new(name.as_os_str()))
}

/// Returns whether `name` is the path of a block device.
pub fn is_device(name: &Path) -> bool {
    !Location::new(name.as_os_str()).is_uri()
        && std::fs::metadata(name).is_ok_and(|found| found.file_type().is_block_device())
}
