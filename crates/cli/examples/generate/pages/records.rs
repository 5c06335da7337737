//! The tables of docs/json.md, from the objects that the commands write.

use std::path::Path;
use std::{fs, io};

use blkhash_cli::records;
use blkrecord::Row;

use super::{Kind, Page};

/// Generates the page in the repository at `root`. Each table is between two lines that name it.
pub fn page(root: &Path) -> io::Result<Page> {
    let file_name = "docs/json.md".to_owned();
    let mut text = fs::read_to_string(root.join(&file_name))?;
    for (name, rows) in records::TABLES {
        let (begin, end) =
            (format!("<!-- {name}: generated -->\n"), format!("<!-- end of {name} -->\n"));
        let missing = || io::Error::other(format!("{file_name}: has no place for {name}"));
        let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
        let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
        text = [before, &begin, "\n", &Row::table(&rows()), "\n", &end, after].concat();
    }
    Ok(Page { kind: Kind::Source, file_name, content: text.into_bytes() })
}
