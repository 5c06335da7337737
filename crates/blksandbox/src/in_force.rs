//! Permissions of a process after [`Sandbox::enforce`](crate::Sandbox::enforce), for programs that
//! show them.

use std::io;
use std::path::PathBuf;

/// Layers of a sandbox that are in force, and what it allows.
#[derive(Debug)]
#[non_exhaustive]
pub struct InForce {
    /// State of the rules for files, sockets and signals.
    pub landlock: Landlock,
    /// Whether programs that the process runs get no more privileges than their parent.
    pub no_new_privileges: bool,
    /// State of the filter of system calls.
    pub system_calls: SystemCalls,
    /// Names of the capabilities that are left, or the reason why none were dropped.
    pub capabilities: io::Result<Vec<&'static str>>,
    /// Files that may be read in addition to the system's own. Only Landlock restricts this.
    pub reading: Reading,
    /// Whether programs of the system may be run. Landlock and the filter of system calls restrict this.
    pub runs_programs: bool,
    /// TCP ports that may be connected to, in ascending order. Only Landlock restricts this.
    pub ports: Vec<u16>,
}

/// State of Landlock.
#[derive(Debug)]
pub enum Landlock {
    /// In force, with this version of the interface (ABI).
    Restricted(i32),
    /// Supported by the kernel but disabled on this system.
    NotEnabled,
    /// Not supported by the kernel.
    NotImplemented,
    /// Failed, and not in force.
    Failed(io::Error),
}

impl Landlock {
    /// Returns whether Landlock is in force.
    pub fn is_restricted(&self) -> bool {
        matches!(self, Self::Restricted(_))
    }
}

/// State of the filter of system calls.
#[derive(Debug)]
pub enum SystemCalls {
    /// In force.
    Filtered,
    /// Not supported by the kernel.
    NotImplemented,
    /// There is no filter for this CPU.
    UnknownCpu,
    /// Failed, and not in force.
    Failed(io::Error),
}

/// Files that may be read.
#[derive(Debug)]
pub enum Reading {
    /// All files.
    Everything,
    /// The files that were allowed.
    Files {
        /// The first few names, in the order in which they were allowed.
        names: Vec<Readable>,
        /// Number of further names.
        others: usize,
    },
}

/// The name of a readable file or folder, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readable {
    /// A file, or `-` for standard input.
    File(PathBuf),
    /// All files beneath a folder.
    Beneath(PathBuf),
}
