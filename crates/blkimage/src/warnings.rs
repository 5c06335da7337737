//! Warnings about an image that can be read. A disk of hundreds of files may have the same flaw in each.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::escaped;
use crate::hint::Hint;

/// A warning about an image that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The image, or a file that it refers to.
    pub file: PathBuf,
    /// The text without the name of the file.
    pub reason: String,
    /// The option that reads the image in another way, if any.
    pub hint: Option<Hint>,
}

impl Warning {
    pub(crate) fn new(file: &Path, reason: impl Into<String>) -> Self {
        Self { file: file.into(), reason: reason.into(), hint: None }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", escaped(self.file.as_os_str().as_encoded_bytes()), self.reason)
    }
}

/// The warnings of a chain.
#[derive(Default)]
pub(crate) struct Warnings {
    shown: Vec<Warning>,
    /// The reasons, and the number of files that each was given for.
    reasons: Vec<(String, usize)>,
}

impl Warnings {
    pub fn add(&mut self, warning: Warning) {
        let known = self.reasons.iter_mut().find(|(known, _)| *known == warning.reason);
        let count = match known {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.reasons.push((warning.reason.clone(), 1));
                1
            }
        };
        if count <= MAX_ALIKE {
            self.shown.push(warning);
        }
    }

    /// Returns the warnings. Of those with the same reason, the last one counts the others, and is about the image
    /// called `name`.
    pub fn into_list(self, name: &Path) -> Vec<Warning> {
        let mut shown = self.shown;
        for (reason, count) in self.reasons {
            if count > MAX_ALIKE {
                let more = format!("{} more of its files: {reason}", count - MAX_ALIKE);
                shown.push(Warning::new(name, more));
            }
        }
        shown
    }
}

/// Maximum number of warnings about an image with the same reason.
/// Limit in warnings.
const MAX_ALIKE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_are_counted() {
        let mut warnings = Warnings::default();
        for number in 0..10 {
            let name = format!("{number}");
            warnings.add(Warning::new(name.as_ref(), "was not closed"));
            if number < 3 {
                warnings.add(Warning::new(name.as_ref(), "is marked as corrupt"));
            }
        }
        let lines = warnings.into_list(Path::new("disk"));
        let lines: Vec<String> = lines.iter().map(Warning::to_string).collect();
        assert_eq!(lines.iter().filter(|line| line.ends_with(": was not closed")).count(), 4);
        assert_eq!(lines.iter().filter(|line| line.ends_with(": is marked as corrupt")).count(), 3);
        assert_eq!(lines.last().unwrap(), "disk: 7 more of its files: was not closed");
    }
}
