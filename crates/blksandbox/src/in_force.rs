//! What a process may do after [`Sandbox::enforce`](crate::Sandbox::enforce), for programs that tell it.

use std::io;
use std::path::PathBuf;

/// The layers of a sandbox that hold, and what it allows.
#[derive(Debug)]
#[non_exhaustive]
pub struct InForce {
    /// Whether rules for files, sockets and signals hold.
    pub landlock: Landlock,
    /// Whether programs that are run get no more privileges than their parent.
    pub no_new_privileges: bool,
    /// Whether the filter of system calls holds.
    pub system_calls: SystemCalls,
    /// The names of the capabilities that are left, or why all are.
    pub capabilities: io::Result<Vec<&'static str>>,
    /// What may be read beside the system's own files. Only Landlock restricts it.
    pub reading: Reading,
    /// Whether programs of the system may be run. Only Landlock restricts it.
    pub runs_programs: bool,
    /// The TCP ports that may be connected to, in ascending order. Only Landlock restricts them.
    pub ports: Vec<u16>,
}

/// Whether Landlock is in force.
#[derive(Debug)]
pub enum Landlock {
    /// In force, with the interface of this version (ABI).
    Restricted(i32),
    /// The kernel has it, and the system switches it off.
    NotEnabled,
    /// The kernel lacks it.
    NotImplemented,
    /// It failed, and is not used.
    Failed(io::Error),
}

impl Landlock {
    /// Whether it is in force.
    pub fn is_restricted(&self) -> bool {
        matches!(self, Self::Restricted(_))
    }
}

/// Whether system calls are filtered.
#[derive(Debug)]
pub enum SystemCalls {
    /// They are.
    Filtered,
    /// The kernel cannot.
    NotImplemented,
    /// There is no filter for this CPU.
    UnknownCpu,
    /// It failed.
    Failed(io::Error),
}

/// What may be read.
#[derive(Debug)]
pub enum Reading {
    /// Every file there is.
    Everything,
    /// The files that were allowed.
    Files {
        /// The first few, in the order in which they were allowed.
        names: Vec<Readable>,
        /// How many there are in addition.
        others: usize,
    },
}

/// A name of what may be read, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readable {
    /// A file, or `-` for standard input.
    File(PathBuf),
    /// Whatever lies beneath a folder.
    Beneath(PathBuf),
}
