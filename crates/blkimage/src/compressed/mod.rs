//! Files that are compressed as a whole, such as `disk.raw.xz`.
//!
//! Where a file states how its parts are divided (the blocks of xz, the frames of zstd and lz4, the blocks of `bgzip`),
//! they are decoded side by side and in any order. Other files are one part, which is decoded from start to end.

mod bytes;
mod bzip2;
mod content;
mod decoder;
mod footer;
mod gzip;
mod input;
mod limits;
mod lz4;
mod lzop;
mod openwrt;
mod stream;
mod unit;
mod xz;
mod zstd;

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

pub(crate) use self::bytes::Bytes;
use self::content::Content;
pub(crate) use self::content::{Make, Ordered};
pub(crate) use self::decoder::head_of;
use self::decoder::{decoder, units};
use self::limits::{Limited, Limits, too_large};
pub use self::stream::Decompressed;
use self::unit::{MAX_LENGTH, Unit};
use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::hint::Hint;
use crate::options::{Follow, OpenOptions};
use crate::storage::{self, Storage};

/// Returns the compression of the file at `path`: the one that was given, or the one that its name and its content agree on.
/// A guest could write the header of a compressed file into its raw disk.
pub(crate) fn of_file(
    options: &OpenOptions,
    path: &Path,
    storage: &dyn Storage,
) -> Option<Compression> {
    if options.compression.is_some() {
        return options.compression;
    }
    // The content is not looked at without need.
    Compression::of_name(path)?;
    of_head(options, path, &head_of(storage).ok()?)
}

/// Returns the compression of the file at `path` that begins with `head`, as [`of_file`] does.
pub(crate) fn of_head(options: &OpenOptions, path: &Path, head: &[u8]) -> Option<Compression> {
    if options.compression.is_some() {
        return options.compression;
    }
    let named = Compression::of_name(path)?;
    if options.format.is_some() || options.follow == Follow::None {
        return None;
    }
    named.begins(head).then_some(named)
}

/// Returns whether a compressed file states the size of its content.
#[cfg(feature = "http")]
pub(crate) fn states_size(
    options: &OpenOptions,
    compression: Compression,
    storage: &dyn Storage,
    name: &Path,
) -> Result<bool> {
    let units = units(compression, storage, &Limits::new(options, storage.size()));
    units.map(|units| units.is_some()).map_err(|error| storage::read_error(name, error, None))
}

/// Returns the content of a compressed file. If the file does not state the size of its content, everything is decoded
/// once to count it.
pub(crate) fn content(
    options: &OpenOptions,
    compression: Compression,
    storage: Arc<dyn Storage>,
    name: &Path,
) -> Result<Box<dyn Storage>> {
    content_of_size(options, compression, storage, name, None)
}

/// Returns the content like [`content`]. If the file does not state its size, it is `known`, which saves a pass. Reading up to
/// the end fails if the size is another one.
pub(crate) fn content_of_size(
    options: &OpenOptions,
    compression: Compression,
    storage: Arc<dyn Storage>,
    name: &Path,
    known: Option<u64>,
) -> Result<Box<dyn Storage>> {
    let stored = storage.size();
    let limits = Limits::new(options, stored);
    let units = units(compression, &*storage, &limits).and_then(|units| match (units, known) {
        (Some(units), Some(size)) if units.last().map_or(0, |it| it.content.end) != size => {
            Err(input::damaged(format!("has another size than {size}, which is stated")))
        }
        (Some(units), _) => Ok(units),
        (None, Some(size)) => Ok(vec![Unit { stored: 0..stored, content: 0..size, blocks: None }]),
        (None, None) => {
            let bytes = all_bytes(&storage);
            let decoder = decoder(compression, bytes, 0, limits.max_memory, true)?;
            let mut reader = Limited::new(decoder, limits.max_content);
            let size = io::copy(&mut reader, &mut io::sink())?;
            Ok(vec![Unit { stored: 0..stored, content: 0..size, blocks: None }])
        }
    });
    let units = units.map_err(|error| storage::read_error(name, error, None))?;
    let size = units.last().map_or(0, |unit| unit.content.end);
    if size > limits.max_content {
        return Err(storage::read_error(name, too_large(), None));
    }
    let content = Content::new(storage, compression, limits.max_memory, units);
    let is_probed = options.format.is_none();
    Ok(Box::new(if content.is_sequential() && is_probed {
        content.refusing_footers()
    } else {
        content
    }))
}

/// Returns a reader of all bytes of a file, which announces them.
pub(crate) fn all_bytes(storage: &Arc<dyn Storage>) -> Bytes<Arc<dyn Storage>> {
    Bytes::new(storage.clone(), 0..storage.size()).announced()
}

/// Returns the content of a compressed file that does not state its size.
pub(crate) fn stream(
    options: &OpenOptions,
    compression: Compression,
    storage: Arc<dyn Storage>,
    name: &Path,
) -> Result<Option<Decompressed<'static>>> {
    let failed = |error| storage::read_error(name, error, None);
    let limits = Limits::new(options, storage.size());
    if units(compression, &*storage, &limits).map_err(failed)?.is_some() {
        return Ok(None);
    }
    let stream =
        Decompressed::new(compression, all_bytes(&storage), options, name).map_err(failed)?;
    Ok(Some(stream.of_file(storage)))
}

/// Returns content as readers from `make` return it, of which `first` was made. A reader fails at its end if what it read is
/// invalid, and so does the content. What is read again may be decoded again.
pub(crate) fn ordered(
    options: &OpenOptions,
    storage: Arc<dyn Storage>,
    name: &Path,
    shape: Ordered,
    make: Make,
    first: Option<Box<dyn Read + Send>>,
) -> Result<Box<dyn Storage>> {
    let limits = Limits::new(options, shape.stored);
    if shape.size > limits.max_content {
        return Err(storage::read_error(name, too_large(), None));
    }
    let content = Content::of_readers(storage, shape, limits.max_memory, make, first);
    let is_probed = options.format.is_none();
    Ok(Box::new(if content.is_sequential() && is_probed {
        content.refusing_footers()
    } else {
        content
    }))
}

/// Fails if an archive that is compressed as a whole is not decompressed, as other files are not then.
pub(crate) fn check_archive(
    options: &OpenOptions,
    compression: Compression,
    name: &Path,
) -> Result<()> {
    if options.follow != Follow::None {
        return Ok(());
    }
    let reason = format!(
        "is an archive that is compressed by {compression}, and files that are not trusted are not decompressed: decompress it first"
    );
    Err(Error::new(ErrorKind::Unsupported, name, reason).with_hint(Hint::Raw))
}

/// Returns a reader of the content of a compressed file, from start to end.
pub(crate) fn reader(
    options: &OpenOptions,
    compression: Compression,
    storage: &Arc<dyn Storage>,
) -> io::Result<Box<dyn Read + Send>> {
    let stored = storage.size();
    let limits = Limits::new(options, stored);
    let decoder = decoder(compression, all_bytes(storage), 0, limits.max_memory, true)?;
    Ok(Box::new(Limited::new(decoder, limits.max_content)))
}

/// Returns whether the content of a compressed file can be read in any order, because it has parts that are decoded alone.
pub(crate) fn has_parts(
    options: &OpenOptions,
    compression: Compression,
    storage: &dyn Storage,
) -> io::Result<bool> {
    let limits = Limits::new(options, storage.size());
    let units = units(compression, storage, &limits)?;
    Ok(units.is_some_and(|units| units.iter().all(|unit| unit.length() <= MAX_LENGTH)))
}
