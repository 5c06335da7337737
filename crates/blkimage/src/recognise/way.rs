//! How to get a disk out of a file that is none.

use crate::compression::Compression;

/// How to get a disk out of a file that is none.
///
/// In commands, `FILE` stands for the file and `NAME` for the name of a disk in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Way {
    /// A command that writes the disk to its standard output.
    Pipe(&'static str),
    /// Another command.
    Command(&'static str),
    /// A sentence.
    Advice(&'static str),
    /// The option `compression` reads the content.
    Compression(Compression),
    /// None is known.
    None,
}

impl Way {
    /// Describes the way for the file with this name. `None` if it is an option, or unknown.
    pub fn describe(self, file: &str) -> Option<String> {
        match self {
            Self::Pipe(command) => {
                let what = if command.contains("NAME") { "a disk in it" } else { "its content" };
                Some(format!("{} writes {what} to standard output", command.replace("FILE", file)))
            }
            Self::Command(command) => Some(command.replace("FILE", file)),
            Self::Advice(text) => Some(text.to_owned()),
            Self::Compression(_) | Self::None => None,
        }
    }
}
