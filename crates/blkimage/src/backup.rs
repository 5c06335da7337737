//! What a backup of a file system says of it.

/// What an image that holds the used blocks of a file system says of it.
///
/// All texts come from the image, and may have any character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Name of the file system, in the words of the program that made the image, such as `EXTFS`.
    pub file_system: String,
    /// Version of that program.
    pub version: String,
    /// Bytes in a block.
    pub block_size: u64,
    /// Bytes in all used blocks.
    pub used: u64,
}
