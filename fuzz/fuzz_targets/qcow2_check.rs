//! Checks the structure of any bytes as a qcow2 image. The result must be a one-line error, or a summary with the counts of
//! the findings, the same in a second run.

#![no_main]

use blkimage::check::{Finding, Severity, Summary, Visitor};
use blkimage::{Format, Memory, OpenOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let found = check(data);
    assert!(found == check(data), "two checks differ");
});

fn check(data: &[u8]) -> Option<(Summary, Vec<Finding>)> {
    let mut findings = Findings(Vec::new());
    let options = OpenOptions::new().format(Format::Qcow2);
    let storage = Box::new(Memory(data.to_vec()));
    let summary = match options.check_storage(storage, "fuzz", &mut findings) {
        Ok(summary) => summary.expect("qcow2 has a check"),
        Err(error) => {
            let message = error.to_string();
            let is_one_line = !message.chars().any(char::is_control);
            assert!(message.starts_with("fuzz: ") && is_one_line, "{message}");
            return None;
        }
    };
    let findings = findings.0;
    let count = |severity| {
        let of_it = findings.iter().filter(|it| it.severity == severity);
        of_it.map(|it| it.count).fold(0, u64::saturating_add)
    };
    assert_eq!(summary.errors, count(Severity::Error));
    assert_eq!(summary.outdated, count(Severity::Outdated));
    assert_eq!(summary.leaks, count(Severity::Leak));
    assert_eq!(summary.unchecked, count(Severity::Unchecked));
    assert!(summary.is_complete || summary.leaks == 0, "leaks without all references");
    assert!(summary.unit.is_power_of_two());
    assert_eq!(summary.units, (data.len() as u64).div_ceil(summary.unit));
    Some((summary, findings))
}

/// Keeps what is found.
struct Findings(Vec<Finding>);

impl Visitor for Findings {
    fn finding(&mut self, finding: Finding) {
        let message = finding.reason.to_string();
        assert!(finding.count > 0 && !message.chars().any(char::is_control), "{finding:?}");
        self.0.push(finding);
        assert!(self.0.len() <= MAX_FINDINGS, "too many findings");
    }
}

/// Maximum number of findings of an image of the size that a fuzzer makes.
const MAX_FINDINGS: usize = 1 << 20;
