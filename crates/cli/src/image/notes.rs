//! The choice of messages in addition to checksums and errors.

/// The messages that are printed about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Warnings and notes.
    Printed,
    /// Only warnings.
    WarningsOnly,
    /// Neither warnings nor notes.
    Silent,
}
