//! Warnings about an image that can be read. A disk of hundreds of files may have the same flaw in each.

use std::path::Path;

use crate::error::Error;

/// The warnings of a chain.
#[derive(Default)]
pub(crate) struct Warnings {
    lines: Vec<String>,
    /// The reasons, and the number of files that each was given for.
    reasons: Vec<(String, usize)>,
}

impl Warnings {
    pub fn add(&mut self, warning: &Error) {
        let reason = warning.reason();
        let known = self.reasons.iter_mut().find(|(known, _)| known == reason);
        let count = match known {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.reasons.push((reason.to_owned(), 1));
                1
            }
        };
        if count <= MAX_ALIKE {
            self.lines.push(warning.to_string());
        }
    }

    /// Returns a line for each warning. Of those with the same reason, the last one counts the others, and
    /// is about the image called `name`.
    pub fn into_lines(self, name: &Path) -> Vec<String> {
        let mut lines = self.lines;
        for (reason, count) in self.reasons {
            if count > MAX_ALIKE {
                let more = format!("{} more of its files: {reason}", count - MAX_ALIKE);
                lines.push(format!("{}: {more}", name.display()));
            }
        }
        lines
    }
}

/// Maximum number of lines with the same reason.
const MAX_ALIKE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn equal_reasons_are_counted() {
        let mut warnings = Warnings::default();
        for number in 0..10 {
            let name = format!("{number}");
            warnings.add(&Error::new(ErrorKind::Corrupt, &name, "was not closed"));
            if number < 3 {
                warnings.add(&Error::new(ErrorKind::Corrupt, &name, "is marked as corrupt"));
            }
        }
        let lines = warnings.into_lines(Path::new("disk"));
        assert_eq!(lines.iter().filter(|line| line.ends_with(": was not closed")).count(), 4);
        assert_eq!(lines.iter().filter(|line| line.ends_with(": is marked as corrupt")).count(), 3);
        assert_eq!(lines.last().unwrap(), "disk: 7 more of its files: was not closed");
    }
}
