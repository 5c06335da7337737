//! The object of blkcopy.

use blkrecord::{Flat, Name, record};

use super::common::Owner;

record! {
    /// What was asked for.
    pub struct Names<'a> {
        /// `copy`
        pub r#type: &'static str,
        /// the source as it was named on the command line
        pub source: Name<'a>,
        /// the destination as it was named on the command line
        pub destination: Name<'a>,
    }
}

record! {
    /// A copy.
    pub struct Copy<'a> {
        /// the names
        pub names: Flat<Names<'a>>,
        /// the checksum in hexadecimal; null with `--verify=none`, and if only a part was read
        pub checksum: Option<String>,
        /// the digest algorithm; null without a checksum
        pub digest: Option<&'static str>,
        /// the construction; null without a checksum
        pub construction: Option<String>,
        /// bytes of a block; null without blocks or a checksum
        pub block_size: Option<usize>,
        /// bytes of the content
        pub virtual_size: u64,
        /// format of the source
        pub format: &'static str,
        /// bytes that were written; null for standard output
        pub written_bytes: Option<u64>,
        /// bytes that became or stayed zero without being written; null for standard output
        pub zeroed_bytes: Option<u64>,
        /// bytes that the destination had already, and that were left as they were; null for standard output
        pub equal_bytes: Option<u64>,
        /// bytes whose storage the destination shares with the source; null for standard output
        pub shared_bytes: Option<u64>,
        /// bytes in the blocks that differ from the map of `--delta-from`; null without it
        pub changed_bytes: Option<u64>,
        /// bytes that were sent with `--delta-from`; null without it
        pub delta_bytes: Option<u64>,
        /// blocks of 4 KiB that `--update` replaced and that hold content of files in the source; null without `--update`, into a new
        /// destination, after more replaced places than are kept, if nothing was replaced, and if the source has no file system
        pub in_files: Option<u64>,
        /// those that hold metadata of a file system, or a partition table
        pub in_metadata: Option<u64>,
        /// those in a journal
        pub in_journal: Option<u64>,
        /// those in free space
        pub in_free_space: Option<u64>,
        /// all others
        pub elsewhere: Option<u64>,
        /// what the blocks that `--update` replaced belong to in the source, at most 16; null like `in_files`
        pub owners: Option<Vec<Owner<'a>>>,
        /// whether these are all; null like `in_files`
        pub owners_complete: Option<bool>,
        /// `readback`, `source` or `none`, as `--verify`
        pub verified: &'static str,
        /// `direct` (around the page cache), `page-cache` or `nbd`; null if the destination was not read back
        pub read_back: Option<&'static str>,
        /// bytes that were compared with the map of `--expect-map`; null without it
        pub compared_bytes: Option<u64>,
        /// duration of the copy
        pub seconds: f64,
    }
}

record! {
    /// A copy that failed.
    pub struct Failed<'a> {
        /// the names
        pub names: Flat<Names<'a>>,
        /// the message, with the name that it is about
        pub error: String,
    }
}
