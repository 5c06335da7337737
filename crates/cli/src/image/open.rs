//! Opens images by name, for commands that cannot read pipes.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use blkimage::{
    Compression, Decompressed, Format, Image, Location, OpenOptions, check_raw, check_unnamed,
    probe,
};

use super::advice;
use crate::problem::Problem;

/// Opens a file, a block device or a URI, and prints the warnings about it.
pub fn open(name: &OsStr, options: &OpenOptions) -> Result<Arc<Image>, Problem> {
    let image = options.open_location(Location::new(name));
    let image = image.map_err(|error| Problem::of_image(&error, name))?;
    advice::warn(&image, name);
    Ok(Arc::new(image))
}

/// Opens a compressed file to read its content once, from start to end. Returns `None` if it can be read in parts, is not
/// compressed or is an image of another format, all of which [`OpenOptions::open`] reads, or reports as what they are.
pub fn decompressed(
    path: &Path,
    options: &OpenOptions,
    head_size: u64,
) -> Result<Option<(Vec<u8>, Decompressed<'static>)>, Problem> {
    let is_raw = options.format.is_none_or(|format| format == Format::Raw);
    if !is_raw || options.snapshot.is_some() {
        return Ok(None);
    }
    let Ok(Some(mut content)) = options.open_decompressed(path) else { return Ok(None) };
    let mut head = Vec::new();
    let read = (&mut content).take(head_size).read_to_end(&mut head);
    read.map_err(|error| Problem::of_stream(&error, path.as_os_str()))?;
    if options.format.is_none() {
        if probe(&head).is_some() {
            return Ok(None);
        }
        let compression = options.compression.or_else(|| Compression::of_name(path));
        let checked = check_raw(&head, path, compression);
        checked.map_err(|error| Problem::of_image(&error, path.as_os_str()))?;
    }
    Ok(Some((head, content)))
}

/// Fails if bytes that come once and in order, and begin with `head`, are no raw disk. With a format, they are.
///
/// `what` describes them for the message.
pub fn check_stream(
    head: &[u8],
    name: &OsStr,
    what: &str,
    options: &OpenOptions,
) -> Result<(), Problem> {
    let compression = options.compression;
    match probe(head) {
        _ if options.format.is_some() => Ok(()),
        Some(format) => {
            let raw = match compression {
                None => "-f raw".to_owned(),
                Some(compression) => format!("-f raw+{compression}"),
            };
            let reason = format!("{what} and looks like {format}");
            let hint = format!("give the name of the file, or {raw} for its bytes");
            Err(Problem::new(reason).with_hint(hint))
        }
        None => check_unnamed(head, Path::new(name), compression)
            .map_err(|error| Problem::of_image(&error, name)),
    }
}

/// Returns whether `name` is the path of a block device.
pub fn is_device(name: &Path) -> bool {
    !Location::new(name.as_os_str()).is_uri()
        && std::fs::metadata(name).is_ok_and(|found| found.file_type().is_block_device())
}
