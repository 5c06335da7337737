//! Android sparse images, which `img2simg` writes and `fastboot` sends.
//!
//! A header is followed by chunks in the order of the content: stored blocks, blocks of a repeated word, and blocks that are
//! not cared for, which `simg2img` leaves as holes and are zeros here. A chunk may state the CRC-32 of the content so
//! far. The one of all content is handed out, as is the one of the header.
//!
//! As in `simg2img`, the chunks must have exactly the blocks that the header promises, and bytes after them do not
//! matter. Chunks with data of no block are refused, because `simg2img` writes the blocks after some of them elsewhere.

mod header;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::header::{ChunkHeader, Header};
use crate::chain::{Candidate, OpenedLayer};
use crate::error::Result;
use crate::formats::fields::check_inside;
use crate::layer::{GuestRange, Layer, Mapping, MappingKind, Purpose, Stored};
use crate::stated::{Stated, StatedDigest};
use crate::storage::HostFile;

/// An image.
struct Simg {
    file: Arc<HostFile>,
    size: u64,
    runs: Vec<Run>,
    stated: Stated,
}

/// Blocks of one kind, up to the next run.
struct Run {
    /// Offset of the first byte in the content.
    start: u64,
    place: Place,
}

/// Where the content of a run is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Zero,
    /// In the file, from this offset on.
    Stored(u64),
    /// This word again and again.
    Fill([u8; 4]),
}

/// Opens a file as an Android sparse image.
pub(crate) fn open(image: &Candidate) -> Result<OpenedLayer> {
    let simg = Simg::open(&image.file)?;
    Ok(OpenedLayer { layer: Box::new(simg), backing: None })
}

impl Simg {
    fn open(file: &Arc<HostFile>) -> Result<Self> {
        let header = Header::read(file)?;
        if header.chunks > MAX_CHUNKS {
            return Err(file.corrupt(format!("has more than {MAX_CHUNKS} chunks")).at(20));
        }
        let size = header.blocks * header.block;
        let mut digests = Vec::new();
        if header.checksum != 0 {
            digests.push(crc32(header.checksum));
        }
        let mut runs: Vec<Run> = Vec::new();
        let (mut start, mut offset) = (0, header.end);
        for _ in 0..header.chunks {
            let chunk = header.chunk(file, offset)?;
            let (place, blocks) = match chunk.kind {
                CRC => {
                    let sum = crc32(u32::from_le_bytes(word(file, &chunk, offset)?));
                    if start == size && !digests.contains(&sum) && digests.len() < MAX_DIGESTS {
                        digests.push(sum);
                    }
                    (None, 0)
                }
                _ => (Some(place(file, &header, &chunk, offset)?), chunk.blocks),
            };
            let length = blocks * header.block;
            if length > size - start {
                let reason =
                    format!("has chunks with more than the {} blocks of its header", header.blocks);
                return Err(file.corrupt(reason).at(offset));
            }
            if let Some(place) = place.filter(|_| length > 0)
                && !runs.last().is_some_and(|run| run.place == place)
            {
                runs.push(Run { start, place });
            }
            start += length;
            offset = chunk.data.saturating_add(chunk.length);
        }
        if start != size {
            let found = start / header.block;
            let reason =
                format!("has chunks with {found} of the {} blocks of its header", header.blocks);
            return Err(file.corrupt(reason).at(20));
        }
        let stated = Stated { digests, ..Stated::default() };
        Ok(Self { file: file.clone(), size, runs, stated })
    }
}

impl Layer for Simg {
    fn size(&self) -> u64 {
        self.size
    }

    fn map(&self, range: GuestRange, _purpose: Purpose) -> Result<Mapping<'_>> {
        let next = self.runs.partition_point(|run| run.start <= range.offset);
        let end = self.runs.get(next).map_or(self.size, |run| run.start);
        let left = end.saturating_sub(range.offset);
        let Some(run) = next.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return Ok(Mapping { kind: MappingKind::Zero, length: left.min(range.limit) });
        };
        let kind = match run.place {
            Place::Zero if range.is_lowest => {
                return Ok(Mapping { kind: MappingKind::Below, length: left.min(range.far) });
            }
            Place::Zero => MappingKind::Zero,
            Place::Stored(offset) => {
                MappingKind::Host { file: &self.file, offset: offset + (range.offset - run.start) }
            }
            Place::Fill(word) => {
                let offset = u64::from(u32::from_le_bytes(word));
                MappingKind::Opaque(Stored { offset, length: 0 })
            }
        };
        Ok(Mapping { kind, length: left.min(range.limit) })
    }

    /// Repeats a word, which `map` returned in place of an offset. Runs begin at multiples of its size.
    fn read(&self, stored: Stored, buf: &mut [u8], offset: u64) -> Result<()> {
        let mut word = (stored.offset as u32).to_le_bytes();
        word.rotate_left((offset % 4) as usize);
        for part in buf.chunks_mut(4) {
            part.copy_from_slice(&word[..part.len()]);
        }
        Ok(())
    }

    fn stated(&self) -> Result<Option<Stated>> {
        Ok(Some(self.stated.clone()))
    }

    fn files(&self) -> Vec<&HostFile> {
        vec![&*self.file]
    }
}

/// Returns where the content of a chunk is, which begins at `offset`.
fn place(file: &HostFile, header: &Header, chunk: &ChunkHeader, offset: u64) -> Result<Place> {
    match chunk.kind {
        RAW | FILL if chunk.blocks == 0 => {
            Err(file.corrupt("has a chunk with data of no block").at(offset))
        }
        RAW => {
            check_length(file, chunk, chunk.blocks * header.block, offset)?;
            check_inside(file, chunk.data, chunk.length, "chunk")?;
            Ok(Place::Stored(chunk.data))
        }
        FILL => match word(file, chunk, offset)? {
            [0, 0, 0, 0] => Ok(Place::Zero),
            word => Ok(Place::Fill(word)),
        },
        DONT_CARE => {
            check_length(file, chunk, 0, offset)?;
            Ok(Place::Zero)
        }
        kind => Err(file
            .corrupt(format!("has a chunk of the kind {kind:#06x}, which is not known"))
            .at(offset)),
    }
}

/// Reads the word that is the data of a chunk.
fn word(file: &HostFile, chunk: &ChunkHeader, offset: u64) -> Result<[u8; 4]> {
    let mut word = [0; 4];
    check_length(file, chunk, word.len() as u64, offset)?;
    check_inside(file, chunk.data, chunk.length, "chunk")?;
    file.read_exact_at(&mut word, chunk.data)?;
    Ok(word)
}

/// Fails unless a chunk has this many bytes of data.
fn check_length(file: &HostFile, chunk: &ChunkHeader, length: u64, offset: u64) -> Result<()> {
    if chunk.length == length {
        return Ok(());
    }
    let reason = format!("has a chunk with {} bytes of data instead of {length}", chunk.length);
    Err(file.corrupt(reason).at(offset))
}

fn crc32(sum: u32) -> StatedDigest {
    StatedDigest::new("crc32", sum.to_be_bytes())
}

/// Kinds of chunks.
const RAW: u16 = 0xcac1;
const FILL: u16 = 0xcac2;
const DONT_CARE: u16 = 0xcac3;
const CRC: u16 = 0xcac4;

/// Maximum number of chunks of an Android sparse image. Runs of chunks take memory.
/// Limit in chunks.
const MAX_CHUNKS: u32 = 1 << 20;

/// Maximum number of different checksums that an Android sparse image states of its content.
/// Limit in digests.
const MAX_DIGESTS: usize = 8;
