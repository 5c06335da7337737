//! Holds the bytes of the same range of two sources, each read into a buffer or lent by its source.

use blkimage::{Buffer, Lent, Source};

use crate::Error;

/// Memory of one thread, for one range at a time.
#[derive(Default)]
pub(super) struct Pair([Side; 2]);

#[derive(Default)]
struct Side {
    buffer: Buffer,
    /// Lent bytes. Kept until the next ones are lent, because both are likely in one mapping.
    lent: Option<Lent>,
    state: State,
}

/// Where the bytes of a side are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Zero,
    Buffer,
    Lent,
}

impl Pair {
    /// Gets at most `length` bytes from `offset` on of both sources. A source that is `None` is zero.
    /// Borrows the bytes if `may_lend` is set and the source lends them. Returns the number of bytes,
    /// fewer if a source lends fewer.
    pub fn fetch(
        &mut self,
        sources: [Option<&dyn Source>; 2],
        offset: u64,
        mut length: usize,
        may_lend: bool,
    ) -> Result<usize, Error> {
        let sides = || sources.into_iter().zip(0..);
        for (source, index) in sides() {
            let side = &mut self.0[index];
            let lent = source.filter(|_| may_lend).and_then(|source| source.lend(offset, length));
            side.state = match (source, lent) {
                (None, _) => State::Zero,
                (Some(_), Some(lent)) if !lent.as_ref().is_empty() => {
                    length = length.min(lent.as_ref().len());
                    side.lent = Some(lent);
                    State::Lent
                }
                (Some(_), _) => State::Buffer,
            };
        }
        // All that will be lent is lent, so nothing is read that the other side does not have.
        for (source, index) in sides() {
            let side = &mut self.0[index];
            if let (Some(source), State::Buffer) = (source, side.state) {
                side.buffer.grow(length);
                source.read_exact_at(&mut side.buffer.as_mut()[..length], offset)?;
            }
        }
        Ok(length)
    }

    /// Returns the first `length` bytes of both sides. `None` are zeros.
    pub fn bytes(&self, length: usize) -> [Option<&[u8]>; 2] {
        [&self.0[0], &self.0[1]].map(|side| match (side.state, &side.lent) {
            (State::Zero, _) => None,
            (State::Lent, Some(lent)) => Some(&lent.as_ref()[..length]),
            (State::Lent | State::Buffer, _) => Some(&side.buffer.as_ref()[..length]),
        })
    }

    /// Returns whether all lent bytes were the content of their source. If not, results computed from
    /// them are invalid.
    pub fn is_intact(&self) -> bool {
        self.0.iter().all(|side| match (side.state, &side.lent) {
            (State::Lent, Some(lent)) => lent.is_intact(),
            _ => true,
        })
    }
}
