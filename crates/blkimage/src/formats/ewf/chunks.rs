//! Reads chunks: inflates them or compares their Adler-32.
//!
//! Readers and their buffers are pooled, one for each concurrent call. Each keeps the chunk that it decoded last for
//! callers that read it in pieces. Stored bytes of consecutive chunks are read at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libdeflater::{Decompressor, adler32};

use super::table::{Place, Table};
use crate::caches::LayerCaches;
use crate::error::{Error, Result};
use crate::storage::HostFile;

/// The chunks of an image, and the files that they are in.
pub(super) struct Chunks {
    pub segments: Vec<Segment>,
    /// In the order of their chunks, without gaps.
    pub tables: Vec<Table>,
    /// Size of a chunk in bytes.
    pub chunk: u64,
    /// Size of the content in bytes.
    pub size: u64,
}

/// A file of an image.
pub(super) struct Segment {
    pub file: Arc<HostFile>,
    /// Tables of different files may be at equal offsets.
    pub caches: LayerCaches,
}

/// The readers of an image.
#[derive(Default)]
pub(super) struct Readers {
    free: Mutex<Vec<Reader>>,
}

/// Buffers for reading chunks.
struct Reader {
    inflate: Decompressor,
    stored: Vec<u8>,
    chunk: Vec<u8>,
    /// Index of the chunk whose content `chunk` is.
    held: Option<u64>,
    places: Vec<Place>,
}

impl Readers {
    /// Fills `buf` with the content of `image` from `offset` on, all of which is in it.
    pub fn read(&self, image: &Chunks, buf: &mut [u8], offset: u64) -> Result<()> {
        let mut reader = self.lock().pop().unwrap_or_else(Reader::new);
        let result = reader.read(image, buf, offset);
        let mut free = self.lock();
        if free.len() < MAX_FREE {
            free.push(reader);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    fn new() -> Self {
        let (stored, chunk, places) = Default::default();
        Self { inflate: Decompressor::new(), stored, chunk, held: None, places }
    }

    fn read(&mut self, image: &Chunks, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            let (first, within) = (offset / image.chunk, (offset % image.chunk) as usize);
            let expected = image.length_of(first);
            let length = buf.len().min(expected - within);
            if self.held == Some(first) {
                let (head, rest) = buf.split_at_mut(length);
                head.copy_from_slice(&self.chunk[within..within + length]);
                (buf, offset) = (rest, offset + length as u64);
                continue;
            }
            let last = (offset + buf.len() as u64 - 1) / image.chunk;
            let table = image.locate(first, last, &mut self.places)?;
            let file = &*image.segments[table.segment].file;
            let start = self.places.first().map_or(0, |place| place.offset);
            let stored: u64 = self.places.iter().map(|place| place.length).sum();
            self.stored.resize(stored as usize, 0);
            file.read_exact_at(&mut self.stored, start)?;
            for (index, at) in (first..).zip(0..self.places.len()) {
                let place = self.places[at];
                let from = (place.offset - start) as usize;
                let bytes = from..from + place.length as usize;
                let within = (offset - index * image.chunk) as usize;
                let expected = image.length_of(index);
                let length = buf.len().min(expected - within);
                let (head, rest) = buf.split_at_mut(length);
                let is_whole = length == expected && expected as u64 == image.chunk;
                let stored = &self.stored[bytes];
                let decoded = if is_whole {
                    decode(&mut self.inflate, place, stored, head, expected)
                } else {
                    self.held = None;
                    self.chunk.resize(image.chunk as usize, 0);
                    decode(&mut self.inflate, place, stored, &mut self.chunk, expected).inspect(
                        |()| {
                            self.held = Some(index);
                            head.copy_from_slice(&self.chunk[within..within + length]);
                        },
                    )
                };
                decoded.map_err(|reason| damaged(file, place, index * image.chunk, reason))?;
                (buf, offset) = (rest, offset + length as u64);
            }
        }
        Ok(())
    }
}

impl Chunks {
    /// Returns the number of bytes of content in a chunk.
    fn length_of(&self, index: u64) -> usize {
        self.size.saturating_sub(index * self.chunk).min(self.chunk) as usize
    }

    /// Finds the places of the chunks from `first` to `last`, of which there is at least one, and fewer than asked for if
    /// they are in several tables or take much space. They are contiguous.
    fn locate(&self, first: u64, last: u64, places: &mut Vec<Place>) -> Result<&Table> {
        let after = self.tables.partition_point(|table| table.first <= first);
        let table = &self.tables[after.saturating_sub(1)];
        let segment = &self.segments[table.segment];
        let (file, caches) = (&segment.file, &segment.caches);
        let wide = table.check(file)?;
        places.clear();
        let mut stored = 0;
        let mut index = first - table.first;
        let end = table.count.min(last - table.first + 1);
        let (mut window, mut at) = caches.table_entry(file, table.cached(), index)?;
        while index < end {
            let raw = window[at];
            let next = match index + 1 {
                next if next == table.count => None,
                next if at + 1 == window.len() => {
                    (window, at) = caches.table_entry(file, table.cached(), next)?;
                    Some(window[at])
                }
                _ => {
                    at += 1;
                    Some(window[at])
                }
            };
            let place = table.place(index, raw, next, wide);
            if place.length > MAX_OVERHEAD + 2 * self.chunk {
                let guest = (table.first + index) * self.chunk;
                return Err(damaged(file, place, guest, "is stored in too many bytes"));
            }
            stored += place.length;
            if !places.is_empty() && stored > MAX_STORED {
                break;
            }
            places.push(place);
            index += 1;
        }
        Ok(table)
    }
}

/// Decodes a chunk into the first `expected` bytes of `content`, which has room for a whole chunk. There may be more bytes in
/// the last one of a medium whose size is not a multiple of its sectors.
fn decode(
    inflate: &mut Decompressor,
    place: Place,
    stored: &[u8],
    content: &mut [u8],
    expected: usize,
) -> Result<(), &'static str> {
    if place.is_compressed {
        return match inflate.zlib_decompress(stored, content) {
            Ok(length) if length >= expected => Ok(()),
            Ok(_) => Err("is too short"),
            Err(_) => Err("cannot be decompressed, or does not match its Adler-32"),
        };
    }
    let Some((data, sum)) = stored.split_last_chunk() else { return Err("is too short") };
    if data.len() < expected || data.len() > content.len() {
        return Err("has another length than the content");
    }
    if adler32(data) != u32::from_le_bytes(*sum) {
        return Err("does not match its Adler-32");
    }
    content[..expected].copy_from_slice(&data[..expected]);
    Ok(())
}

fn damaged(file: &HostFile, place: Place, guest: u64, reason: &str) -> Error {
    file.corrupt(format!("the chunk of guest offset {guest} {reason}")).at(place.offset)
}

/// Maximum number of bytes of consecutive chunks that are read at once, if there are several.
const MAX_STORED: u64 = 1 << 20;

/// Bytes by which a chunk may take more than twice its content.
const MAX_OVERHEAD: u64 = 1024;

/// Maximum number of idle readers.
const MAX_FREE: usize = 64;
