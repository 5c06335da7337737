use std::{fmt, io};

use super::form::Form;

/// Reason why a text is not a list of changed extents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The text could not be read.
    #[error(transparent)]
    Read(io::Error),
    /// The text is empty, although its form has a text for an empty list.
    #[error("the text is empty")]
    Empty,
    /// The text has no known form.
    #[error("not a list of changed extents in a known form")]
    Unrecognised,
    /// The text is what a program prints for people.
    #[error("what {program} prints for people is no list: {option} prints one")]
    ForPeople {
        /// The program.
        program: &'static str,
        /// The option for a list.
        option: &'static str,
    },
    /// The text has another form than the given one.
    #[error("not a list in the form {given}, but in the form {found}")]
    OtherForm {
        /// The form that was given.
        given: Form,
        /// The form of the text.
        found: Form,
    },
    /// The text exceeds [`List::MAX_TEXT`](super::List::MAX_TEXT).
    #[error("the list is longer than {limit} bytes")]
    TooLong {
        /// Maximum length of a list in bytes.
        limit: u64,
    },
    /// The text is not a complete list in its form, or exceeds a limit.
    #[error("{}{problem}", Place { line: *line, byte: *byte })]
    Invalid {
        /// Number of the line, from 1, if it is known.
        line: Option<u64>,
        /// Number of the byte in the line, from 1, if it is known.
        byte: Option<u64>,
        /// The problem in a few words, on one line, without control characters.
        problem: String,
    },
}

impl ListError {
    /// Returns an error about a line. Texts from the list become printable.
    pub(super) fn at_line(line: u64, problem: &str) -> Self {
        Self::Invalid { line: Some(line), byte: None, problem: printable(problem) }
    }

    /// Returns an error about the list as a whole.
    pub(super) fn of_list(problem: &str) -> Self {
        Self::Invalid { line: None, byte: None, problem: printable(problem) }
    }

    pub(super) fn of_json(error: serde_json::Error) -> Self {
        if error.is_io() {
            return Self::of_io(error.into());
        }
        let (line, byte) = (error.line() as u64, error.column() as u64);
        let text = error.to_string();
        let place = format!(" at line {line} column {byte}");
        let problem = match error.is_eof() {
            true => "the list is cut",
            false => text.strip_suffix(&place).unwrap_or(&text),
        };
        Self::Invalid { line: Some(line), byte: Some(byte), problem: printable(problem) }
    }

    pub(super) fn of_io(error: io::Error) -> Self {
        // An error of this type crosses serde_json as an I/O error.
        match error.downcast() {
            Ok(error) => error,
            Err(error) => Self::Read(error),
        }
    }
}

/// Prints as the start of a message.
struct Place {
    line: Option<u64>,
    byte: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.byte) {
            (None, _) => Ok(()),
            (Some(line), None) => write!(f, "line {line}: "),
            (Some(line), Some(byte)) => write!(f, "line {line}, byte {byte}: "),
        }
    }
}

/// Escapes what a terminal would interpret, and cuts long texts.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() > MAX_PROBLEM {
            out.push_str("...");
            break;
        }
        let plain = c == ' ' || c.is_ascii_graphic();
        if plain { out.push(c) } else { out.extend(c.escape_default()) }
    }
    out
}

/// Maximum length of a problem of a list in a message. Names of fields come from the list.
/// Limit in bytes.
const MAX_PROBLEM: usize = 300;
