//! The limit on findings that are printed.

/// The remaining budget for printing findings.
#[derive(Clone, Copy)]
pub struct Limit {
    findings: Option<u64>,
    bytes: Option<usize>,
}

impl Limit {
    /// Creates the limit for a value of `--max-errors`.
    pub fn new(max_errors: Option<u64>) -> Self {
        match max_errors {
            None => Self { findings: Some(MAX_ERRORS), bytes: Some(MAX_BYTES) },
            Some(0) => Self { findings: None, bytes: None },
            Some(count) => Self { findings: Some(count), bytes: None },
        }
    }

    /// Returns the number of findings that may still be printed, or `None` without a limit.
    pub fn findings(&self) -> Option<u64> {
        self.findings
    }

    /// Returns whether no finding may be printed any more.
    pub fn is_used_up(&self) -> bool {
        self.findings == Some(0)
    }

    /// Accounts for a finding of this many bytes. Returns false if it exceeds the limit.
    pub fn take(&mut self, length: usize) -> bool {
        if self.is_used_up() || self.bytes.is_some_and(|left| left < length) {
            // Later findings are dropped even if they are smaller, so that the first ones are shown.
            self.findings = Some(0);
            return false;
        }
        self.findings = self.findings.map(|left| left - 1);
        self.bytes = self.bytes.map(|left| left - length);
        true
    }
}

/// Maximum number of errors that are printed by default (`--max-errors`). The rest is counted.
/// Limit in errors.
const MAX_ERRORS: u64 = 100;

/// Maximum size of the errors that are printed by default, because names in an image may be long.
/// Limit in bytes.
const MAX_BYTES: usize = 64 << 10;
