//! `libblksum`, the C library over the crates `blksum`, `blkimage`, `blkmap`, `blkbtrfs`, `blkcheck` and `blkfs`. `include/blksum.h` documents it.
//!
//! Arguments from C are checked here: null pointers, freed objects, sizes, calls in a child process (`handle.rs`). Errors
//! become objects, and no panic crosses the boundary (`boundary.rs`). Everything else is done by the crates.

#![allow(unsafe_code)]

mod boundary;
mod btrfs;
mod check;
mod diff;
mod error;
mod error_object;
mod failure;
mod handle;
mod image;
mod info;
mod job;
mod maker;
mod map;
mod options;
mod owners;
mod pass;
mod settings;

// A copy of what a fork does to memory would have to change with the original.
#[path = "../../capi/src/process.rs"]
mod process;
