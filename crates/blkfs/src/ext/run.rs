//! Runs of blocks.

/// Contiguous blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first block within the file.
    pub logical: u64,
    /// The first block within the file system.
    pub physical: u64,
    pub count: u64,
    /// Whether they were written, and are not merely allocated.
    pub is_written: bool,
}
