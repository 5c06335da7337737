//! Chooses the decoder of a compression.

use std::io::{self, Read};

use super::limits::Limits;
use super::unit::{Unit, Units};
use super::{bzip2, gzip, input, lz4, lzop, xz, zstd};
use crate::compression::Compression;
use crate::storage::Storage;

/// Returns a reader of the content that `reader` has compressed. It fails where the stream is damaged, ends early or is
/// followed by other bytes, and if it asks for a dictionary or window of more than `max_memory` bytes. `start` is where the bytes
/// begin in the file, for messages. `is_last` is whether the file ends there, so that padding may follow.
pub(super) fn decoder<'a>(
    compression: Compression,
    reader: impl Read + Send + 'a,
    start: u64,
    max_memory: u64,
    is_last: bool,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match compression {
        Compression::Gzip => Box::new(gzip::Gzip::new(reader, start, is_last)),
        Compression::Xz => Box::new(xz::Xz::new(reader, start, max_memory)?),
        Compression::Zstd => Box::new(zstd::Zstd::new(reader, start, max_memory)?),
        Compression::Bzip2 => Box::new(bzip2::Bzip2::new(reader, max_memory)),
        Compression::Lz4 => Box::new(lz4::Lz4::new(reader, start)?),
        Compression::Lzop => Box::new(lzop::Lzop::new(reader, start, max_memory)),
    })
}

/// Returns the bytes that tell the compression of a file, or all of a shorter file.
pub(crate) fn head_of(storage: &dyn Storage) -> io::Result<Vec<u8>> {
    let length = storage.size().min(Compression::HEAD_SIZE as u64) as usize;
    let mut head = vec![0; length];
    storage.read_exact_at(&mut head, 0)?;
    Ok(head)
}

/// Returns the parts of a compressed file. `None` if it does not state them. Fails if they exceed the limits.
pub(super) fn units(
    compression: Compression,
    storage: &dyn Storage,
    limits: &Limits,
) -> io::Result<Option<Vec<Unit>>> {
    if storage.size() == 0 {
        let reason = format!("is empty, and {compression} writes something for empty content");
        return Err(input::damaged(reason));
    }
    let head = head_of(storage)?;
    if !compression.begins(&head) && head.len() == Compression::HEAD_SIZE {
        return Err(input::damaged(match Compression::of_head(&head) {
            Some(found) => format!("is not {compression}, but begins like {found}"),
            None => format!("is not {compression}: it does not begin like that"),
        }));
    }
    let units = Units::new(limits);
    match compression {
        Compression::Gzip => gzip::units(storage, units),
        Compression::Xz => xz::units(storage, units).map(Some),
        Compression::Zstd => zstd::units(storage, units),
        Compression::Bzip2 | Compression::Lzop => Ok(None),
        Compression::Lz4 => lz4::units(storage, units),
    }
}
