//! The content of a compressed file, as a storage.
//!
//! Threads decode what they want to read, piece by piece. One that wants a piece which another thread is decoding
//! decodes the units behind it meanwhile. Pieces are kept until they were read, so that threads may read in any order
//! of which the next byte is not far away.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::decoder::decoder;
use super::footer::Tail;
use super::input::damaged;
use super::unit::Unit;
use super::xz::{self, Bytes};
use crate::compression::Compression;
use crate::storage::{ReadMethod, Storage};
use crate::{Extent, ExtentKind};

/// The decompressed bytes of a file.
pub(super) struct Content {
    storage: Arc<dyn Storage>,
    compression: Compression,
    max_memory: u64,
    units: Vec<Unit>,
    /// Whether what ends like an image with a footer is an error, because the end was not read first.
    refuses_footer: bool,
    state: Mutex<State>,
    /// Signalled when a piece was decoded, or could not be.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By their offset.
    pieces: BTreeMap<u64, Piece>,
    /// Number of bytes in all pieces.
    held: u64,
    /// Number of bytes in the pieces that were read.
    spent: u64,
    /// The units that were begun.
    decoders: HashMap<usize, Progress>,
    /// Counts reads.
    time: u64,
    /// The bytes that were decoded last. At the end they are the last bytes of content in one piece.
    tail: Tail,
}

struct Piece {
    bytes: Arc<[u8]>,
    /// Number of bytes that were read.
    read: usize,
    last_read: u64,
}

impl Piece {
    fn is_spent(&self) -> bool {
        self.read >= self.bytes.len()
    }
}

type Decoder = Box<dyn Read + Send>;

/// How far a unit was decoded.
enum Progress {
    /// Up to this offset, by no thread now.
    Paused(Decoder, u64),
    /// A thread decodes the piece at this offset.
    Active(u64),
    Done,
    Failed(io::ErrorKind, String),
}

/// What a thread does next.
enum Step {
    Wait,
    /// Decodes the next piece of this unit.
    Decode(usize, Option<Decoder>, u64),
}

impl Content {
    /// Creates the content of units that are adjacent.
    pub fn new(
        storage: Arc<dyn Storage>,
        compression: Compression,
        max_memory: u64,
        units: Vec<Unit>,
    ) -> Self {
        let (state, changed) = Default::default();
        Self { storage, compression, max_memory, units, refuses_footer: false, state, changed }
    }

    /// Makes the end of a vpc or dmg image an error.
    #[must_use]
    pub fn refusing_footers(self) -> Self {
        Self { refuses_footer: true, ..self }
    }

    /// Returns whether reading at the end decodes everything first.
    pub fn is_sequential(&self) -> bool {
        self.units.iter().any(|unit| unit.content.end - unit.content.start > MAX_AGAIN)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the piece at `offset`, and its offset.
    fn piece(&self, offset: u64, length: usize) -> io::Result<(u64, Arc<[u8]>)> {
        // The last one that begins at or before the offset. Others in front of it are empty.
        let index = self.units.partition_point(|unit| unit.content.start <= offset) - 1;
        let mut state = self.lock();
        loop {
            if let Some(found) = state.take(offset, length) {
                return Ok(found);
            }
            match self.step(&mut state, index, offset)? {
                Step::Wait => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                Step::Decode(index, decoder, position) => {
                    drop(state);
                    let guard = Panicked(self, index);
                    let decoded = self.decode(index, decoder, position);
                    std::mem::forget(guard);
                    state = self.lock();
                    let progress = match decoded {
                        Ok((bytes, progress)) => {
                            state.keep(position, bytes, self.max_memory);
                            progress
                        }
                        Err(error) => Progress::Failed(error.kind(), error.to_string()),
                    };
                    state.decoders.insert(index, progress);
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Decides how to get the piece at `offset`, which is in unit `index` and was not decoded.
    fn step(&self, state: &mut State, index: usize, offset: u64) -> io::Result<Step> {
        let start = self.units[index].content.start;
        let is_cheap = self.units[index].content.end - start <= MAX_AGAIN;
        match state.decoders.remove(&index) {
            None => return Ok(state.begin(index, None, start)),
            Some(Progress::Paused(decoder, position)) if position <= offset => {
                return Ok(state.begin(index, Some(decoder), position));
            }
            Some(Progress::Paused(..) | Progress::Done) if is_cheap => {
                return Ok(state.begin(index, None, start));
            }
            Some(progress @ (Progress::Paused(..) | Progress::Done)) => {
                state.decoders.insert(index, progress);
                let name = self.compression;
                let reason = format!(
                    "is {name} in one piece, which is read from start to end only, and is read at {offset} again"
                );
                return Err(io::Error::new(io::ErrorKind::NotSeekable, reason));
            }
            Some(Progress::Failed(kind, reason)) => {
                let error = io::Error::new(kind, reason.clone());
                state.decoders.insert(index, Progress::Failed(kind, reason));
                return Err(error);
            }
            Some(Progress::Active(position)) => {
                state.decoders.insert(index, Progress::Active(position));
            }
        }
        if state.held.saturating_add(PIECE) > self.max_memory {
            return Ok(Step::Wait);
        }
        let ahead = (index + 1..self.units.len()).take(MAX_AHEAD);
        for index in ahead {
            match state.decoders.remove(&index) {
                None => return Ok(state.begin(index, None, self.units[index].content.start)),
                Some(Progress::Paused(decoder, position)) => {
                    return Ok(state.begin(index, Some(decoder), position));
                }
                Some(progress) => {
                    state.decoders.insert(index, progress);
                }
            }
        }
        Ok(Step::Wait)
    }

    /// Decodes the piece of a unit at `position`.
    fn decode(
        &self,
        index: usize,
        decoder: Option<Decoder>,
        position: u64,
    ) -> io::Result<(Arc<[u8]>, Progress)> {
        let unit = &self.units[index];
        let mut decoder = match decoder {
            Some(decoder) => decoder,
            None => self.decoder(unit)?,
        };
        let length = (unit.content.end - position).min(PIECE) as usize;
        let mut bytes = vec![0; length];
        decoder.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged(OTHER_SIZE),
            _ => error,
        })?;
        let end = position + length as u64;
        let progress = if end == unit.content.end {
            // The checksum of the content comes behind it.
            if decoder.read(&mut [0])? != 0 {
                return Err(damaged(OTHER_SIZE));
            }
            Progress::Done
        } else {
            Progress::Paused(decoder, end)
        };
        Ok((bytes.into(), progress))
    }

    fn decoder(&self, unit: &Unit) -> io::Result<Decoder> {
        let storage = self.storage.clone();
        match &unit.blocks {
            Some(blocks) => {
                let stream = xz::stream_of(storage, unit.stored.clone(), blocks);
                decoder(self.compression, stream, self.max_memory)
            }
            None => {
                let stored = Bytes { storage, range: unit.stored.clone() };
                decoder(self.compression, stored, self.max_memory)
            }
        }
    }

    /// Decodes the rest of a unit without keeping it.
    fn drain(&self, index: usize, mut decoder: Decoder, mut position: u64) -> io::Result<()> {
        loop {
            match self.decode(index, Some(decoder), position)? {
                (bytes, Progress::Paused(next, end)) => {
                    self.lock().tail.push(&bytes);
                    (decoder, position) = (next, end);
                }
                (bytes, _) => {
                    self.lock().tail.push(&bytes);
                    return Ok(());
                }
            }
        }
    }
}

impl State {
    /// Marks a unit as being decoded.
    fn begin(&mut self, index: usize, decoder: Option<Decoder>, position: u64) -> Step {
        self.decoders.insert(index, Progress::Active(position));
        Step::Decode(index, decoder, position)
    }

    /// Returns the piece with the byte at `offset`, of which `length` bytes are read.
    fn take(&mut self, offset: u64, length: usize) -> Option<(u64, Arc<[u8]>)> {
        self.time += 1;
        let (&start, piece) = self.pieces.range_mut(..=offset).next_back()?;
        let within = usize::try_from(offset - start).ok()?;
        let rest = piece.bytes.len().checked_sub(within).filter(|rest| *rest > 0)?;
        let was_spent = piece.is_spent();
        piece.read += length.min(rest);
        piece.last_read = self.time;
        if piece.is_spent() && !was_spent {
            self.spent += piece.bytes.len() as u64;
        }
        let bytes = piece.bytes.clone();
        self.evict(MAX_SPENT, true);
        Some((start, bytes))
    }

    /// Keeps a piece, and at most `limit` bytes of all.
    fn keep(&mut self, offset: u64, bytes: Arc<[u8]>, limit: u64) {
        self.tail.push(&bytes);
        if bytes.is_empty() {
            return;
        }
        self.held += bytes.len() as u64;
        let piece = Piece { bytes, read: 0, last_read: self.time };
        if let Some(old) = self.pieces.insert(offset, piece) {
            self.forget(&old);
        }
        self.evict(limit.max(2 * PIECE), false);
    }

    /// Drops the pieces whose last use is longest ago: those that were read, or all.
    fn evict(&mut self, limit: u64, only_spent: bool) {
        while (if only_spent { self.spent } else { self.held }) > limit {
            let candidates =
                self.pieces.iter().filter(|(_, piece)| !only_spent || piece.is_spent());
            let oldest = candidates.min_by_key(|(_, piece)| (!piece.is_spent(), piece.last_read));
            let Some(offset) = oldest.map(|(offset, _)| *offset) else { break };
            if let Some(piece) = self.pieces.remove(&offset) {
                self.forget(&piece);
            }
        }
    }

    fn forget(&mut self, piece: &Piece) {
        let length = piece.bytes.len() as u64;
        self.held -= length;
        if piece.is_spent() {
            self.spent -= length;
        }
    }
}

/// Ends the wait of other threads for a unit at which this one panicked.
struct Panicked<'a>(&'a Content, usize);

impl Drop for Panicked<'_> {
    fn drop(&mut self) {
        let failed = Progress::Failed(io::ErrorKind::Other, "the decoder panicked".into());
        self.0.lock().decoders.insert(self.1, failed);
        self.0.changed.notify_all();
    }
}

impl Storage for Content {
    fn size(&self) -> u64 {
        self.units.last().map_or(0, |unit| unit.content.end)
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.size() || buf.is_empty() {
            return Ok(0);
        }
        let (start, bytes) = self.piece(offset, buf.len())?;
        let bytes = &bytes[(offset - start) as usize..];
        let count = bytes.len().min(buf.len());
        buf[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        Ok(Extent { offset, length: limit, kind: ExtentKind::Data })
    }

    /// Decodes the rest of all units that were read in part: the checksum is at the end.
    fn verify(&self) -> io::Result<()> {
        let mut state = self.lock();
        let begun: Vec<_> = state.decoders.keys().copied().collect();
        for index in begun {
            match state.decoders.remove(&index) {
                Some(Progress::Paused(decoder, position)) => {
                    drop(state);
                    self.drain(index, decoder, position)?;
                    state = self.lock();
                    state.decoders.insert(index, Progress::Done);
                }
                Some(Progress::Failed(kind, reason)) => {
                    return Err(io::Error::new(kind, reason));
                }
                Some(progress) => {
                    state.decoders.insert(index, progress);
                }
                None => {}
            }
        }
        if self.refuses_footer {
            state.tail.check()?;
        }
        drop(state);
        self.storage.verify()
    }

    fn reads_forward(&self) -> bool {
        self.is_sequential()
    }

    fn changed(&self) -> Option<String> {
        self.storage.changed()
    }

    fn stored(&self) -> Option<u64> {
        self.storage.stored()
    }

    fn read_method(&self) -> ReadMethod {
        ReadMethod::Decompressed(self.compression)
    }
}

/// Pieces are about as long as a read.
const PIECE: u64 = 1 << 20;

/// Pieces that were read are kept up to this size, for reads that overlap.
const MAX_SPENT: u64 = 8 << 20;

/// A unit with this content is decoded again if it is read again.
const MAX_AGAIN: u64 = 64 << 20;

/// Number of units that are decoded ahead: more than there are threads.
const MAX_AHEAD: usize = 1024;

const OTHER_SIZE: &str = "has another size than the compressed file states";
