//! Opens images by name, for commands that cannot read pipes.

use std::ffi::OsStr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use blkimage::{Image, Location, OpenOptions};

use super::advice;
use crate::problem::Problem;

/// Opens a file, a block device or an NBD URI, and prints the warnings about it.
pub fn open(name: &OsStr, options: &OpenOptions) -> Result<Arc<Image>, Problem> {
    let image = options.open_location(Location::new(name));
    let image = image.map_err(|error| Problem::of_image(&error, name))?;
    advice::warn(&image, name);
    Ok(Arc::new(image))
}

/// Returns whether `name` is the path of a block device.
pub fn is_device(name: &Path) -> bool {
    !Location::new(name.as_os_str()).is_uri()
        && std::fs::metadata(name).is_ok_and(|found| found.file_type().is_block_device())
}
