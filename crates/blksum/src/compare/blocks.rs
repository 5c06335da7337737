//! Compares the blocks of a chunk, whose bytes come in pieces of any length.

use std::ops::Range;

use blkhash::engine::Reuse;
use blkhash::{Comparison, is_zero};

use crate::Error;

/// Runs of blocks that compare in the same way, joined.
#[derive(Debug, Default)]
pub(super) struct Runs(Vec<(u64, Comparison)>);

impl Runs {
    pub fn iter(&self) -> impl Iterator<Item = (u64, Comparison)> {
        self.0.iter().copied()
    }

    fn push(&mut self, count: u64, comparison: Comparison) {
        match self.0.last_mut() {
            _ if count == 0 => {}
            Some((last, kind)) if *kind == comparison => *last += count,
            _ => self.0.push((count, comparison)),
        }
    }
}

impl Reuse for Runs {
    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Takes the bytes of a chunk in order.
pub(super) struct Blocks<'a> {
    runs: &'a mut Runs,
    block_size: u64,
    /// End of the content.
    size: u64,
    position: u64,
    block: Block,
    shared_is_zero: &'a IsZero<'a>,
}

/// Returns whether the bytes of a block that both sides share are zero.
pub(super) type IsZero<'a> = dyn Fn(Range<u64>) -> Result<bool, Error> + 'a;

/// The state of a comparison of a block.
#[derive(Clone, Copy)]
struct Block {
    left_is_zero: bool,
    right_is_zero: bool,
    is_equal: bool,
    /// Whether both sides share a part of it, which is not considered in the other fields.
    has_shared: bool,
}

/// A state to go back to.
pub(super) struct Mark {
    runs: usize,
    last: Option<(u64, Comparison)>,
    position: u64,
    block: Block,
}

impl<'a> Blocks<'a> {
    /// Compares blocks from `offset` on, a multiple of `block_size`, of content that ends at `size`.
    pub fn new(
        runs: &'a mut Runs,
        block_size: u64,
        offset: u64,
        size: u64,
        shared_is_zero: &'a IsZero<'a>,
    ) -> Self {
        Self { runs, block_size, size, position: offset, block: Block::NEW, shared_is_zero }
    }

    pub fn mark(&self) -> Mark {
        let last = self.runs.0.last().copied();
        Mark { runs: self.runs.0.len(), last, position: self.position, block: self.block }
    }

    /// Discards everything since `mark`.
    pub fn reset(&mut self, mark: &Mark) {
        self.runs.0.truncate(mark.runs);
        if let (Some(run), Some(last)) = (self.runs.0.last_mut(), mark.last) {
            *run = last;
        }
        self.position = mark.position;
        self.block = mark.block;
    }

    /// Takes zeros of both sides.
    pub fn zeros(&mut self, length: u64) -> Result<(), Error> {
        self.skip(length, Comparison::Zeros)
    }

    /// Takes bytes that both sides share.
    pub fn shared(&mut self, length: u64) -> Result<(), Error> {
        self.skip(length, Comparison::Equal)
    }

    /// Takes bytes of the same number on both sides. `None` are zeros.
    pub fn compare(
        &mut self,
        mut left: Option<&[u8]>,
        mut right: Option<&[u8]>,
    ) -> Result<(), Error> {
        let length = left.or(right).map_or(0, <[u8]>::len);
        let mut done = 0;
        while done < length {
            let count = self.left_in_block().min((length - done) as u64) as usize;
            let one = take(&mut left, count);
            let other = take(&mut right, count);
            self.block.update(one, other);
            self.advance(count as u64)?;
            done += count;
        }
        Ok(())
    }

    fn skip(&mut self, length: u64, comparison: Comparison) -> Result<(), Error> {
        let end = self.position + length;
        while self.position < end {
            let left = end - self.position;
            let whole = left / self.block_size;
            if whole > 0 && self.position.is_multiple_of(self.block_size) {
                self.runs.push(whole, comparison);
                self.position += whole * self.block_size;
            } else {
                self.block.has_shared |= comparison == Comparison::Equal;
                self.advance(left.min(self.left_in_block()))?;
            }
        }
        Ok(())
    }

    fn left_in_block(&self) -> u64 {
        self.block_size - self.position % self.block_size
    }

    /// Moves on within a block, and finishes it at its end.
    fn advance(&mut self, count: u64) -> Result<(), Error> {
        let start = self.position - self.position % self.block_size;
        self.position += count;
        if self.position < self.size && !self.position.is_multiple_of(self.block_size) {
            return Ok(());
        }
        let Block { left_is_zero, right_is_zero, is_equal, has_shared } =
            std::mem::replace(&mut self.block, Block::NEW);
        let comparison = if !has_shared {
            Comparison::new(left_is_zero, right_is_zero, is_equal)
        } else if is_equal {
            Comparison::Equal
        } else if (left_is_zero || right_is_zero) && (self.shared_is_zero)(start..self.position)? {
            Comparison::new(left_is_zero, right_is_zero, false)
        } else {
            Comparison::Changed
        };
        self.runs.push(1, comparison);
        Ok(())
    }
}

/// Takes the first `count` bytes of a side.
fn take<'b>(bytes: &mut Option<&'b [u8]>, count: usize) -> Option<&'b [u8]> {
    let (these, rest) = bytes.as_ref()?.split_at(count);
    *bytes = Some(rest);
    Some(these)
}

impl Block {
    /// No bytes yet.
    const NEW: Self =
        Self { left_is_zero: true, right_is_zero: true, is_equal: true, has_shared: false };

    fn update(&mut self, left: Option<&[u8]>, right: Option<&[u8]>) {
        if let (Some(left), Some(right)) = (left, right)
            && left == right
        {
            // Both are looked at only once, and not at all after a byte that is not zero.
            let may_be_zero = self.left_is_zero || self.right_is_zero;
            let is_zero = may_be_zero && is_zero(left);
            self.left_is_zero &= is_zero;
            self.right_is_zero &= is_zero;
            return;
        }
        let (left, right) = (left.is_none_or(is_zero), right.is_none_or(is_zero));
        // Two sides that are compared differ. One that is compared with zeros differs unless zero.
        self.is_equal &= left && right;
        self.left_is_zero &= left;
        self.right_is_zero &= right;
    }
}
