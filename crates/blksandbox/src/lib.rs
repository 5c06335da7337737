//! A process that reads images contains itself: from [`Sandbox::enforce`] on it opens what it was asked
//! for and nothing else, writes, creates and removes nothing, and neither listens nor connects where that
//! was not asked for.
//!
//! Three layers of the kernel do that, each without the others: Landlock restricts opening, with what
//! its version can do; a filter refuses system calls that change files, the system or other processes;
//! and of root's capabilities only those stay that reading takes. Where the kernel lacks a layer, the
//! process works without it, and [`InForce`] tells. What is open stays open, and `stat` tells of any
//! file. Which references are followed is for the gate in blkimage to say; this is what holds if the
//! gate, a decompressor or a library has a bug.
//!
//! It holds for the calling thread and those that it starts from then on: there must be no others.

mod in_force;
mod layers;
mod sandbox;

pub use in_force::{InForce, Landlock, Readable, Reading, SystemCalls};
pub use sandbox::Sandbox;

/// Its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
