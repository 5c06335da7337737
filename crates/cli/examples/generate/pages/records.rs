//! The tables of docs/reference/json.md, from the objects that the commands write.

use std::path::Path;
use std::{fs, io};

use blkhash_cli::records;
use blkrecord::Row;

use super::Page;

/// Generates the page in the repository at `root`. Each table is between two lines that name it.
pub fn page(root: &Path) -> io::Result<Page> {
    let mut text = fs::read_to_string(root.join(FILE))?;
    for (name, rows) in records::TABLES {
        let (begin, end) =
            (format!("<!-- {name}: generated -->\n"), format!("<!-- end of {name} -->\n"));
        let missing = || io::Error::other(format!("{FILE}: has no place for {name}"));
        let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
        let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
        text = [before, &begin, "\n", &Row::table(&rows()), "\n", &end, after].concat();
    }
    Ok(Page::source(FILE, text))
}

const FILE: &str = "docs/reference/json.md";
