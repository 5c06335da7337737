//! Names of the relations of blocks, for output.

use std::ffi::OsString;

use blkimage::partition::Partition;
use blksum::Relation;

/// The compared sides, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Name of the left side.
    pub left: OsString,
    /// Name of the right side.
    pub right: OsString,
    /// Partitions of the image.
    pub partitions: Vec<Partition>,
}

/// Returns the words for people.
pub fn text(relation: Relation) -> &'static str {
    match relation {
        Relation::LeftOnly => "only in left",
        Relation::RightOnly => "only in right",
        Relation::Unknown => "not known",
        Relation::Zeros => "zeros in both",
        _ => relation.name(),
    }
}

/// Returns the word for a count.
pub fn plural(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// Number of blocks with each relation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Relation::ALL.len()]);

impl Counts {
    pub fn add(&mut self, relation: Relation, count: u64) {
        self.0[relation as usize] += count;
    }

    pub fn of(&self, relation: Relation) -> u64 {
        self.0[relation as usize]
    }

    /// Returns the number of all blocks.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of blocks that differ.
    pub fn different(&self) -> u64 {
        Relation::ALL.into_iter().filter(|it| it.is_different()).map(|it| self.of(it)).sum()
    }

    /// Lists the relations that occur, those that differ first, as in `3 changed, 125 equal`.
    pub fn text(&self) -> String {
        let (different, others): (Vec<_>, Vec<_>) =
            Relation::ALL.into_iter().partition(|it| it.is_different());
        let found = different.into_iter().chain(others).filter(|it| self.of(*it) > 0);
        let parts: Vec<_> = found.map(|it| format!("{} {}", self.of(it), text(it))).collect();
        if parts.is_empty() { "not compared".to_owned() } else { parts.join(", ") }
    }
}
