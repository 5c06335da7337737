//! What is wrong with a layer.

use blkfs::{Mismatch, Problem, ProblemKind};

/// A structure that does not match its checksum, or a part that could not be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// Name of the structure, in the words of the layer's own documentation.
    pub structure: &'static str,
    /// Offset in the layer in bytes.
    pub offset: u64,
    /// Length in bytes, 0 if unknown.
    pub length: u64,
    /// Offset on the disk in bytes.
    pub disk_offset: u64,
    /// Number of the object that the structure belongs to, if it belongs to one.
    pub object: Option<u64>,
    /// Paths of the files that are hit, as stored.
    pub paths: Vec<Vec<u8>>,
    /// Description.
    pub reason: String,
    /// Number of findings that this one stands for.
    pub count: u64,
}

/// Kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// A checksum does not match.
    Mismatch,
    /// The bytes violate the rules of the layer.
    Damaged,
    /// The image could not be read.
    Unreadable,
    /// A limit was reached, or a feature is not read.
    Skipped,
}

impl FindingKind {
    /// Returns the name for machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mismatch => "mismatch",
            Self::Damaged => "damaged",
            Self::Unreadable => "unreadable",
            Self::Skipped => "skipped",
        }
    }
}

impl Finding {
    /// Creates a finding without an owner. Its place on the disk is set later.
    pub(crate) fn new(
        kind: FindingKind,
        structure: &'static str,
        offset: u64,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            structure,
            offset,
            length: 0,
            disk_offset: offset,
            object: None,
            paths: Vec::new(),
            reason: reason.into(),
            count: 1,
        }
    }
}

impl From<ProblemKind> for FindingKind {
    fn from(kind: ProblemKind) -> Self {
        match kind {
            ProblemKind::Damaged => Self::Damaged,
            ProblemKind::Unreadable => Self::Unreadable,
            ProblemKind::Skipped => Self::Skipped,
        }
    }
}

impl From<Mismatch> for Finding {
    fn from(mismatch: Mismatch) -> Self {
        let Mismatch { structure, offset, length, object, reason } = mismatch;
        let finding = Self::new(FindingKind::Mismatch, structure, offset, reason);
        Self { length, object, ..finding }
    }
}

impl From<Problem> for Finding {
    fn from(problem: Problem) -> Self {
        let Problem { kind, structure, offset, object, reason } = problem;
        Self { object, ..Self::new(kind.into(), structure, offset, reason) }
    }
}
