//! Restricts a process that reads disk images. After [`Sandbox::enforce`], the process can open
//! only the images it was asked for and the files that they may refer to. It cannot write, create
//! or remove files, and it cannot listen or connect unless this was allowed.
//!
//! Three independent layers of the kernel enforce this. Landlock restricts the opening of files, as
//! far as the kernel's version allows. A filter refuses system calls that change files, the system
//! or other processes. All capabilities of root except those for reading are dropped. If the kernel
//! lacks a layer, the process runs without it, and [`InForce`] shows this. Open files stay open,
//! and `stat` works on any file. The gate in blkimage decides which references of an image are
//! followed. The sandbox limits the damage if the gate, a decompressor or a library has a bug.
//!
//! The restrictions hold for the calling thread and the threads that it starts later. The process
//! must have no other threads.

#![deny(clippy::missing_errors_doc)]

mod in_force;
mod layers;
mod sandbox;

pub use in_force::{InForce, Landlock, Readable, Reading, SystemCalls};
pub use sandbox::Sandbox;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
