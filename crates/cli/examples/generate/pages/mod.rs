//! Generates completions from the argument parsers, manual pages from these and their text, what other files say of the
//! options for opening images, and the tables of JSON objects.

mod completions;
pub mod man;
mod options;
mod records;

use std::io;
use std::path::Path;

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

/// `root` is the repository.
pub fn pages(root: &Path) -> io::Result<Vec<Page>> {
    let mut pages = man::pages()?;
    pages.extend(options::pages(root)?);
    pages.push(records::page(root)?);
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
