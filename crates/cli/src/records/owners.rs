//! The object of `blkhash owners`.

use blkrecord::{Flat, record};

use super::common::Owner;

record! {
    /// Bytes that belong to one thing.
    pub struct Span<'a> {
        /// `extent`
        pub r#type: &'static str,
        /// offset of the first byte
        pub offset: u64,
        /// number of bytes
        pub length: u64,
        /// number of the partition; null if there is none
        pub partition: Option<u32>,
        /// kind of the file system, such as `ext4`; null if there is none that is read
        pub file_system: Option<&'static str>,
        /// what they belong to
        pub owner: Flat<Owner<'a>>,
    }
}
