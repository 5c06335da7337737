//! The command line of `blkhash verity`.

use std::ffi::OsString;
use std::path::PathBuf;

use blkhash::{Algorithm, BlockSize, Construction, Digest};
use clap::{Subcommand, ValueHint};
use uuid::Uuid;

use crate::blkhash::source_args::SourceArgs;
use crate::values::{Count, Named, parse_block_size, parse_size};

/// `blkhash verity`
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `blkhash verity`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the fs-verity digest of images, like fsverity digest
    #[command(
        override_usage = "blkhash verity digest [OPTION]... IMAGE...",
        after_help = DIGEST_HELP
    )]
    Digest(DigestArgs),
    /// Make the hash file of dm-verity for an image, like veritysetup format
    #[command(
        override_usage = "blkhash verity format [OPTION]... DATA HASH",
        after_help = FORMAT_HELP
    )]
    Format(Format),
    /// Verify an image against a hash file of dm-verity or a tree of fs-verity, and find every bad block
    #[command(
        override_usage = "blkhash verity verify [OPTION]... DATA HASH [ROOT]",
        after_help = VERIFY_HELP
    )]
    Verify(Verify),
}

/// `blkhash verity digest`
#[derive(Debug, clap::Args)]
pub struct DigestArgs {
    /// Images, devices, URLs or NBD URIs
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, required = true)]
    pub names: Vec<OsString>,

    #[command(flatten)]
    pub tree: FsTree,

    /// Write the Merkle tree to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out_merkle_tree: Option<PathBuf>,

    /// Write the descriptor to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out_descriptor: Option<PathBuf>,

    /// Print only the digest
    #[arg(long)]
    pub compact: bool,

    /// Print the digest in the form that the kernel's built-in signatures sign
    #[arg(long)]
    pub for_builtin_sig: bool,

    /// Write one JSON object per line
    #[arg(long, conflicts_with_all = ["compact", "for_builtin_sig"])]
    pub json: bool,

    /// Do not print the note about images that are not raw
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// Parameters of a tree of fs-verity.
#[derive(Debug, clap::Args)]
pub struct FsTree {
    /// Digest algorithm of fs-verity: sha256 or sha512 [default: sha256]
    #[arg(
        long, value_name = "NAME",
        value_parser = Named::<Algorithm>::of(fs_names), hide_possible_values = true
    )]
    pub hash_alg: Option<Algorithm>,

    /// Size of the blocks of fs-verity, a power of two from 512 to 64M [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub block_size: Option<BlockSize>,
}

/// `blkhash verity format`
#[derive(Debug, clap::Args)]
pub struct Format {
    /// Image, device, URL or NBD URI with the data
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub data: OsString,

    /// File or device to write the hash tree to
    #[arg(value_name = "HASH", value_hint = ValueHint::FilePath)]
    pub hash_file: PathBuf,

    #[command(flatten)]
    pub tree: DmTree,

    /// UUID of the hash file [default: random]
    #[arg(long, value_name = "UUID", value_parser = uuid)]
    pub uuid: Option<Uuid>,

    /// Write the root hash to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub root_hash_file: Option<PathBuf>,

    /// Overwrite HASH and the file with the root hash although they have content
    #[arg(long)]
    pub force: bool,

    /// Write a JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub source: SourceArgs,
}

/// Parameters of a tree of dm-verity.
#[derive(Debug, clap::Args)]
pub struct DmTree {
    /// Digest algorithm of dm-verity [default: sha256]
    #[arg(
        long, value_name = "NAME",
        value_parser = Named::<Algorithm>::of(dm_names), hide_possible_values = true
    )]
    pub hash: Option<Algorithm>,

    /// Size of a block of data, a power of two from 512 to 512K [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = dm_block_size)]
    pub data_block_size: Option<BlockSize>,

    /// Size of a block of hashes, a power of two from 512 to 512K [default: 4K]
    #[arg(long, value_name = "SIZE", value_parser = dm_block_size)]
    pub hash_block_size: Option<BlockSize>,

    /// Number of blocks of data [default: all of the image]
    #[arg(long, value_name = "N", value_parser = Count::of(1..=u64::MAX))]
    pub data_blocks: Option<u64>,

    /// Offset of the hashes in HASH [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub hash_offset: Option<u64>,

    /// HASH has no superblock, only the tree
    #[arg(long)]
    pub no_superblock: bool,
}

/// `blkhash verity verify`
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// Image, device, URL or NBD URI with the data
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub data: OsString,

    /// File or device with the hash tree
    #[arg(value_name = "HASH", value_hint = ValueHint::FilePath)]
    pub hash_file: OsString,

    /// Root hash, or with --fs-verity the digest, in hexadecimal
    #[arg(
        value_name = "ROOT",
        required_unless_present = "root_hash_file",
        conflicts_with = "root_hash_file"
    )]
    pub root: Option<Digest>,

    /// Read the root hash from FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub root_hash_file: Option<PathBuf>,

    #[command(flatten)]
    pub tree: DmTree,

    /// HASH is a Merkle tree of fs-verity, and ROOT the fs-verity digest
    #[arg(
        long,
        conflicts_with_all = [
            "hash", "data_block_size", "hash_block_size", "data_blocks", "hash_offset",
            "no_superblock",
        ]
    )]
    pub fs_verity: bool,

    #[command(flatten)]
    pub fs_tree: FsTree,

    /// Print at most N errors, and count the rest; 0 prints all [default: 100]
    #[arg(long, value_name = "N", value_parser = Count::of(0..=1_000_000_000_u64))]
    pub max_errors: Option<u64>,

    /// Print only what is wrong
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,

    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub source: SourceArgs,
}

fn fs_names() -> Vec<&'static str> {
    names(Construction::FsVerity)
}

fn dm_names() -> Vec<&'static str> {
    names(Construction::DmVerity)
}

fn names(construction: Construction) -> Vec<&'static str> {
    let accepted = Algorithm::ALL.iter().filter(|algorithm| construction.accepts(**algorithm));
    accepted.map(|algorithm| algorithm.name()).collect()
}

fn dm_block_size(text: &str) -> Result<BlockSize, &'static str> {
    let size = parse_block_size(text).ok();
    size.filter(|size| u64::from(*size) <= blkverity::Superblock::MAX_BLOCK_SIZE)
        .ok_or("use a power of two from 512 to 512K")
}

fn uuid(text: &str) -> Result<Uuid, &'static str> {
    let uuid = text.parse().ok().filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH);
    uuid.ok_or("use the form 01234567-89ab-cdef-0123-456789abcdef")
}

const DIGEST_HELP: &str = "\
The digest covers the content that a guest sees. For the digest of the file itself, as fsverity prints it, add \
-f raw.";

const FORMAT_HELP: &str = "\
The hash file is the same for all formats of the image, and the one that veritysetup makes of its raw content. \
DATA and HASH may be one raw file, with --hash-offset after the data.";

const VERIFY_HELP: &str = "\
Exit status is 0 if all data was verified and the tree is intact, 1 if something does not match, 2 if something \
could not be read.";
