//! Restricts the calling thread, and the threads and programs that it starts, to the needs of
//! reading disk images. Drops capabilities, refuses system calls that change files, the system or
//! other processes, and refuses files that are not listed ([`files`]).
//!
//! Each restriction works without the others, needs no privilege except `no_new_privs`, and cannot
//! be undone. Dropping capabilities and entering a prepared [`Filter`] do not allocate, so both are
//! safe between `fork` and `exec`.
//!
//! # Stability
//!
//! The interface is not stable, not even after 1.0: it serves blkimage and blksandbox, and has types of
//! landlock and rustix. A program that reads images uses blksandbox.

#![cfg(target_os = "linux")]
#![deny(clippy::missing_errors_doc)]

pub mod capabilities;
pub mod files;
mod filter;

pub use filter::{Families, Filter};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
