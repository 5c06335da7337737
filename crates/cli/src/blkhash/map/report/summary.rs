//! The summary of a comparison, as text.

use blksum::map::AuditSummary;
use blksum::{Relation, Sides};

use super::Differences;
use crate::blkhash::map::relations::{self, plural};
use crate::size::Bytes;

impl Differences {
    /// Returns the summary as a line without its end.
    pub(super) fn summary_text(&self) -> String {
        if let Some(audit) = &self.audit {
            return self.audit_text(audit);
        }
        let counts = &self.counts;
        let (different, unknown) = (counts.different(), counts.of(Relation::Unknown));
        let known = counts.total() - unknown;
        let mut text = if different > 0 {
            let (blocks, ranges) = (counts.total() + self.ignored, self.ranges);
            let unreadable = counts.of(Relation::Unreadable);
            let differ = match unreadable {
                0 if self.has_ranges => {
                    plural(different, "is in a range that differs", "are in ranges that differ")
                }
                0 => plural(different, "differs", "differ"),
                _ if unreadable == different => "cannot be read",
                _ => "differ or cannot be read",
            };
            let mut parts = Vec::new();
            if unreadable > 0 && unreadable < different {
                parts.push(format!("{unreadable} unreadable"));
            }
            for kind in [Relation::Equal, Relation::Zeros] {
                if counts.of(kind) > 0 {
                    parts.push(format!("{} {}", counts.of(kind), relations::text(kind)));
                }
            }
            if unknown > 0 {
                parts.push(self.unknown_text());
            }
            if self.ignored > 0 {
                parts.push(format!("{} in free space ignored", self.ignored));
            }
            let others =
                if parts.is_empty() { parts.join("") } else { format!("; {}", parts.join(", ")) };
            let usages = match self.usages.text() {
                usages if usages.is_empty() => usages,
                usages => format!(": {usages}"),
            };
            format!(
                "{different} of {blocks} {} {differ}, {}, in {ranges} {}{usages}{others}",
                plural(blocks, "block", "blocks"),
                Bytes(self.bytes),
                plural(ranges, "range", "ranges"),
            )
        } else if counts.total() == 0 && self.sides.part.is_some() {
            "nothing to compare: this part has no blocks".to_owned()
        } else if known == 0 && unknown > 0 && self.has_ranges {
            format!("nothing to compare: {}", self.unknown_text())
        } else if known == 0 && unknown > 0 {
            format!(
                "nothing to compare: {unknown} {} not known",
                plural(unknown, "block is", "blocks are")
            )
        } else {
            let mut others = String::new();
            if unknown > 0 {
                others += &format!(", {}", self.unknown_text());
            }
            if self.ignored > 0 {
                let verbs = plural(self.ignored, "differs and is", "differ and are");
                others += &format!("; {} in free space {verbs} ignored", self.ignored);
            }
            format!("no differences in {known} {}{others}", plural(known, "block", "blocks"))
        };
        if let Some(note) = larger_side(self.sides) {
            text += &format!("; {note}");
        }
        text
    }

    /// Returns the summary of an audit as a line without its end.
    fn audit_text(&self, audit: &AuditSummary) -> String {
        let AuditSummary { missed, listed, needless, needless_bytes, unknown, .. } = *audit;
        let blocks = |count| plural(count, "block", "blocks");
        let mut text = match missed {
            0 => format!("every change is listed: {listed} {} changed", blocks(listed)),
            _ => format!(
                "{missed} {} changed and {} not listed, {}, in {} {}; {listed} changed and {} listed",
                blocks(missed),
                plural(missed, "is", "are"),
                Bytes(self.bytes),
                self.ranges,
                plural(self.ranges, "range", "ranges"),
                plural(listed, "is", "are"),
            ),
        };
        if needless > 0 {
            let percent = (needless_bytes as f64 / audit.listed_bytes.max(1) as f64) * 100.0;
            text += &format!(
                "; {needless} listed {} equal, {} or {percent:.0} % of the list",
                plural(needless, "block is", "blocks are"),
                Bytes(needless_bytes)
            );
        }
        if unknown > 0 {
            text += &format!("; {unknown} not known");
        }
        text
    }

    /// Returns how many blocks are not known. Those in no range are part of the image, but nothing says what they hold.
    fn unknown_text(&self) -> String {
        let unknown = self.counts.of(Relation::Unknown);
        match self.has_ranges {
            true => format!("{unknown} not compared ({})", Bytes(self.unknown_bytes)),
            false => format!("{unknown} {}", relations::text(Relation::Unknown)),
        }
    }
}

/// Says which side is larger.
fn larger_side(sides: Sides) -> Option<String> {
    let (left, right) = sides.ends();
    let (side, more) = match left.cmp(&right) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => ("left", left - right),
        std::cmp::Ordering::Less => ("right", right - left),
    };
    let zeros = if sides.ignores_tail { ", all zeros" } else { "" };
    Some(format!("{side} has {more} {} more{zeros}", plural(more, "byte", "bytes")))
}
