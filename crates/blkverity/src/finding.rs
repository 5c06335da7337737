//! Findings of a verification: blocks that do not match.

/// Blocks that do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The problem that they have.
    pub problem: Problem,
    /// Number of the first block, of the data or of the level of the tree.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    /// Offset of the first block in the data or in the file of the tree, in bytes.
    pub offset: u64,
    /// Length of the blocks in bytes. The last block of the data may be shorter.
    pub length: u64,
}

/// A problem of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Blocks of data with other digests than the tree has.
    Data,
    /// Blocks of data that cannot be read.
    Unreadable,
    /// Blocks of data that cannot be verified: the tree is damaged above them, and a tree that is built
    /// from them has another digest. Some of them may be intact.
    Unverified,
    /// Blocks of this level of the tree that are damaged.
    Tree(usize),
    /// Blocks of this level of the tree with nonzero bytes next to the digests.
    Spare(usize),
}

/// Joins adjacent findings before they are reported.
pub(crate) struct Joiner<'a> {
    last: Option<Finding>,
    report: &'a mut (dyn FnMut(&Finding) + Send),
}

impl<'a> Joiner<'a> {
    pub(crate) fn new(report: &'a mut (dyn FnMut(&Finding) + Send)) -> Self {
        Self { last: None, report }
    }

    pub(crate) fn take(&mut self, finding: Finding) {
        if let Some(last) = &mut self.last
            && last.problem == finding.problem
            && last.first + last.count == finding.first
        {
            last.count += finding.count;
            last.length += finding.length;
            return;
        }
        self.flush();
        self.last = Some(finding);
    }

    pub(crate) fn flush(&mut self) {
        if let Some(last) = self.last.take() {
            (self.report)(&last);
        }
    }
}
