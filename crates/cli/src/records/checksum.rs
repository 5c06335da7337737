//! The objects of blksum: checksums, and values that were searched for.

use blkhash::Parameters;
use blkrecord::{Flat, Name, record};
use blksum::expect::{Reading, Subject};
use blksum::{Content, Part};

use super::chain::{ChainImage, VpcSizes};
record! {
    /// A checksum of an image.
    pub struct Checksum<'a> {
        /// the image as it was named on the command line, or as the check file names it; `-` is standard input
        pub name: Name<'a>,
        /// the part
        pub part: Flat<PartOf<'a>>,
        /// `ok`, `failed` (another checksum), or `undecided` (the checksum is equal, but
        /// [proves nothing](check-file.md#lists-of-digests))
        #[absent("without `--check`")]
        pub status: Option<&'static str>,
        /// the checksum that was computed, in hexadecimal
        pub checksum: String,
        /// the digest algorithm, as `--digest` takes it
        pub digest: &'static str,
        /// the construction, as `--construction` takes it
        pub construction: String,
        /// true: the digest is of the bytes of the file (`-d NAME:bytes`), and all else about its content
        #[absent("for a checksum of the content")]
        pub bytes: bool,
        /// bytes of a block; null for `linear`, which has no blocks
        pub block_size: Option<usize>,
        /// the salt in hexadecimal
        #[absent("without a salt")]
        pub salt: Option<String>,
        /// bytes of the content that the guest sees, or of the part
        pub virtual_size: u64,
        /// the sizes of a vpc image in the chain
        #[absent("if no vpc image has two")]
        pub vpc_sizes: Option<VpcSizes>,
        /// the format of the image
        pub format: &'static str,
        /// bytes that were read from files and servers, for all checksums of the image
        pub bytes_read: u64,
        /// how long the image took, for all of its checksums
        pub seconds: f64,
        /// the MD5 that an image of ISO 9660 states of itself. `checksum` is then what it is compared with: the MD5 of
        /// `implanted.bytes` bytes, with spaces in place of the text that states it
        #[absent("without such an MD5, and without `--check`")]
        pub implanted: Option<&'a Implanted>,
        /// the CRC-32 checksums that an Apple disk image states of its parts. `checksum` is then that of the checksums of its
        /// tables, as they were computed
        #[absent("without such checksums, and without `--check`")]
        pub sums: Option<&'a Sums>,
        /// about the image and the run
        #[absent("without `--verbose`")]
        pub about: Flat<Option<&'a About>>,
    }
}

record! {
    /// The MD5 that an image of ISO 9660 states of itself.
    #[derive(Clone, Debug)]
    pub struct Implanted {
        /// the MD5, in hexadecimal
        pub md5: String,
        /// bytes that it is of, from the start of the image on
        pub bytes: u64,
        /// fragments, of all but the last of which it has sums
        pub fragments: usize,
        /// what differs: `fragment`, `sums` (the sums of fragments alone), or `end` (the image is cut); null if all matches
        pub difference: Option<&'static str>,
        /// number of the fragment that differs, from 1; null if none does
        pub fragment: Option<usize>,
        /// offset of the first byte of the fragment that differs, or of the end; null if all matches
        pub difference_offset: Option<u64>,
        /// bytes of the fragment that differs, or that are missing; null if all matches
        pub difference_length: Option<u64>,
    }
}

record! {
    /// The CRC-32 checksums that an Apple disk image states of its parts.
    #[derive(Clone, Debug)]
    pub struct Sums {
        /// checksums that were compared
        pub compared: usize,
        /// checksums of types that are not known, which were not compared
        pub unknown: usize,
        /// the parts that differ: names of tables, `data fork`, or `master checksum` (that of the checksums of all tables)
        pub different: Vec<String>,
    }
}

record! {
    /// The part of an image that is hashed. A whole image has no fields.
    pub struct PartOf<'a> {
        /// the snapshot that the options or the line name
        #[absent("without one")]
        pub snapshot: Option<&'a str>,
        /// the partition that the options or the line name
        #[absent("without one")]
        pub partition: Option<u32>,
        /// the first byte of the range that the options or the line name
        #[absent("without a range")]
        pub offset: Option<u64>,
        /// bytes of the range
        #[absent("if it goes to the end")]
        pub length: Option<u64>,
    }
}

record! {
    /// How an image is read and hashed.
    #[derive(Clone, Debug)]
    pub struct About {
        /// the image and its backing files, top first
        pub chain: Vec<ChainImage>,
        /// implementations that hash at first
        pub implementations: Vec<String>,
        /// implementations that a large job timed with its own batches, to go on with the fastest
        pub measured: Vec<Measured>,
        /// threads that hash
        pub threads: usize,
        /// connections to the server
        #[absent("without a server")]
        pub connections: Option<usize>,
    }
}

record! {
    /// The time that an implementation took for batches of the run.
    #[derive(Clone, Debug)]
    pub struct Measured {
        /// its name, as `--implementation` takes it
        pub implementation: String,
        /// blocks in a batch
        pub blocks: usize,
        /// bytes of a block
        pub block_size: usize,
        /// time of one thread for a byte
        pub nanoseconds_per_byte: f64,
        /// whether it hashed such batches afterwards
        pub used: bool,
    }
}

record! {
    /// An image that cannot be read.
    pub struct Failed<'a> {
        /// the image as it was named on the command line, or as the check file names it
        pub name: Name<'a>,
        /// the part
        pub part: Flat<PartOf<'a>>,
        /// `error`
        #[absent("without `--check` and `--expect`")]
        pub status: Option<&'static str>,
        /// why it cannot be read
        pub error: String,
    }
}

record! {
    /// The result of a search for a value.
    pub struct Verdict<'a> {
        /// the image as it was named on the command line; `-` is standard input
        pub name: Name<'a>,
        /// the part
        pub part: Flat<PartOf<'a>>,
        /// `ok`, `failed` (nothing that was tried has the value) or `undecided` (something has it, but `reasons` says why that
        /// proves nothing)
        pub status: &'static str,
        /// the value as it was typed, or as it stands in the log
        #[absent("with `--expect-log` without a match")]
        pub expected: Option<&'a str>,
        /// line of the log with the value, from 1
        #[absent("with `--expect`, without a match")]
        pub line: Option<u64>,
        /// the digest algorithm of the value; null without a match
        pub digest: Option<&'static str>,
        /// its construction; null without a match
        pub construction: Option<String>,
        /// bytes of its blocks; null for `linear`, and without a match
        pub block_size: Option<usize>,
        /// whether it is of the bytes of the file, not of the content; null without a match
        pub bytes: Option<bool>,
        /// the line for a check file, without a newline; null without a match, and if there is none
        pub tag_line: Option<String>,
        /// checksums that were computed, in this order
        pub tried: Vec<Tried>,
        /// why nothing matched, besides what was tried: a match that does not count, what was not tried
        pub reasons: Vec<String>,
        /// why a value of the bytes of the file says nothing about its content; null if it does
        pub uncovered: Option<&'a str>,
        /// bytes of what was hashed: the content, the part that was asked for, or the file
        pub virtual_size: u64,
        /// the format of the image
        pub format: &'static str,
        /// bytes that were read in the pass that matched, or in the first one
        pub bytes_read: u64,
        /// how long that pass took
        pub seconds: f64,
    }
}

record! {
    /// A checksum that was compared.
    pub struct Tried {
        /// the digest algorithm
        pub digest: &'static str,
        /// the construction
        pub construction: String,
        /// bytes of a block; null for `linear`
        pub block_size: Option<usize>,
        /// whether the bytes of the file were hashed
        pub bytes: bool,
    }
}

impl<'a> PartOf<'a> {
    /// Describes a part.
    pub fn new(content: &'a Content) -> Self {
        let (partition, offset, length) = match content.part {
            None => (None, None, None),
            Some(Part::Partition(number)) => (Some(number), None, None),
            Some(Part::Range { offset, length }) => (None, Some(offset), length),
        };
        Self { snapshot: content.snapshot.as_deref(), partition, offset, length }
    }
}

impl Tried {
    /// Describes what was compared.
    pub fn new(reading: &Reading) -> Self {
        let Reading { subject, parameters } = reading;
        Self {
            digest: parameters.algorithm().name(),
            construction: parameters.construction().to_string(),
            block_size: block_size(parameters),
            bytes: *subject == Subject::Bytes,
        }
    }
}

/// Returns the size of the blocks, if there are any.
pub fn block_size(parameters: &Parameters) -> Option<usize> {
    parameters.construction().has_blocks().then(|| parameters.block_size().get())
}
