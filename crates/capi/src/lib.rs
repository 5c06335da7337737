//! `libblkhash`, the C library over the crate `blkhash`. `include/blkhash.h` documents it.
//!
//! Arguments from C are checked here: null pointers, sizes, misuse, calls in a child process. No
//! panic crosses the boundary (`boundary.rs`). It marks the hash as failed instead. A hash keeps
//! its first error, so that a caller that ignores it cannot get a checksum of half the content.

#![allow(unsafe_code)]

mod aio;
mod boundary;
mod completions;
mod hash;
mod info;
mod lent;
mod options;
mod process;
