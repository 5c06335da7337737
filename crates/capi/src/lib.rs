//! `libblkhash`, the C library over the crate `blkhash`. `include/blkhash.h` documents it.
//!
//! What C hands in is checked here: null pointers, sizes, misuse, calls in a child process. No panic
//! passes through (`boundary.rs`): it marks the hash as failed. The first error sticks, so that a
//! caller who overlooks it gets no checksum of half the content.

#![allow(unsafe_code)]

mod aio;
mod boundary;
mod completions;
mod hash;
mod info;
mod lent;
mod options;
mod process;
