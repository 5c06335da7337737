//! Takes from the calling thread, and from the threads and programs that it starts, what reading an
//! image never needs: capabilities, and system calls that change files, the system or other
//! processes.
//!
//! Both hold beside Landlock and without it. They need no privilege, only `no_new_privs`, and can
//! not be undone. Nothing here allocates once a [`Filter`] is built, so both can be entered between
//! `fork` and `exec`.

pub mod capabilities;
mod filter;

pub use filter::{Families, Filter};

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
