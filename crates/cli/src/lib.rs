//! The commands. Each is a thin binary over a module of this library, so that their manual pages
//! and completions are made from the very argument parsers that they use.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the modules of a command are documented for its authors"
)]

pub mod blkhash;
pub mod blksum;
mod implementation;
mod json;
mod messages;
mod open;
mod progress;
mod quote;
mod stdio;
mod usage;
mod values;

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
