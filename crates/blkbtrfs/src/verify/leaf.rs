//! A leaf to verify, and its tree.

use crate::tree::{Expected, TreeRoot};

/// A leaf to verify.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    pub(super) expected: Expected,
    /// Root of its tree, or `None` if only the extent tree refers to the leaf.
    pub(super) root: Option<TreeRoot>,
}
