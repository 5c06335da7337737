//! The content of a compressed file, as a storage.
//!
//! Threads decode what they want to read, piece by piece. One that wants a piece which another thread is decoding
//! decodes the units after it meanwhile. Pieces are kept until they were read, so that threads may read in any order
//! of which the next byte is not far away. The end of a pass decodes what no thread wanted, for its checksums.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::bytes::Bytes;
use super::decoder::decoder;
use super::footer::Tail;
use super::input::damaged;
use super::unit::{MAX_LENGTH, UNIT_COST, Unit};
use super::xz;
use crate::compression::Compression;
use crate::storage::{ReadMethod, ServedObject, Storage};
use crate::{Extent, ExtentKind};

/// The decompressed bytes of a file.
pub(super) struct Content {
    storage: Arc<dyn Storage>,
    decoding: Decoding,
    max_memory: u64,
    /// Maximum number of bytes in pieces.
    max_held: u64,
    /// Number of decoders that are kept while no thread uses them.
    max_paused: usize,
    units: Vec<Unit>,
    /// Whether what ends like an image with a footer is an error, because the end was not read first.
    refuses_footer: bool,
    /// Whether a pass is going on, which reads all bytes, so that they are announced.
    is_pass: Arc<AtomicBool>,
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
    /// The units that were not begun and whose bytes were announced, up to this offset in the file.
    announced: HashMap<usize, u64>,
    /// Number of times that a large unit was begun again.
    again: u32,
    /// Counts reads.
    time: u64,
    /// The last bytes of each unit at the end of the content.
    tails: BTreeMap<usize, Tail>,
    /// Number of bytes that were decoded.
    decoded: u64,
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

/// Returns a reader of all content, from its start. The reader fails at its end if what it read is invalid.
pub(crate) type Make = Box<dyn Fn() -> io::Result<Decoder> + Send + Sync>;

/// Content that readers of a container return from start to end.
#[derive(Clone, Copy)]
pub(crate) struct Ordered {
    pub size: u64,
    /// Bytes of the file that hold it.
    pub stored: u64,
    /// Bytes that a reader decodes before the content begins.
    pub before: u64,
    /// The compression that was undone, if it is one of a whole file.
    pub compression: Option<Compression>,
}

/// How the bytes of the units are decoded.
enum Decoding {
    /// Each one as a part of a compressed file.
    File(Compression),
    /// The only one by a reader of its own.
    Own {
        make: Make,
        /// The compression that was undone, if it is one of a whole file.
        compression: Option<Compression>,
        /// Number of bytes that are decoded before the content begins.
        before: u64,
    },
}

impl Decoding {
    fn compression(&self) -> Option<Compression> {
        match self {
            Self::File(compression) => Some(*compression),
            Self::Own { compression, .. } => *compression,
        }
    }
}

/// How far a unit was decoded.
enum Progress {
    /// Up to this offset, by no thread now, and last at this time.
    Paused(Decoder, u64, u64),
    /// To some offset, by a decoder that is gone.
    Left,
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
        Self::decoded(storage, Decoding::File(compression), max_memory, units)
    }

    /// Creates content that readers from `make` return, of which `first` was made.
    pub fn of_readers(
        storage: Arc<dyn Storage>,
        shape: Ordered,
        max_memory: u64,
        make: Make,
        first: Option<Decoder>,
    ) -> Self {
        let Ordered { size, before, compression, .. } = shape;
        let unit = Unit { stored: 0..storage.size(), content: 0..size, blocks: None };
        let decoding = Decoding::Own { make, compression, before };
        let content = Self::decoded(storage, decoding, max_memory, vec![unit]);
        if let Some(first) = first {
            content.lock().decoders.insert(0, Progress::Paused(first, 0, 0));
        }
        content
    }

    fn decoded(
        storage: Arc<dyn Storage>,
        decoding: Decoding,
        max_memory: u64,
        units: Vec<Unit>,
    ) -> Self {
        let (state, changed) = Default::default();
        Self {
            storage,
            decoding,
            max_memory,
            max_held: max_memory.saturating_sub(units.len() as u64 * UNIT_COST),
            max_paused: blksys::processors() + 2,
            units,
            refuses_footer: false,
            is_pass: Arc::default(),
            state,
            changed,
        }
    }

    /// Makes the end of a vpc or dmg image an error.
    #[must_use]
    pub fn refusing_footers(self) -> Self {
        Self { refuses_footer: true, ..self }
    }

    /// Returns whether reading at the end decodes everything first.
    pub fn is_sequential(&self) -> bool {
        let end = self.units.iter().enumerate().filter(|(index, _)| self.is_at_end(*index));
        end.into_iter().any(|(_, unit)| !self.is_cheap(unit))
    }

    /// Returns whether a unit may be decoded again and again.
    fn is_cheap(&self, unit: &Unit) -> bool {
        let before = match self.decoding {
            Decoding::File(_) => 0,
            Decoding::Own { before, .. } => before,
        };
        unit.length().saturating_add(before) <= MAX_LENGTH
    }

    /// Returns whether a unit has some of the last bytes of the content, where images may have their header.
    fn is_at_end(&self, index: usize) -> bool {
        self.units[index].content.end + Tail::LENGTH > self.size()
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
                            self.note(&mut state, index, &bytes);
                            state.keep(position, bytes, self.max_held);
                            progress
                        }
                        Err(error) => Progress::Failed(error.kind(), error.to_string()),
                    };
                    state.decoders.insert(index, progress);
                    state.leave(self.max_paused);
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Decides how to get the piece at `offset`, which is in unit `index` and was not decoded.
    fn step(&self, state: &mut State, index: usize, offset: u64) -> io::Result<Step> {
        let start = self.units[index].content.start;
        let is_cheap = self.is_cheap(&self.units[index]);
        if state.decoded > self.size().saturating_mul(MAX_PASSES).saturating_add(MAX_LENGTH) {
            let reason = "is read in an order in which its parts are decoded again and again: decompress it first";
            return Err(io::Error::new(io::ErrorKind::NotSeekable, reason));
        }
        match state.decoders.remove(&index) {
            None => return Ok(state.begin(index, None, start)),
            Some(Progress::Paused(decoder, position, _)) if position <= offset => {
                return Ok(state.begin(index, Some(decoder), position));
            }
            Some(Progress::Paused(..) | Progress::Done | Progress::Left) if is_cheap => {
                return Ok(state.begin(index, None, start));
            }
            // Another pass, or a look at the first bytes.
            Some(Progress::Paused(..) | Progress::Done | Progress::Left)
                if offset - start < PIECE && state.again < MAX_BEGUN_AGAIN =>
            {
                state.again += 1;
                return Ok(state.begin(index, None, start));
            }
            Some(progress @ (Progress::Paused(..) | Progress::Done | Progress::Left)) => {
                state.decoders.insert(index, progress);
                let name = self.decoding.compression().map_or("compressed", Compression::name);
                let reason = format!(
                    "is {name} in one piece, which is read from start to end only, and is read at {offset} again: decompress it first"
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
        if state.held.saturating_add(PIECE) > self.max_held {
            return Ok(Step::Wait);
        }
        // What is decoded ahead is kept, so it must not be large.
        let is_small = |index: &usize| self.units[*index].length() <= MAX_LENGTH;
        let ahead = (index + 1..self.units.len()).take(MAX_AHEAD).take_while(is_small);
        for index in ahead {
            match state.decoders.remove(&index) {
                None => return Ok(state.begin(index, None, self.units[index].content.start)),
                Some(Progress::Paused(decoder, position, _)) => {
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
            None => self.decoder(index)?,
        };
        let length = (unit.content.end - position).min(PIECE) as usize;
        let mut bytes = vec![0; length];
        decoder.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged(OTHER_SIZE),
            _ => error,
        })?;
        let end = position + length as u64;
        let progress = if end == unit.content.end {
            // The checksum of the content follows it.
            if decoder.read(&mut [0])? != 0 {
                return Err(damaged(OTHER_SIZE));
            }
            Progress::Done
        } else {
            let time = self.lock().time;
            Progress::Paused(decoder, end, time)
        };
        Ok((bytes.into(), progress))
    }

    /// Keeps the last bytes of the content.
    fn note(&self, state: &mut State, index: usize, bytes: &[u8]) {
        if self.is_at_end(index) {
            state.tails.entry(index).or_default().push(bytes);
        }
    }

    fn decoder(&self, index: usize) -> io::Result<Decoder> {
        let compression = match &self.decoding {
            Decoding::Own { make, .. } => return make(),
            Decoding::File(compression) => *compression,
        };
        let (unit, storage) = (&self.units[index], self.storage.clone());
        let is_last = unit.stored.end == storage.size();
        let announced = self.lock().announced.remove(&index).unwrap_or(0);
        let stored = Bytes::new(storage.clone(), unit.stored.clone())
            .announced_if(self.is_pass.clone(), announced);
        match &unit.blocks {
            Some(blocks) => {
                let stream = xz::stream_of(storage, stored, blocks);
                let start = unit.stored.start.saturating_sub(xz::HEADER);
                decoder(compression, stream, start, self.max_memory, is_last)
            }
            None => decoder(compression, stored, unit.stored.start, self.max_memory, is_last),
        }
    }

    /// Decodes a unit from `position` to its end without keeping it.
    fn drain(&self, index: usize, decoder: Option<Decoder>, position: u64) -> io::Result<()> {
        let unit = &self.units[index];
        let mut decoder = match decoder {
            Some(decoder) => decoder,
            None => self.decoder(index)?,
        };
        let mut left = unit.content.end - position;
        let mut bytes = vec![0; DRAINED];
        loop {
            let count = decoder.read(&mut bytes)?;
            if count == 0 {
                break;
            }
            left = left.checked_sub(count as u64).ok_or_else(|| damaged(OTHER_SIZE))?;
            if self.is_at_end(index) {
                self.note(&mut self.lock(), index, &bytes[..count]);
            }
        }
        if left == 0 { Ok(()) } else { Err(damaged(OTHER_SIZE)) }
    }

    /// Decodes what was not decoded, with all processors. Other threads may read meanwhile.
    fn decode_rest(&self) {
        let is_done = |state: &State, index| {
            matches!(state.decoders.get(&index), Some(Progress::Done | Progress::Failed(..)))
        };
        let count = {
            let state = self.lock();
            (0..self.units.len()).filter(|index| !is_done(&state, *index)).count()
        };
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(index) =
                Some(next.fetch_add(1, Relaxed)).filter(|it| *it < self.units.len())
            {
                self.announce_rest(index);
                if !self.finish_unit(index) {
                    next.store(self.units.len(), Relaxed);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..count.min(blksys::processors()) {
                // Without another thread, this one does it all.
                let _ = thread::Builder::new().name("verify".into()).spawn_scoped(scope, work);
            }
            work();
        });
    }

    /// Announces the bytes of units that were not begun, as far ahead as the storage wants. Readers of their own announce theirs.
    fn announce_units(&self, units: Range<usize>) {
        if matches!(self.decoding, Decoding::Own { .. }) {
            return;
        }
        let reach = self.storage.read_ahead();
        self.is_pass.store(true, Relaxed);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut state = self.lock();
        for index in units {
            if state.decoders.contains_key(&index) || state.announced.contains_key(&index) {
                continue;
            }
            let Range { start, end } = self.units[index].stored;
            // The decoder announces the rest of a large one as it goes.
            let end = end.min(start.saturating_add(reach));
            state.announced.insert(index, end);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        drop(state);
        ranges.into_iter().for_each(|it| self.storage.will_need(it.start, it.end - it.start));
    }

    /// Announces units from `index` on, up to the reach of the storage.
    fn announce_rest(&self, index: usize) {
        let reach = self.storage.read_ahead();
        if reach == 0 {
            return;
        }
        let end = self.units[index].stored.start.saturating_add(reach);
        let behind = self.units[index..].iter().take_while(|unit| unit.stored.start < end);
        self.announce_units(index..index + behind.count());
    }

    /// Decodes a unit to its end, unless another thread does. Returns whether it is good so far.
    fn finish_unit(&self, index: usize) -> bool {
        let mut state = self.lock();
        let (decoder, position) = match state.decoders.remove(&index) {
            Some(Progress::Paused(decoder, position, _)) => (Some(decoder), position),
            None | Some(Progress::Left) => (None, self.units[index].content.start),
            Some(progress @ (Progress::Active(_) | Progress::Done | Progress::Failed(..))) => {
                let is_good = !matches!(progress, Progress::Failed(..));
                state.decoders.insert(index, progress);
                return is_good;
            }
        };
        state.activate(index, decoder.is_none(), position);
        drop(state);
        let guard = Panicked(self, index);
        let drained = self.drain(index, decoder, position);
        std::mem::forget(guard);
        let is_good = drained.is_ok();
        let progress = match drained {
            Ok(()) => Progress::Done,
            Err(error) => Progress::Failed(error.kind(), error.to_string()),
        };
        self.lock().decoders.insert(index, progress);
        self.changed.notify_all();
        is_good
    }

    /// Fails if a unit does. Waits for units that other threads decode.
    fn check_units(&self) -> io::Result<()> {
        let mut state = self.lock();
        for index in 0..self.units.len() {
            while let Some(Progress::Active(_)) = state.decoders.get(&index) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(Progress::Failed(kind, reason)) = state.decoders.get(&index) {
                return Err(io::Error::new(*kind, reason.clone()));
            }
        }
        Ok(())
    }
}

impl State {
    /// Begins to decode a unit, or continues it.
    fn begin(&mut self, index: usize, decoder: Option<Decoder>, position: u64) -> Step {
        self.activate(index, decoder.is_none(), position);
        Step::Decode(index, decoder, position)
    }

    /// Marks a unit as being decoded.
    fn activate(&mut self, index: usize, is_start: bool, position: u64) {
        self.decoders.insert(index, Progress::Active(position));
        if is_start {
            self.tails.remove(&index);
        }
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
        self.decoded += bytes.len() as u64;
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

    /// Drops the decoders whose last use is longest ago, except for some.
    fn leave(&mut self, count: usize) {
        let paused = |decoders: &HashMap<usize, Progress>| {
            let times = decoders.iter().filter_map(|(index, progress)| match progress {
                Progress::Paused(_, _, time) => Some((*time, *index)),
                _ => None,
            });
            let times: Vec<_> = times.collect();
            (times.len() > count).then(|| times.into_iter().min()).flatten()
        };
        while let Some((_, oldest)) = paused(&self.decoders) {
            self.decoders.insert(oldest, Progress::Left);
        }
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

    /// Decodes the rest of units that were read in part, and all others: an image may leave out some of its file.
    fn verify(&self) -> io::Result<()> {
        self.decode_rest();
        self.check_units()?;
        if self.refuses_footer {
            let mut tail = Tail::default();
            self.lock().tails.values().for_each(|it| tail.push(it.bytes()));
            tail.check(self.decoding.compression())?;
        }
        self.storage.verify()
    }

    fn reads_forward(&self) -> bool {
        self.is_sequential()
    }

    fn changed(&self) -> Option<String> {
        self.storage.changed()
    }

    fn will_need(&self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size());
        if offset >= end || self.storage.read_ahead() == 0 {
            return;
        }
        let first = self.units.partition_point(|unit| unit.content.end <= offset);
        let behind = self.units.partition_point(|unit| unit.content.start < end);
        self.announce_units(first..behind);
    }

    /// Returns the number of bytes of content whose compressed bytes are as many as the storage wants, on average.
    fn read_ahead(&self) -> u64 {
        let ratio = self.size() / self.storage.size().max(1);
        self.storage.read_ahead().saturating_mul(ratio.clamp(1, MAX_RATIO))
    }

    fn stored(&self) -> Option<u64> {
        self.storage.stored()
    }

    fn read_method(&self) -> ReadMethod {
        self.decoding.compression().map_or(ReadMethod::Other, ReadMethod::Decompressed)
    }

    fn object(&self) -> Option<ServedObject> {
        self.storage.object()
    }
}

/// Pieces are about as long as a read.
const PIECE: u64 = 1 << 20;

/// Pieces that were read are kept up to this size, for reads that overlap.
const MAX_SPENT: u64 = 8 << 20;

/// Content is announced as if it were at most this many times as long as its compressed bytes.
const MAX_RATIO: u64 = 16;

/// Bytes that are decoded at once to verify them.
const DRAINED: usize = 128 << 10;

/// Maximum number of times that units of more than `MAX_LENGTH` are decoded again, from their start only.
/// Limit in restarts.
const MAX_BEGUN_AGAIN: u32 = 16;

/// Maximum number of times that all content may be decoded, for reads in disorder.
/// Limit in passes.
const MAX_PASSES: u64 = 16;

/// Number of units that are decoded ahead: more than there are threads.
const MAX_AHEAD: usize = 1024;

const OTHER_SIZE: &str = "has another size than the compressed file states";
