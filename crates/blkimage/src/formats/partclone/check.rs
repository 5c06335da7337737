//! Reads all blocks and compares their checksums, for `blkhash check`.

use super::strips::Strips;
use crate::check::{Finding, Reason, Severity, Summary, Visitor};
use crate::error::Result;

/// Passes each strip that is damaged to `visitor`.
pub(super) fn check(strips: &Strips, visitor: &mut dyn Visitor) -> Result<Summary> {
    let mut summary = Summary {
        unit: strips.strip(),
        units: strips.strips(),
        verified: "CRC-32",
        is_complete: true,
        ..Summary::default()
    };
    for group in 0..strips.groups() {
        let (errors, length) = strips.check(group)?;
        for error in errors {
            let finding = Finding {
                severity: Severity::Error,
                structure: "strip",
                offset: error.offset().unwrap_or(0),
                length: 0,
                guest: None,
                reason: Reason::Invalid(error.reason().to_owned()),
                count: 1,
            };
            summary.add(&finding);
            visitor.finding(finding);
        }
        if visitor.advance(length).is_break() {
            break;
        }
    }
    Ok(summary)
}
