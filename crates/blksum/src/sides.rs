//! Relations of the blocks of two images, including those that only the larger image has.

use blkhash::{BlockSize, Comparison};

/// The relation of a block of the left image to a block of the right one. Unlike [`Comparison`], it includes blocks
/// that only one image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Both have the same data.
    Equal,
    /// Both are zeros.
    Zeros,
    /// Both have data, which differs.
    Changed,
    /// The left block has data, and the right one is zeros.
    Zeroed,
    /// The left block is zeros, and the right one has data.
    Written,
    /// Only the left image has the block.
    LeftOnly,
    /// Only the right image has the block.
    RightOnly,
    /// The block of one side cannot be read.
    Unreadable,
    /// One side does not know the block.
    Unknown,
}

impl Relation {
    /// All relations, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Equal,
        Self::Zeros,
        Self::Changed,
        Self::Zeroed,
        Self::Written,
        Self::LeftOnly,
        Self::RightOnly,
        Self::Unreadable,
        Self::Unknown,
    ];

    /// Returns whether the blocks differ. Those that cannot be read do, and unknown ones do not.
    pub fn is_different(self) -> bool {
        !matches!(self, Self::Equal | Self::Zeros | Self::Unknown)
    }

    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Zeros => "zeros",
            Self::Changed => "changed",
            Self::Zeroed => "zeroed",
            Self::Written => "written",
            Self::LeftOnly => "left-only",
            Self::RightOnly => "right-only",
            Self::Unreadable => "unreadable",
            Self::Unknown => "unknown",
        }
    }
}

impl From<Comparison> for Relation {
    fn from(comparison: Comparison) -> Self {
        match comparison {
            Comparison::Equal => Self::Equal,
            Comparison::Zeros => Self::Zeros,
            Comparison::Changed => Self::Changed,
            Comparison::Zeroed => Self::Zeroed,
            Comparison::Written => Self::Written,
            Comparison::Unreadable => Self::Unreadable,
            Comparison::Unknown => Self::Unknown,
        }
    }
}

/// Adjacent blocks with one relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelatedRun {
    /// Index of the first block, counted from 0.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    /// The relation of all of them.
    pub relation: Relation,
}

impl RelatedRun {
    /// Extends `last` by this run if they are adjacent and have one relation. Otherwise replaces `last` and returns the
    /// old value.
    pub fn join(self, last: &mut Option<Self>) -> Option<Self> {
        match last {
            Some(last)
                if last.relation == self.relation && last.first + last.count == self.first =>
            {
                last.count += self.count;
                None
            }
            last => last.replace(self),
        }
    }
}

/// The sizes of two images that are compared, and which part of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Size of a block in bytes.
    pub block_size: BlockSize,
    /// Size of the left image in bytes.
    pub left: u64,
    /// Size of the right image in bytes.
    pub right: u64,
    /// Offset of the first byte that is compared, and of the one after the last, unless everything is.
    pub part: Option<(u64, u64)>,
    /// Whether blocks that only the larger image has are no difference, because they are zeros.
    pub ignores_tail: bool,
}

impl Sides {
    /// Returns the sides of a comparison of whole images.
    pub fn new(block_size: BlockSize, left: u64, right: u64) -> Self {
        Self { block_size, left, right, part: None, ignores_tail: false }
    }

    /// Returns the offsets at which the part of each image ends.
    pub fn ends(self) -> (u64, u64) {
        let (from, to) = self.part.unwrap_or((0, u64::MAX));
        (self.left.clamp(from, to), self.right.clamp(from, to))
    }

    /// Returns the offset at which the part of the larger image ends.
    pub fn larger(self) -> u64 {
        let (left, right) = self.ends();
        left.max(right)
    }

    /// Returns the index after the last block that both images have, which may be short on one side.
    pub fn common(self) -> u64 {
        let (left, right) = self.ends();
        left.min(right).div_ceil(self.block_size.into())
    }

    /// Returns the index after the last block that is compared.
    pub fn blocks(self) -> u64 {
        match self.ignores_tail {
            true => self.common(),
            false => self.larger().div_ceil(self.block_size.into()),
        }
    }

    /// Returns the last block of the left image, if it is short and the right image is longer.
    pub fn short_end(self) -> Option<u64> {
        let (left, right) = self.ends();
        let block_size = u64::from(self.block_size);
        let is_short = !left.is_multiple_of(block_size);
        (is_short && left < right && !self.ignores_tail).then(|| left / block_size)
    }

    /// Returns whether the sizes make the images differ.
    pub fn differ(self) -> bool {
        let (left, right) = self.ends();
        left != right && !self.ignores_tail
    }

    /// Returns the blocks that only one image has.
    pub fn tail(self) -> Option<RelatedRun> {
        let (left, right) = self.ends();
        let relation = if left > right { Relation::LeftOnly } else { Relation::RightOnly };
        let (first, end) = (self.common(), self.blocks());
        (first < end).then_some(RelatedRun { first, count: end - first, relation })
    }

    /// Returns offset and length in bytes of the blocks, in an image of `size` bytes.
    pub fn extent(self, run: RelatedRun, size: u64) -> (u64, u64) {
        let block_size = u64::from(self.block_size);
        let at = |block: u64| block.saturating_mul(block_size).min(size);
        let offset = at(run.first);
        (offset, at(run.first.saturating_add(run.count)) - offset)
    }
}
