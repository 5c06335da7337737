//! The objects of `blkhash bench` that do not belong to a benchmark in general.

use blkbench::Spread;
use blkrecord::{Name, record};

record! {
    /// A program other than blksum.
    pub struct Tool<'a> {
        /// `tool`
        pub kind: &'static str,
        /// the program and its options
        pub tool: String,
        /// the digest of blksum that is compared with it
        pub algorithm: &'static str,
        /// whether the program was found
        pub installed: bool,
        /// how it failed, or its value if that is wrong; null otherwise
        pub error: Option<&'a str>,
        /// MiB in a second of its standard input; null if it failed or was not found
        pub memory_mib_per_second: Option<f64>,
        /// MiB in a second of a file
        pub file_mib_per_second: Option<f64>,
        /// the same for `blksum --construction linear`; null if it is not installed next to `blkhash`
        pub blksum_memory_mib_per_second: Option<f64>,
        /// the same for a file
        pub blksum_file_mib_per_second: Option<f64>,
    }
}

record! {
    /// The fastest for a use.
    pub struct Fastest<'a> {
        /// `fastest`
        pub kind: &'static str,
        /// `files`, `images` or `btrfs`
        pub r#use: &'static str,
        /// `errors`, or `forgery` for algorithms that withstand it
        pub against: &'static str,
        /// the fastest algorithm, or checksum of btrfs
        pub algorithm: &'a str,
        /// MiB in a second
        pub mib_per_second: f64,
    }
}

record! {
    /// An image that was measured.
    pub struct Image<'a> {
        /// the image as it was named on the command line
        pub name: Name<'a>,
        /// the format of the image
        pub format: &'static str,
        /// bytes of the content that the guest sees
        pub virtual_size: u64,
        /// bytes from the start of the content that were measured
        pub beginning: u64,
        /// bytes of data in these; the others are holes
        pub data: u64,
        /// bytes of data in a second that the storage gives past the page cache, on the most threads; null if only memory is
        /// below the file, or the page cache cannot be passed
        pub storage: Option<Spread>,
    }
}

record! {
    /// A digest on some number of threads.
    pub struct Digest {
        /// the digest algorithm; `null` is reading alone, without a digest
        pub digest: &'static str,
        /// threads that hash
        pub threads: usize,
        /// bytes of data in a second out of the page cache
        pub rate: Spread,
        /// what limits a checksum of this image: `disk` (its storage), `memory` (reading what the page cache holds) or `hash`
        pub bound: &'static str,
    }
}
