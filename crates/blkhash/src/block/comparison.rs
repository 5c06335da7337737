//! The result of comparing blocks of two contents.

/// The relation of all blocks of a run.
///
/// The two contents are called left and right. For example, left is an older state of an image and
/// right a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The blocks are equal and not zero.
    Equal,
    /// Both are zero.
    Zeros,
    /// The blocks differ, and neither is zero.
    Changed,
    /// The right one is zero.
    Zeroed,
    /// The left one is zero.
    Written,
    /// The block of one side cannot be read.
    Unreadable,
    /// One side does not know its block.
    Unknown,
}

impl Comparison {
    /// Compares two blocks that differ if `is_equal` is not set.
    pub fn new(left_is_zero: bool, right_is_zero: bool, is_equal: bool) -> Self {
        match (left_is_zero, right_is_zero) {
            (true, true) => Self::Zeros,
            (true, false) => Self::Written,
            (false, true) => Self::Zeroed,
            (false, false) if is_equal => Self::Equal,
            (false, false) => Self::Changed,
        }
    }

    /// Returns whether the blocks differ. One that cannot be read differs from every other.
    pub fn is_different(self) -> bool {
        matches!(self, Self::Changed | Self::Zeroed | Self::Written | Self::Unreadable)
    }
}
