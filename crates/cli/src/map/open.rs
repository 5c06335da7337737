//! Opens maps and key files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blkimage::container_of;
use blkindex::{Format, Opened};
use blkmap::{Error, Key, Map};

use crate::{messages, quote, trust};

/// Opens `MAP`, the state `MAP@N`, or an index of another program as a map. The error is a message without the name.
pub fn open(name: &OsStr) -> Result<Map, Error> {
    let file = match file(Path::new(name)) {
        Err(Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            let Some((base, sequence)) = state(name) else { return Err(error.into()) };
            let file = file(Path::new(&base))?;
            let opened = Map::open_state(file.try_clone()?, sequence);
            return opened.map_err(|error| of_index(error, &file, &base));
        }
        opened => opened?,
    };
    let Opened { map, format, left_out, .. } = blkindex::open(file, name)?;
    if format.is_none() && map.rest()? > 0 {
        messages::remark_of(name.as_bytes(), INTERRUPTED);
    }
    note_left_out(name, left_out);
    Ok(map)
}

/// Returns the file of a bmap, for what compares its ranges. Others need it as a map, with ranges of one block.
pub fn bmap(name: &OsStr) -> Option<File> {
    let file = file(Path::new(name)).ok()?;
    let format = Format::recognise(&file, name).ok().flatten();
    (format == Some(Format::Bmap)).then_some(file)
}

/// Opens a map, and refuses an index of another program.
pub fn open_own(name: &OsStr) -> Result<Map, Error> {
    match file(Path::new(name)) {
        Ok(file) if !begins_with(&file, &blkmap::MAGIC) => Err(of_index(Error::Magic, &file, name)),
        _ => open(name),
    }
}

/// Returns the error of a file that is no map. If it is an index, the error says how a map is made of it.
pub fn of_index(error: Error, file: &File, name: &OsStr) -> Error {
    match (&error, Format::recognise(file, name)) {
        (Error::Magic, Ok(Some(format))) => Error::Unsupported(format!(
            "is {} of another program: make a map of it with 'blkhash map import'",
            format.noun()
        )),
        _ => error,
    }
}

/// Says that a map does not know blocks that the index knows.
pub fn note_left_out(name: &OsStr, left_out: u64) {
    if left_out > 0 {
        let blocks =
            if left_out == 1 { "1 block".to_owned() } else { format!("{left_out} blocks") };
        let note = format!(
            "note: {blocks} with digests become unknown, because a map knows only whole pages of blocks"
        );
        messages::remark_of(name.as_bytes(), &note);
    }
}

/// Returns whether a name belongs to a map, `NAME.blkmap` or `NAME.blkmap@N`, or has the suffix of an index of another
/// program. The content does not decide, because a guest writes the content of its disk. The error is what to do where
/// the content is a map's. With `has_format` it is an image's in any case.
pub fn is_map(name: &OsStr, has_format: bool) -> Result<bool, String> {
    let ends = |name: &OsStr| {
        Path::new(name).extension().is_some_and(|it| it == "blkmap") || Format::has_suffix(name)
    };
    if ends(name) || (!Path::new(name).exists() && base_of_state(name).is_some_and(|it| ends(&it)))
    {
        return Ok(true);
    }
    if has_format {
        return Ok(false);
    }
    if has_magic(name) {
        return Err(AMBIGUOUS.to_owned());
    }
    let file = file(Path::new(name)).ok();
    match file.and_then(|file| Format::recognise(&file, name).ok().flatten()) {
        Some(format) => Err(format!(
            "begins like {}, which the guest of an image may write: make a map of an index with 'blkhash map import', and \
             give the format of an image with -f",
            format.noun()
        )),
        None => Ok(false),
    }
}

/// Returns whether a file begins like a map.
pub fn has_magic(name: &OsStr) -> bool {
    file(Path::new(name)).is_ok_and(|file| begins_with(&file, &blkmap::MAGIC))
}

fn begins_with(file: &File, magic: &[u8; blkmap::MAGIC.len()]) -> bool {
    let mut head = [0; blkmap::MAGIC.len()];
    std::os::unix::fs::FileExt::read_exact_at(file, &mut head, 0).is_ok() && head == *magic
}

/// Reads the key in a file. The error names it.
pub fn key(name: Option<&Path>) -> Result<Option<Key>, String> {
    let Some(name) = name else { return Ok(None) };
    let fail = |reason: &str| {
        format!("--key-file: {}: {reason}", quote::name(name.as_os_str().as_bytes()))
    };
    let mut bytes = Vec::new();
    let read =
        File::open(name).and_then(|file| file.take(Key::MAX as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| fail(&messages::reason(&error)))?;
    Key::new(bytes).map(Some).ok_or_else(|| fail("a key has 16 to 4096 bytes"))
}

/// A map next to an image, whose folder may be another user's.
pub enum Beside {
    None,
    /// Users who may not write the image may write the map. A comparison with digests of their choice would tell them
    /// about the content.
    Untrusted,
    Map(Box<Result<Map, Error>>),
}

/// Opens a map next to an image. Neither may be a link, with which a map that can be trusted gets to an image of
/// another user. The file that is checked is the one that is read.
pub fn beside(image: &Path, map: &Path) -> Beside {
    let flags = NONBLOCK | NO_LINK;
    let Ok(file) = File::options().read(true).custom_flags(flags).open(map) else {
        return Beside::None;
    };
    let image = container_of(image).unwrap_or(image);
    let (Ok(metadata), Ok(image)) = (file.metadata(), fs::symlink_metadata(image)) else {
        return Beside::None;
    };
    match () {
        () if !metadata.is_file() || image.is_symlink() => Beside::None,
        () if !trust::only_writers_of(&image, &metadata) => Beside::Untrusted,
        () => Beside::Map(Box::new(Map::open(file))),
    }
}

/// Opens a regular file. Others are not opened: pipes could block, and devices act.
pub fn file(name: &Path) -> Result<File, Error> {
    let check = |metadata: Metadata| match metadata.file_type() {
        kind if kind.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
        kind if kind.is_file() => Ok(()),
        _ => Err(Error::Magic),
    };
    check(fs::metadata(name)?)?;
    // It may be another file by now.
    let file = File::options().read(true).custom_flags(NONBLOCK).open(name)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Returns `MAP` of `MAP@N`.
pub fn base_of_state(name: &OsStr) -> Option<OsString> {
    state(name).map(|(base, _)| base)
}

/// Splits `MAP@N`.
fn state(name: &OsStr) -> Option<(OsString, u64)> {
    let bytes = name.as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'@')?;
    let digits = std::str::from_utf8(&bytes[at + 1..]).ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number)?;
    Some((OsStr::from_bytes(&bytes[..at]).to_owned(), number))
}

const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

const INTERRUPTED: &str =
    "note: an update was interrupted, or is being written: this is the state before it";

const AMBIGUOUS: &str = "begins like a block map, which the guest of an image may write: give a map a name that ends in \
                         .blkmap, and the format of an image with -f";
