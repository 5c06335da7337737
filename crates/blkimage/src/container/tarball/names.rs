//! The names of archives, and how their content is compressed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::compression::Compression;
use crate::container::name::has_extension;
use crate::tar::is_tar;

/// How an archive is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Compressed(Compression),
}

impl Form {
    /// Returns how an archive that begins with `head` is stored, if it has the name of one. One of another name must be a plain
    /// archive.
    pub fn of(path: &Path, head: &[u8]) -> Option<Self> {
        let plain = is_tar(head).then_some(Self::Plain);
        let Some(named) = named(path) else { return plain };
        let found = Compression::of_head(head).map(Self::Compressed);
        match named {
            Named::Box => plain.or(found),
            Named::Form(Self::Plain) => plain,
            Named::Form(form) => found.filter(|found| *found == form),
        }
    }
}

/// What a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Form(Form),
    /// One of vagrant, which may be compressed.
    Box,
}

/// Returns whether a path has the name of an archive.
pub(super) fn is_named(path: &Path) -> bool {
    named(path).is_some()
}

fn named(path: &Path) -> Option<Named> {
    let name = path.as_os_str().as_bytes();
    let has = |end: &[u8]| has_extension(name, end);
    if has(b".tar") {
        return Some(Named::Form(Form::Plain));
    }
    if has(b".box") {
        return Some(Named::Box);
    }
    let short = SHORT.iter().find(|(end, _)| has(end)).map(|(_, compression)| *compression);
    let long = || {
        let inner = path.file_stem().map(OsStrExt::as_bytes)?;
        let is_archive = has_extension(inner, b".tar") || has_extension(inner, b".ova");
        Compression::of_name(path).filter(|_| is_archive)
    };
    short.or_else(long).map(|compression| Named::Form(Form::Compressed(compression)))
}

/// Ends of names that stand for an archive and its compression.
const SHORT: [(&[u8], Compression); 6] = [
    (b".tgz", Compression::Gzip),
    (b".tbz", Compression::Bzip2),
    (b".tbz2", Compression::Bzip2),
    (b".txz", Compression::Xz),
    (b".tzst", Compression::Zstd),
    (b".tlz4", Compression::Lz4),
];
