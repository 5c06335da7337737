//! What was found in the journal: what it holds that is not in place, and which checksums match.

use super::blocks::Patch;
use super::checksum::Check;
use crate::visitor::{Mismatch, Problem, ProblemKind, Visitor, Wanted};

/// What was found in a journal.
#[derive(Default)]
pub(super) struct Journal {
    /// Structures whose checksums match: name, number and bytes.
    pub matched: Vec<(&'static str, u64, u64)>,
    pub mismatches: Vec<Mismatch>,
    pub problems: Vec<Problem>,
    /// Blocks that replay would write, sorted.
    pub patches: Vec<Patch>,
    /// Whether there may be blocks to replay that cannot be read.
    pub is_unsettled: bool,
    /// Whether there are fast commits, which are not read.
    pub has_fast_commits: bool,
}

impl Journal {
    /// Reports what was found.
    pub fn report(&self, wanted: Wanted, visitor: &mut dyn Visitor) {
        if wanted.checks {
            for (structure, count, bytes) in &self.matched {
                visitor.matched(structure, *count, *bytes);
            }
            self.mismatches.iter().for_each(|it| visitor.mismatch(it.clone()));
        }
        self.problems.iter().for_each(|it| visitor.problem(it.clone()));
        if (self.is_unsettled || self.has_fast_commits) && (wanted.extents || wanted.names) {
            let (kind, structure) = (ProblemKind::Skipped, "journal");
            let reason = "changes in the journal are not taken into account".to_owned();
            visitor.problem(Problem { kind, structure, offset: 0, object: None, reason });
        }
    }

    /// Records that the journal cannot be read.
    pub fn fail(&mut self, offset: u64, replay: Option<u64>, reason: &str) {
        self.is_unsettled = replay.is_some();
        self.damaged(offset, reason);
    }

    pub fn damaged(&mut self, offset: u64, reason: &str) {
        let reason = reason.to_owned();
        let kind = ProblemKind::Damaged;
        self.problems.push(Problem { kind, structure: "journal", offset, object: None, reason });
    }

    /// Records whether a checksum matches. Returns whether it does, or there is none.
    pub fn check(
        &mut self,
        check: Option<Check>,
        structure: &'static str,
        offset: u64,
        length: u64,
    ) -> bool {
        let Some(check) = check else { return true };
        if !check.is_match() {
            let reason = check.reason();
            self.mismatches.push(Mismatch { structure, offset, length, object: None, reason });
            return false;
        }
        match self.matched.iter_mut().find(|it| it.0 == structure) {
            Some(sum) => *sum = (structure, sum.1 + 1, sum.2 + length),
            None => self.matched.push((structure, 1, length)),
        }
        true
    }
}
