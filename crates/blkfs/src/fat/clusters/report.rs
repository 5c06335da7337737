//! What a walk reports, with a limit for what is wrong.

use std::fmt;

use crate::error::{Error, Result};
use crate::visitor::{
    Entry, EntryKind, Extent, Mismatch, ObjectId, Owner, Problem, ProblemKind, Visitor, Wanted,
};

/// Passes to a visitor what is wanted.
pub(crate) struct Report<'a> {
    visitor: &'a mut dyn Visitor,
    wanted: Wanted,
    /// The number of mismatches and problems that were reported.
    reports: usize,
}

/// A structure: its name, its place, and the object that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Structure {
    pub name: &'static str,
    pub offset: u64,
    pub object: Option<ObjectId>,
}

impl Structure {
    pub fn new(name: &'static str, offset: u64) -> Self {
        Self { name, offset, object: None }
    }

    pub fn of(self, object: ObjectId) -> Self {
        Self { object: Some(object), ..self }
    }
}

impl<'a> Report<'a> {
    pub fn new(visitor: &'a mut dyn Visitor, wanted: Wanted) -> Self {
        Self { visitor, wanted, reports: 0 }
    }

    /// Returns what is wanted.
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    pub fn extent(&mut self, offset: u64, length: u64, owner: Owner) {
        if self.wanted.extents && length > 0 {
            self.visitor.extent(Extent { offset, length, owner });
        }
    }

    /// Reports bytes from `start` to `end` that belong to a structure.
    pub fn metadata(&mut self, structure: &'static str, start: u64, end: u64) {
        let owner = Owner::Metadata { structure, object: None };
        self.extent(start, end.saturating_sub(start), owner);
    }

    pub fn entry(&mut self, parent: ObjectId, object: ObjectId, name: &[u8]) {
        if self.wanted.names && !name.is_empty() {
            self.visitor.entry(Entry { parent, object, name, kind: EntryKind::Child });
        }
    }

    pub fn matched(&mut self, structure: &'static str, count: u64, bytes: u64) {
        if self.wanted.checks && count > 0 {
            self.visitor.matched(structure, count, bytes);
        }
    }

    pub fn mismatch(&mut self, structure: Structure, length: u64, reason: impl fmt::Display) {
        if self.wanted.checks && self.is_room() {
            let Structure { name, offset, object } = structure;
            let reason = reason.to_string();
            self.visitor.mismatch(Mismatch { structure: name, offset, length, object, reason });
        }
    }

    pub fn damaged(&mut self, structure: Structure, reason: impl fmt::Display) {
        self.problem(ProblemKind::Damaged, structure, reason);
    }

    pub fn skipped(&mut self, structure: Structure, reason: impl fmt::Display) {
        self.problem(ProblemKind::Skipped, structure, reason);
    }

    /// Reports why a structure could not be read.
    pub fn failed(&mut self, structure: Structure, error: &Error) {
        let kind = match error {
            Error::Image(_) => ProblemKind::Unreadable,
            _ => ProblemKind::Damaged,
        };
        self.problem(kind, structure, error);
    }

    /// Reports that bytes were read.
    ///
    /// # Errors
    ///
    /// Fails if the visitor stops the walk.
    pub fn advance(&mut self, bytes: u64) -> Result<()> {
        if self.visitor.advance(bytes).is_break() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    fn problem(&mut self, kind: ProblemKind, structure: Structure, reason: impl fmt::Display) {
        if self.is_room() {
            let Structure { name, offset, object } = structure;
            let reason = reason.to_string();
            self.visitor.problem(Problem { kind, structure: name, offset, object, reason });
        }
    }

    /// Returns whether one more mismatch or problem may be reported.
    fn is_room(&mut self) -> bool {
        if self.reports == MAX_REPORTS {
            self.visitor.problem(Problem {
                kind: ProblemKind::Skipped,
                structure: "volume",
                offset: 0,
                object: None,
                reason: format!(
                    "more than {MAX_REPORTS} problems, of which the others are not reported"
                ),
            });
        }
        self.reports = self.reports.saturating_add(1);
        self.reports <= MAX_REPORTS
    }
}

/// Maximum number of mismatches and problems of a volume that are reported.
/// Limit in problems.
const MAX_REPORTS: usize = 1 << 14;
