//! Merkle trees of dm-verity and fs-verity, in files.
//!
//! [`Layout`] says where each block of a tree lies, [`Superblock`] what a hash file of dm-verity says about
//! its tree. [`TreeFile`] writes the blocks of a [`blkhash::Tree`]. [`Verifier`] is a sink for the digests
//! of blocks that compares them with a stored tree.

#![deny(clippy::missing_errors_doc)]

mod compare;
mod finding;
mod layout;
mod superblock;
mod tree_file;
mod verifier;

pub use finding::{Finding, Problem};
pub use layout::Layout;
pub use superblock::{Superblock, SuperblockError};
pub use tree_file::TreeFile;
pub use verifier::{Summary, Verifier};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
