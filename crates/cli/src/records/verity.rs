//! The objects of `blkhash verity`.

use std::ffi::OsStr;

use blkrecord::{Flat, Name, record};

use super::common::{Files, Reason};

record! {
    /// An fs-verity digest.
    pub struct Digest<'a> {
        /// the image as it was named on the command line
        pub name: Name<'a>,
        /// the fs-verity digest in hexadecimal, without the name of the algorithm
        pub digest: String,
        /// the digest algorithm, as `--hash-alg` takes it
        pub hash: &'static str,
        /// bytes of a block of data and of the tree
        pub block_size: usize,
        /// the salt in hexadecimal; empty without one
        pub salt: String,
        /// bytes of the content, or of the partition that was asked for
        pub virtual_size: u64,
    }
}

record! {
    /// The names of an image and of its hash file.
    pub struct Names<'a> {
        /// the image as it was named on the command line
        pub name: Name<'a>,
        /// the hash file as it was named on the command line
        pub hash_file: Name<'a>,
    }
}

record! {
    /// A hash file that was written.
    pub struct HashFile<'a> {
        /// the names
        pub names: Flat<Names<'a>>,
        /// the root hash in hexadecimal
        pub root_hash: String,
        /// the UUID in the superblock; null with `--no-superblock`
        pub uuid: Option<String>,
        /// the digest algorithm, as `--hash` takes it
        pub hash: &'static str,
        /// blocks of data that the tree covers
        pub data_blocks: u64,
        /// bytes of a block of data
        pub data_block_size: usize,
        /// blocks of the tree, without the superblock
        pub hash_blocks: u64,
        /// bytes of a block of the tree
        pub hash_block_size: usize,
        /// offset in the hash file of the superblock; with `--no-superblock`, of the tree
        pub hash_offset: u64,
        /// offset in the hash file of the end of the tree
        pub hash_end: u64,
        /// the salt in hexadecimal; empty without one
        pub salt: String,
    }
}

record! {
    /// Blocks that do not match.
    pub struct Error<'a> {
        /// `error`
        pub r#type: &'static str,
        /// the names
        pub names: Flat<Names<'a>>,
        /// `data` (data does not match), `unreadable` (data cannot be read), `unverified` (data cannot be verified, because the
        /// tree is damaged above it), `tree` (blocks of the tree do not match) or `spare` (a block of the tree has
        /// nonzero bytes next to its hashes)
        pub problem: &'static str,
        /// the level of the tree, from 0 next to the data; null for `data`, `unreadable` and `unverified`
        pub level: Option<usize>,
        /// number of the first block, of the data or of the level, from 0
        pub block: u64,
        /// number of blocks
        pub blocks: u64,
        /// offset of the first block in the data, for `tree` and `spare` in the hash file
        pub offset: u64,
        /// bytes of the blocks
        pub length: u64,
        /// number of the partition in which the first block of data is; null if it is in none, and for `tree` and
        /// `spare`
        pub partition: Option<u32>,
        /// what the blocks of data hold; nothing for `unverified`, `tree` and `spare`
        pub files: Flat<Files<'a>>,
    }
}

record! {
    /// The end of a verification.
    pub struct Summary<'a> {
        /// `summary`
        pub r#type: &'static str,
        /// the names
        pub names: Flat<Names<'a>>,
        /// blocks of data that the tree covers
        pub data_blocks: u64,
        /// blocks of data that do not match
        pub bad_data_blocks: u64,
        /// blocks of data that cannot be read
        pub unreadable_blocks: u64,
        /// blocks of data that cannot be verified, unreadable ones among them
        pub unverified_blocks: u64,
        /// blocks of the tree with an error, `tree` or `spare`
        pub bad_hash_blocks: u64,
        /// whether all of the tree matches the data, and only the root hash or the digest does not
        pub other_root: bool,
        /// errors that `--max-errors` kept from being printed
        pub errors_not_printed: u64,
        /// why blocks cannot be read: the first place for each of at most 8 reasons
        pub reasons: Vec<Reason<'a>>,
        /// how long it took
        pub seconds: f64,
    }
}

impl<'a> Names<'a> {
    /// Makes the names of both files.
    pub fn new(
        name: &'a (impl AsRef<OsStr> + ?Sized),
        hash_file: &'a (impl AsRef<OsStr> + ?Sized),
    ) -> Self {
        Self { name: Name::new(name.as_ref()), hash_file: Name::new(hash_file.as_ref()) }
    }
}
