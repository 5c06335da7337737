//! The commands `blksum` and `blkhash`. Each is a thin binary over a module of this library, so that
//! manual pages and completions are generated from the argument parsers that the commands use.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the modules of a command are documented for its authors"
)]

pub mod blkcopy;
pub mod blkhash;
pub mod blksum;
mod image;
mod implementation;
mod json;
mod map;
mod messages;
mod outputs;
mod problem;
mod progress;
mod quote;
pub mod records;
mod size;
mod status_line;
mod stdio;
mod trust;
mod usage;
mod value;
mod values;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
