//! What is printed beside checksums and errors.

/// Whether warnings and notes on an image are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Warnings and notes.
    Printed,
    /// Only warnings.
    WarningsOnly,
    /// Nothing.
    Silent,
}
