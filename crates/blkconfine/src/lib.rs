//! Takes from the calling thread, and from the threads and programs that it starts, what reading an
//! image never needs: capabilities, system calls that change files, the system or other processes, and
//! files that are not listed ([`files`]).
//!
//! Each holds without the others. They need no privilege, only `no_new_privs`, and can not be undone.
//! Dropping capabilities and entering a [`Filter`] that was built allocate nothing, so both can be done
//! between `fork` and `exec`.

pub mod capabilities;
pub mod files;
mod filter;

pub use filter::{Families, Filter};

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
