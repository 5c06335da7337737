//! A leaf that is handed out, and where it was found.

use crate::tree::{Expected, TreeRoot};

/// A leaf that is handed out.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    pub(super) expected: Expected,
    /// Root of its tree; `None` if only the extent tree knows of it.
    pub(super) root: Option<TreeRoot>,
}
