//! How blocks compare, as it is counted and printed.

use std::ffi::OsString;

use blkhash::Comparison;
use blkimage::partition::Partition;

/// What is compared, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Name of the left side.
    pub left: OsString,
    /// Name of the right side.
    pub right: OsString,
    /// Partitions of the image.
    pub partitions: Vec<Partition>,
}

/// How a block compares. Unlike [`Comparison`], it includes blocks that only one side has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Equal,
    Zeros,
    Changed,
    Zeroed,
    Written,
    /// Only the left side has the block.
    LeftOnly,
    /// Only the right side has the block.
    RightOnly,
    Unknown,
}

impl Kind {
    /// All kinds, in the order of the counts.
    pub const ALL: [Self; 8] = [
        Self::Equal,
        Self::Zeros,
        Self::Changed,
        Self::Zeroed,
        Self::Written,
        Self::LeftOnly,
        Self::RightOnly,
        Self::Unknown,
    ];

    /// Returns whether the sides differ.
    pub fn is_different(self) -> bool {
        !matches!(self, Self::Equal | Self::Zeros | Self::Unknown)
    }

    /// Returns whether ranges of this kind are listed.
    pub fn is_listed(self) -> bool {
        self.is_different() || self == Self::Unknown
    }

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Zeros => "zeros",
            Self::Changed => "changed",
            Self::Zeroed => "zeroed",
            Self::Written => "written",
            Self::LeftOnly => "left-only",
            Self::RightOnly => "right-only",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the words for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::LeftOnly => "only in left",
            Self::RightOnly => "only in right",
            Self::Unknown => "not known",
            Self::Zeros => "zeros in both",
            _ => self.name(),
        }
    }
}

impl From<Comparison> for Kind {
    fn from(comparison: Comparison) -> Self {
        match comparison {
            Comparison::Equal => Self::Equal,
            Comparison::Zeros => Self::Zeros,
            Comparison::Changed => Self::Changed,
            Comparison::Zeroed => Self::Zeroed,
            Comparison::Written => Self::Written,
            Comparison::Unknown => Self::Unknown,
        }
    }
}

/// Number of blocks of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Kind::ALL.len()]);

impl Counts {
    pub fn add(&mut self, kind: Kind, count: u64) {
        self.0[kind as usize] += count;
    }

    pub fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// Returns the number of all blocks.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of blocks that differ.
    pub fn different(&self) -> u64 {
        Kind::ALL.into_iter().filter(|kind| kind.is_different()).map(|kind| self.of(kind)).sum()
    }

    /// Lists the kinds that occur, those that differ first, as in `3 changed, 125 equal`.
    pub fn text(&self) -> String {
        let (different, others): (Vec<_>, Vec<_>) =
            Kind::ALL.into_iter().partition(|kind| kind.is_different());
        let kinds = different.into_iter().chain(others).filter(|kind| self.of(*kind) > 0);
        let parts: Vec<_> =
            kinds.map(|kind| format!("{} {}", self.of(kind), kind.text())).collect();
        if parts.is_empty() { "not compared".to_owned() } else { parts.join(", ") }
    }
}

/// Adjacent blocks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the first block.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    pub kind: Kind,
}

/// Joins adjacent runs of one kind.
#[derive(Default)]
pub struct Joined(Option<Run>);

impl Joined {
    /// Appends a run. Returns the run before it, if that has ended.
    pub fn push(&mut self, run: Run) -> Option<Run> {
        match &mut self.0 {
            Some(last) if last.kind == run.kind && last.first + last.count == run.first => {
                last.count += run.count;
                None
            }
            last => last.replace(run),
        }
    }

    /// Returns the last run.
    pub fn end(&mut self) -> Option<Run> {
        self.0.take()
    }
}
