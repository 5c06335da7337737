//! Reads names of images from a file, for lists that are too long for a command line.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::{messages, quote, stdio};

/// Returns the names in the lists, each terminated by NUL, or describes the first error.
pub fn read(lists: &[PathBuf]) -> Result<Vec<OsString>, String> {
    let mut names = Vec::new();
    for list in lists {
        let room = MAX_NAMES - names.len();
        names.append(&mut read_list(list, room)?);
    }
    Ok(names)
}

fn read_list(path: &Path, room: usize) -> Result<Vec<OsString>, String> {
    let is_stdin = path == Path::new("-");
    let shown = match is_stdin {
        true => "standard input".to_owned(),
        false => quote::name(path.as_os_str().as_encoded_bytes()),
    };
    let file = if is_stdin { stdio::stdin() } else { File::open(path) };
    let mut list = Vec::new();
    let read = file.and_then(|file| file.take(MAX_LIST + 1).read_to_end(&mut list));
    read.map_err(|error| format!("--files0-from: {shown}: {}", messages::reason(&error)))?;
    if list.len() as u64 > MAX_LIST {
        let limit = MAX_LIST >> 20;
        return Err(format!("--files0-from: {shown}: has more than {limit} MiB: split it"));
    }
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let list = list.strip_suffix(b"\0").unwrap_or(&list);
    // Each name takes more memory than its bytes.
    if list.iter().filter(|byte| **byte == 0).count() >= room {
        return Err(format!("--files0-from: {shown}: has more than {MAX_NAMES} names: split it"));
    }
    let names = list.split(|byte| *byte == 0).enumerate();
    let check = |(index, name): (usize, &[u8])| match name {
        [] => Err(format!("--files0-from: {shown}: name {} is empty", index + 1)),
        b"-" if is_stdin => Err(format!(
            "--files0-from: {shown}: name {} is -, and standard input is the list",
            index + 1
        )),
        _ => Ok(OsString::from_vec(name.to_vec())),
    };
    names.map(check).collect()
}

/// Maximum size of a list of `--files0-from`, which is a million names of 64 bytes.
/// Limit in bytes.
const MAX_LIST: u64 = 64 << 20;

/// Maximum number of names in all lists, which take up to 100 bytes of memory each besides their own. Limit in names.
const MAX_NAMES: usize = 4_000_000;
