//! Layers between a disk and its file systems, and the checksums of their headers: LUKS and LVM.

pub mod luks;
pub mod lvm;

use crate::error::Error;
use crate::visitor::{Mismatch, Problem, ProblemKind};

/// The structures of a header that were verified, and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The structures whose checksums match.
    pub matched: Vec<Matched>,
    /// The structures whose checksums do not match.
    pub mismatches: Vec<Mismatch>,
    /// The parts that could not be read or followed.
    pub problems: Vec<Problem>,
    /// What a user should know besides these: one sentence each, without a full stop.
    pub remarks: Vec<String>,
}

/// A structure whose checksum matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched {
    /// Name of the structure.
    pub structure: &'static str,
    /// Length of what the checksum covers in bytes.
    pub length: u64,
}

impl Checks {
    fn matched(&mut self, structure: &'static str, length: u64) {
        self.matched.push(Matched { structure, length });
    }

    fn mismatch(&mut self, structure: &'static str, offset: u64, length: u64, reason: String) {
        self.mismatches.push(Mismatch { structure, offset, length, object: None, reason });
    }

    fn problem(&mut self, kind: ProblemKind, structure: &'static str, offset: u64, reason: String) {
        self.problems.push(Problem { kind, structure, offset, object: None, reason });
    }

    fn damaged(&mut self, structure: &'static str, offset: u64, reason: impl Into<String>) {
        self.problem(ProblemKind::Damaged, structure, offset, reason.into());
    }

    /// Adds the reason why a structure could not be read.
    fn failed(&mut self, structure: &'static str, offset: u64, error: &Error) {
        let kind = match error {
            Error::Image(_) => ProblemKind::Unreadable,
            Error::Unsupported(_) => ProblemKind::Skipped,
            Error::Damaged { .. } | Error::Cancelled => ProblemKind::Damaged,
        };
        self.problem(kind, structure, offset, error.to_string());
    }
}
