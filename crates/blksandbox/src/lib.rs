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
//! Other systems have no such rules, and [`Sandbox::IS_SUPPORTED`] is false there. FreeBSD can give up opening files at all
//! ([`Sandbox::keep_open_files`]), macOS nothing.
//!
//! The restrictions hold for the calling thread and the threads that it starts later. The process
//! must have no other threads.

#![deny(clippy::missing_errors_doc)]

mod in_force;
#[cfg(all(target_os = "linux", not(blkhash_portable)))]
mod layers;
#[cfg(all(target_os = "linux", not(blkhash_portable)))]
mod sandbox;

#[cfg(not(all(target_os = "linux", not(blkhash_portable))))]
#[path = "none.rs"]
mod sandbox;

pub use in_force::{InForce, Landlock, Readable, Reading, SystemCalls};
pub use sandbox::Sandbox;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
