//! Hashes the whole content in order, one thread at a time.

use blkhash::engine::{Accumulator, Ordered, Stopped, Turn};
use blkhash::{BlockDigests, Digest};

use super::{Checksum, HandIn, LONG_RUN, Lane, MAX_LINEAR_ZEROS, Needed, Parts};
use crate::memory::Data;
use crate::plan::{Chunk, Piece, ZeroLimits};

struct InTurn<'s>(Ordered<BlockDigests, &'s mut Accumulator>);

impl Lane for InTurn<'_> {
    /// The content may be cut anywhere.
    fn unit(&self) -> u64 {
        1
    }

    fn zero_limits(&self) -> ZeroLimits {
        ZeroLimits { piece: ZEROS_AT_ONCE, alone: LONG_RUN, total: MAX_LINEAR_ZEROS }
    }

    fn is_in_turn(&self) -> bool {
        true
    }

    fn hash<'a>(&'a self, chunk: &'a Chunk, _data: Data<'_>) -> HandIn<'a> {
        Box::new(|mut data| {
            let mut accumulator = self.0.turn(chunk.number)?;
            for piece in &chunk.pieces {
                match *piece {
                    Piece::Zeros { length, .. } => accumulator.zero(length),
                    Piece::Data { length, .. } => {
                        data.next(length, |part| accumulator.update(part));
                    }
                }
            }
            accumulator.end()
        })
    }

    fn parts<'a>(
        &'a self,
        chunk: &Chunk,
        _buffer_size: usize,
    ) -> Result<Box<dyn Parts + 'a>, Stopped> {
        Ok(Box::new(TurnParts(self.0.turn(chunk.number)?)))
    }

    fn abandon(&self) {
        self.0.abandon();
    }

    fn finish(self: Box<Self>) -> bool {
        self.0.finish().is_ok()
    }
}

/// A chunk in its turn.
struct TurnParts<'a, 's>(Turn<'a, BlockDigests, &'s mut Accumulator>);

impl Parts for TurnParts<'_, '_> {
    fn update(&mut self, part: &[u8], _is_last: bool) {
        self.0.update(part);
    }

    fn zero(&mut self, length: u64) {
        self.0.zero(length);
    }

    fn hand_in(self: Box<Self>) -> Result<(), Stopped> {
        self.0.end()
    }
}

/// A checksum of the content itself.
pub(crate) struct Whole(Accumulator);

impl Whole {
    pub(crate) fn new(accumulator: Accumulator) -> Self {
        Self(accumulator)
    }
}

impl Checksum for Whole {
    fn lane(&mut self, window: usize) -> Needed<'_> {
        Needed::Own(Box::new(InTurn(Ordered::new(&mut self.0, window))))
    }

    fn length(&self) -> u64 {
        self.0.length()
    }

    fn finalize(self: Box<Self>) -> Digest {
        self.0.finalize()
    }
}

/// Maximum number of zero bytes in a chunk. Hashing them takes about a tenth of a second. Progress
/// advances, and a pass can be cancelled, at the ends of chunks.
const ZEROS_AT_ONCE: u64 = 64 << 20;
