//! Check files: `blkhash.read_sums()`, `verify_sums()` and `sum_line()`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use blkhash::{Algorithm, Construction};
use blkimage::{ErrorKind, Format, Location};
use blksum::check_file::{Binary, End, Entry, Folder, Form, Item, Lines, Mistake, Parser, Style};
use blksum::expect::{Limits, Search, Value};
use blksum::{Conflict, Encoding, Progress, Tag, Tuning};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{self, value_error};
use crate::checksum::{Job, Wanted};
use crate::errors::{self, Failure};
use crate::job::Watch;
use crate::open::{Name, Opened, Request};
use crate::types;

/// Returns the lines of a check file, as `blksum` and `sha256sum` write them, without reading an image.
///
/// Args:
///     path: path of the file.
///     of_files: lines without a tag have sha256 of the bytes of files, as `sha256sum` writes them.
///
/// Returns:
///     A `Sums`, which is a list of `SumLine` with `name`, `hexdigest`, `tag` and `algorithm`, in the
///     order of the file. Its `malformed` has the numbers of lines that have no known form.
///
/// Raises:
///     SumsError: the file is no check file, or has no line of one.
///     OSError: the file cannot be read.
///
/// >>> [(it.name, it.tag) for it in blkhash.read_sums("SHA256SUMS")]
/// [('disk.img', None), ('disk.qcow2', None)]
#[pyfunction]
#[pyo3(signature = (path, *, of_files=false))]
pub fn read_sums(py: Python<'_>, path: PathBuf, of_files: bool) -> PyResult<Bound<'_, PyAny>> {
    let work = move |_: &Progress| CheckFile::read(&path, PathBuf::new(), of_files);
    let CheckFile { entries, malformed, .. } = Watch::NONE.run(py, work)?;
    let line = |entry: &Entry| {
        let (name, hexdigest, tag) = fields(entry);
        types::SUM_LINE.make(py, (name, hexdigest, tag, entry.algorithm.map(Algorithm::name)))
    };
    let lines = entries.iter().map(line).collect::<PyResult<Vec<_>>>()?;
    types::SUMS.make(py, (lines, PyTuple::new(py, malformed)?))
}

/// Computes the checksums in a check file again, and compares them, as `blksum -c` does.
///
/// A line without a tag is searched for, like `expect` of `checksum()`. An image that several lines
/// name is read for each of them.
///
/// Args:
///     path: path of the file.
///     folder: folder that relative names are in, by default the current one, as for the commands.
///     of_files: lines without a tag have sha256 of the bytes of files, as `sha256sum` writes them.
///     ignore_missing: leave names of which there is no file out of `is_ok`.
///     allow_uri: read what is named by a URI. The author of the file chooses the server.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes done and their total,
///         which grows with each image.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///     partition: number of a partition, which is then the content of each image.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     A `VerifiedSums`, which is a list of `VerifiedSum` in the order of the file. Their `verdict` is
///     "ok", "failed", "undecided" (equal, which proves nothing), "missing" or "error". `is_ok` says
///     whether `blksum -c` ends with 0: some image matches, nothing else happened, and no line has
///     the tag of an image that is not known here.
///
/// Raises:
///     SumsError: the file is no check file, or has no line of one.
///     OSError: the file cannot be read.
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid.
///
/// >>> verified = blkhash.verify_sums("SHA256SUMS", of_files=True)
/// >>> verified.is_ok, [it.verdict for it in verified]
/// (True, ['ok', 'ok'])
#[pyfunction]
#[pyo3(signature = (path, *, folder=None, of_files=false, ignore_missing=false, allow_uri=false, threads=None, progress=None, cancel=None, **options))]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn verify_sums<'py>(
    py: Python<'py>,
    path: PathBuf,
    folder: Option<PathBuf>,
    of_files: bool,
    ignore_missing: bool,
    allow_uri: bool,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = Request::new(path.as_os_str().into_pyobject(py)?.as_any(), options)?;
    let tuning = arguments::tuning(threads, request.options().max_zeros)?;
    let verifier = Verifier { request, folder: folder.unwrap_or_default(), allow_uri, tuning };
    let watch = Watch { progress, cancel };
    let (file, verdicts) = watch.run(py, move |progress| {
        let file = CheckFile::read(&path, verifier.folder.clone(), of_files)?;
        let verdicts = file.entries.iter().map(|entry| verifier.verify(entry, progress));
        let verdicts = verdicts.collect::<Result<Vec<_>, _>>()?;
        Ok((file, verdicts))
    })?;
    let is_ok = !file.has_unknown_tag
        && verdicts.iter().any(|it| it.word == "ok")
        && verdicts.iter().all(|it| it.word == "ok" || ignore_missing && it.word == "missing");
    let sums = file.entries.iter().zip(&verdicts).map(|(entry, Verdict { word, reason, tag })| {
        let (name, hexdigest, own) = fields(entry);
        let tag = own.or(tag.clone());
        types::VERIFIED_SUM.make(py, (name, hexdigest, tag, *word, reason.as_deref()))
    });
    let sums = sums.collect::<PyResult<Vec<_>>>()?;
    types::VERIFIED_SUMS.make(py, (sums, PyTuple::new(py, file.malformed)?, is_ok))
}

/// Returns the line of a check file for a checksum, with its newline.
///
/// Args:
///     name: name of the image, as it is in the file.
///     hexdigest: the checksum in hexadecimal.
///     tag: how it was computed, as the `tag` of a `Checksum`. Without it, the line is one of
///         `sha256sum`, and `verify_sums()` has to find out.
///
/// Raises:
///     ValueError, TypeError: an argument is invalid, or the checksum is not one of the tag.
///
/// >>> result = blkhash.checksum("disk.qcow2", "blake2b256")
/// >>> line = blkhash.sum_line("disk.qcow2", result.hexdigest, result.tag)
/// >>> line.partition(" = ")[0]
/// 'BLKSUM-BLAKE2B256-STREAMS4-64K (disk.qcow2)'
#[pyfunction]
#[pyo3(signature = (name, hexdigest, tag=None))]
pub fn sum_line(name: PathBuf, hexdigest: &str, tag: Option<&str>) -> PyResult<OsString> {
    let digest = Encoding::Hex.decode(hexdigest.as_bytes());
    let digest = digest.filter(|it| !it.is_empty());
    let digest = digest.ok_or_else(|| value_error("hexdigest is not in hexadecimal"))?;
    let name = name.into_os_string().into_vec();
    let form = match tag {
        None if name.is_empty() => return Err(value_error("a line without a tag has a name")),
        None => Form::Text,
        Some(tag) => {
            let tag: Tag = tag.parse().map_err(|error| value_error(format!("{error} '{tag}'")))?;
            if tag.digest_size() != digest.len() {
                let size = tag.digest_size();
                return Err(value_error(format!("a checksum of {tag} has {size} bytes")));
            }
            Form::Tagged(tag)
        }
    };
    if name.contains(&0) {
        return Err(value_error("embedded null byte"));
    }
    let line = Style { form, encoding: Encoding::Hex, zero: false }.line(&name, &digest);
    Ok(OsString::from_vec(line))
}

/// The lines of a check file.
struct CheckFile {
    entries: Vec<Entry>,
    /// Numbers of malformed lines.
    malformed: Vec<u64>,
    /// Whether one of these has the tag of an image: nothing was compared with its checksum.
    has_unknown_tag: bool,
}

impl CheckFile {
    fn read(path: &Path, folder: PathBuf, of_files: bool) -> Result<Self, Failure> {
        let unreadable = |error: io::Error| Failure::File(error, path.as_os_str().to_owned());
        let refused = |reason: String| Failure::Sums(reason, path.as_os_str().to_owned());
        let mut parser = match of_files {
            true => Parser::of_files(Algorithm::Sha256),
            false => Parser::of_any(Algorithm::Sha256),
        };
        let mut lines = Lines::new(File::open(path).map_err(unreadable)?, Folder::Local(folder));
        let mut file = Self { entries: Vec::new(), malformed: Vec::new(), has_unknown_tag: false };
        let end = loop {
            match lines.next(&mut parser) {
                Ok(Item::Entry(entry)) => file.entries.push(entry),
                Ok(Item::Malformed { number, mistake, .. }) => {
                    file.malformed.push(number);
                    file.has_unknown_tag |= mistake == Some(Mistake::ImageTag);
                }
                Err(end) => break end,
            }
        };
        match end {
            End::Reached if file.entries.is_empty() => {
                Err(refused("has no line of a check file".to_owned()))
            }
            End::Reached => Ok(file),
            End::Image(format) => {
                Err(refused(format!("is an image in the format {format}, and no check file")))
            }
            End::Binary(Binary::Tar) => Err(refused("is a tar archive".to_owned())),
            End::Binary(Binary::Utf16(encoding)) => {
                Err(refused(format!("is {encoding} without a byte order mark")))
            }
            End::Binary(Binary::Other) => Err(refused("has NUL bytes".to_owned())),
            End::EndlessLine => Err(refused("has a line that is too long".to_owned())),
            End::Unreadable(error) => Err(unreadable(error)),
        }
    }
}

/// Returns the name, the checksum and the tag of a line.
fn fields(entry: &Entry) -> (&OsStr, String, Option<String>) {
    let tag = entry.tag.as_ref().map(Tag::to_string);
    (OsStr::from_bytes(&entry.name), Encoding::Hex.encode(&entry.digest), tag)
}

/// Compares images with the lines of a check file.
struct Verifier {
    /// The options for all images.
    request: Request,
    folder: PathBuf,
    allow_uri: bool,
    tuning: Tuning,
}

/// The result for a line.
struct Verdict {
    word: &'static str,
    reason: Option<String>,
    /// How the checksum of a line without a tag was computed.
    tag: Option<String>,
}

impl Verifier {
    /// Verifies a line. Fails only if all of the work is to end.
    fn verify(&self, entry: &Entry, progress: &Progress) -> Result<Verdict, Failure> {
        let name = OsStr::from_bytes(&entry.name);
        let verdict = |word, reason| Ok(Verdict { word, reason: Some(reason), tag: None });
        let location = match Location::new(name).is_uri() {
            true if !self.allow_uri => return verdict("error", URI.to_owned()),
            true => Name::Location(name.to_owned()),
            false => Name::Path(self.folder.join(name)),
        };
        match self.compare(entry, location, progress) {
            Ok(found) => Ok(found),
            Err(Failure::Pass(blksum::Error::Cancelled, name)) => {
                Err(Failure::Pass(blksum::Error::Cancelled, name))
            }
            Err(Failure::Unexpected("undecided", reason, _)) => verdict("undecided", reason),
            Err(Failure::Unexpected(_, reason, _)) => verdict("failed", reason),
            Err(Failure::Image(error)) if is_missing(&error) => {
                verdict("missing", errors::reason(&error))
            }
            Err(Failure::Image(error) | Failure::Pass(blksum::Error::Image(error), _)) => {
                verdict("error", errors::reason(&error))
            }
            Err(Failure::Pass(error, _)) => verdict("error", error.to_string()),
            Err(Failure::Value(_, reason) | Failure::Other(reason)) => verdict("error", reason),
            Err(other) => Err(other),
        }
    }

    fn compare(&self, entry: &Entry, name: Name, progress: &Progress) -> Result<Verdict, Failure> {
        let shown = name.as_os_str().to_string_lossy().into_owned();
        let refused = |reason: &str| Failure::Value(shown.clone(), reason.to_owned());
        let request = &self.request;
        let (options, parameters, part) = match &entry.tag {
            None => return self.search(entry, name, progress),
            Some(Tag::File(_)) if request.is_of_part() => return Err(refused(WHOLE_FILE)),
            Some(Tag::File(algorithm)) => {
                let options = request.options().clone().format(Format::Raw);
                (options, Tag::linear(*algorithm), None)
            }
            Some(Tag::Image(tag)) => {
                let content = &tag.content;
                let options = content.open_options(request.options(), request.part());
                let options = options.map_err(|conflict| refused(conflicting(conflict)))?;
                let part = if content.is_part() { content.part } else { request.part() };
                (options, tag.parameters, part)
            }
        };
        let opened = Request::with(name, options, part).open()?;
        let failed = |error| Failure::Pass(error, opened.name.clone());
        let digest = blksum::checksum(opened.content(), &parameters, &self.tuning, progress)
            .map_err(failed)?;
        Ok(match digest.as_bytes() == entry.digest {
            true => Verdict { word: "ok", reason: None, tag: None },
            false => Verdict { word: "failed", reason: Some(format!("is {digest}")), tag: None },
        })
    }

    /// Finds out what the checksum of a line without a tag is of.
    fn search(&self, entry: &Entry, name: Name, progress: &Progress) -> Result<Verdict, Failure> {
        let value = Value { digest: entry.digest.clone(), algorithm: entry.algorithm, parts: None };
        let limits = Limits::SHORT.unless_set(self.request.options().max_zeros);
        let search = Search { limits, ..Search::default() };
        let find = |opened: &Opened, search: &Search| {
            let wanted = Wanted::Value(value.clone(), search.clone());
            let passed = Job { wanted, tuning: self.tuning }.run(opened, progress)?;
            Ok(Verdict { word: "ok", reason: None, tag: passed.tag() })
        };
        if search.digests(&value).is_empty() {
            let (shown, reason) = (name.as_os_str().to_string_lossy(), "no digest is that long");
            return Err(Failure::Unexpected("expected", reason.to_owned(), shown.as_ref().into()));
        }
        let options = self.request.options();
        let request = Request::with(name, options.clone(), self.request.part());
        let error = match request.open() {
            Ok(opened) => return find(&opened, &search),
            Err(error) => error,
        };
        // The bytes of a file may be readable where its content is not.
        let is_other = matches!(&error, Failure::Image(error) if !is_missing(error));
        if !is_other || self.request.is_of_part() {
            return Err(error);
        }
        let search = Search { construction: Some(Construction::Linear), ..search };
        let raw = options.clone().format(Format::Raw);
        let bytes = Request::with(request.into_name(), raw, None).open();
        let found = bytes.and_then(|opened| find(&opened, &search)).ok();
        found.ok_or(error)
    }
}

/// Returns which argument asks for another content than a line.
fn conflicting(conflict: Conflict) -> &'static str {
    match conflict {
        Conflict::Format => "its checksum is of another format: leave out format",
        Conflict::VpcSize => "its checksum is of another size: leave out vpc_size",
        Conflict::Snapshot => "its checksum is of another snapshot: leave out snapshot",
        _ => "its checksum is of another part: leave out partition",
    }
}

/// Whether there is no file of this name. A file that an image names is another matter.
fn is_missing(error: &blkimage::Error) -> bool {
    error.kind() == ErrorKind::Open
        && error.io_error().is_some_and(|it| it.kind() == io::ErrorKind::NotFound)
}

const URI: &str = "is a URI, which a check file may name only with allow_uri=True";

const WHOLE_FILE: &str =
    "its checksum is of the bytes of the whole file: leave out partition and snapshot";
