//! Merkle trees of dm-verity and fs-verity, in files.
//!
//! [`StoredTree`] describes a tree in a file: with a [`Superblock`] of dm-verity, without one, or a tree of fs-verity.
//! [`TreeFile`] writes the blocks of a [`blkhash::Tree`] and the superblock. [`Verifier`] is a sink for the digests of
//! blocks that compares them with the stored tree.
//!
//! This crate reads no data: `blksum::verity` does the pass over an image.

#![deny(clippy::missing_errors_doc)]

mod compare;
mod error;
mod finding;
mod layout;
mod stored;
mod superblock;
mod tree_file;
mod verifier;

pub use error::Error;
pub use finding::{Finding, Problem};
pub use layout::Layout;
pub use stored::StoredTree;
pub use superblock::{Superblock, SuperblockError};
pub use tree_file::TreeFile;
pub use verifier::{Summary, Verifier};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
