//! Reasons why a disk cannot be checked.

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a disk cannot be checked at all. What cannot be read in one of its layers is a [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image changed while it was read, or its server is gone.
    #[error(transparent)]
    Image(#[from] blkimage::Error),
    /// The caller cancelled the check.
    #[error("cancelled")]
    Cancelled,
}

/// Returns whether an error of an image is a finding: the image violates the rules of its format, or a file does not match a digest
/// that is stated with it. [`damaged_image`](crate::damaged_image) reports it.
pub fn is_damage(error: &blkimage::Error) -> bool {
    error.kind() == blkimage::ErrorKind::Corrupt || error.is_digest_mismatch()
}
