//! Generates completions from the argument parsers, manual pages from these and their text, what other files say of the
//! options for opening images, the tables of JSON objects, and the table of limits.

mod completions;
pub mod limits;
pub mod man;
mod options;
mod records;

use std::path::Path;
use std::{fs, io};

use blkhash_cli::{blkcopy, blkhash, blksum};
use completions::{Level, bash, fish, zsh};

/// A generated file.
pub struct Page {
    pub kind: Kind,
    pub file_name: String,
    pub content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Man,
    Completion,
    /// A file in the repository, by its path.
    Source,
}

impl Page {
    /// Creates a file of the repository.
    fn source(file_name: &str, text: String) -> Self {
        Self { kind: Kind::Source, file_name: file_name.to_owned(), content: text.into_bytes() }
    }

    /// Creates a file of the repository at `root`, with another text between two of its lines.
    fn between(
        root: &Path,
        file_name: &str,
        (begin, end): (&str, &str),
        text: &str,
    ) -> io::Result<Self> {
        let file = fs::read_to_string(root.join(file_name))?;
        let missing = || io::Error::other(format!("{file_name}: no line {}", begin.trim_end()));
        let (before, rest) = file.split_once(begin).ok_or_else(missing)?;
        let (_, after) = rest.split_once(end).ok_or_else(missing)?;
        Ok(Self::source(file_name, [before, begin, text, end, after].concat()))
    }
}

/// `root` is the repository.
pub fn pages(root: &Path) -> io::Result<Vec<Page>> {
    let mut pages = man::pages()?;
    pages.extend(options::pages(root)?);
    pages.push(records::page(root)?);
    pages.push(limits::page(root)?);
    for command in [blksum::command(), blkhash::command(), blkcopy::command()] {
        let name = command.get_name().to_owned();
        let levels = Level::all(command);
        for (file_name, content) in [
            (format!("{name}.bash"), bash::write(&levels)),
            (format!("_{name}"), zsh::write(&levels)),
            (format!("{name}.fish"), fish::write(&levels)),
        ] {
            let content = content.into_bytes();
            pages.push(Page { kind: Kind::Completion, file_name, content });
        }
    }
    Ok(pages)
}
