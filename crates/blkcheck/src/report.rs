//! The result of a check.

use crate::finding::FindingKind;
use crate::place::Place;

/// The result for a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The layers in the order of the disk. There is at least one.
    pub rows: Vec<Row>,
}

/// The result for a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// Where it is.
    pub place: Place,
    /// Offset of its first byte on the disk.
    pub offset: u64,
    /// Length of the part of the disk that it is in, in bytes.
    pub length: u64,
    /// Kind of the layer, such as `ext4`, or `unknown`.
    pub kind: &'static str,
    /// Label or name as stored, if it has one.
    pub label: Option<Vec<u8>>,
    /// UUID or serial number, if it has one.
    pub uuid: Option<String>,
    /// The structures whose checksums match, by name.
    pub verified: Vec<Verified>,
    /// Number of structures whose checksums do not match.
    pub mismatches: u64,
    /// Number of parts that violate the rules of the layer.
    pub damaged: u64,
    /// Number of parts that cannot be read.
    pub unreadable: u64,
    /// Number of parts that are not verified, because a limit was reached or a feature is not read.
    pub skipped: u64,
    /// Bytes of content without a checksum. `None` if unknown.
    pub unprotected: Option<u64>,
    /// What the check of the structure of an image counted, if this is the layer of an image.
    pub structure: Option<blkimage::check::Summary>,
    /// What a user should know of the layer: one sentence each, without a full stop.
    pub remarks: Vec<String>,
}

/// Structures of one kind whose checksums match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Name of the structure.
    pub structure: &'static str,
    /// Number of structures.
    pub count: u64,
    /// Length of what the checksums cover in bytes.
    pub bytes: u64,
}

/// The verdict on a layer or a disk, from good to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// All checksums match.
    #[default]
    Clean,
    /// Some checksums could not be verified. All others match.
    Incomplete,
    /// A checksum does not match, or bytes violate the rules of a layer.
    Damaged,
}

impl Verdict {
    /// Returns the name for machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Incomplete => "incomplete",
            Self::Damaged => "damaged",
        }
    }
}

impl Report {
    /// Returns the worst verdict of the layers.
    pub fn verdict(&self) -> Verdict {
        self.rows.iter().map(Row::verdict).max().unwrap_or_default()
    }
}

impl Row {
    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self { mismatches: 1.., .. } | Self { damaged: 1.., .. } => Verdict::Damaged,
            Self { unreadable: 1.., .. } | Self { skipped: 1.., .. } => Verdict::Incomplete,
            _ => Verdict::Clean,
        }
    }

    /// Returns the number of structures and of bytes whose checksums match.
    pub fn verified_total(&self) -> (u64, u64) {
        self.verified.iter().fold((0, 0), |(count, bytes), it| {
            (u64::saturating_add(count, it.count), u64::saturating_add(bytes, it.bytes))
        })
    }

    pub(crate) fn matched(&mut self, structure: &'static str, count: u64, bytes: u64) {
        match self.verified.binary_search_by_key(&structure, |it| it.structure) {
            Ok(index) => {
                let sum = &mut self.verified[index];
                sum.count = sum.count.saturating_add(count);
                sum.bytes = sum.bytes.saturating_add(bytes);
            }
            Err(index) => self.verified.insert(index, Verified { structure, count, bytes }),
        }
    }

    pub(crate) fn count(&mut self, kind: FindingKind, count: u64) {
        let sum = match kind {
            FindingKind::Mismatch => &mut self.mismatches,
            FindingKind::Damaged => &mut self.damaged,
            FindingKind::Unreadable => &mut self.unreadable,
            FindingKind::Skipped => &mut self.skipped,
        };
        *sum = sum.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_counts() {
        let mut report = Report { rows: vec![Row::default(), Row::default()] };
        assert_eq!(report.verdict(), Verdict::Clean);
        report.rows[0].count(FindingKind::Skipped, 1);
        assert_eq!(report.verdict(), Verdict::Incomplete);
        report.rows[1].count(FindingKind::Mismatch, 1);
        assert_eq!(report.verdict(), Verdict::Damaged);
    }

    #[test]
    fn structures_are_counted_by_name() {
        let mut row = Row::default();
        for (name, count) in [("b", 1), ("a", 2), ("b", u64::MAX)] {
            row.matched(name, count, 10);
        }
        let expected = [("a", 2, 10), ("b", u64::MAX, 20)];
        let expected =
            expected.map(|(structure, count, bytes)| Verified { structure, count, bytes });
        assert_eq!(row.verified, expected);
        assert_eq!(row.verified_total(), (u64::MAX, 30));
    }
}
