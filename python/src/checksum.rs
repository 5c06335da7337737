//! `blkhash.checksum()`: checksums of images, several in one pass, or the one that a value is.

use std::ffi::OsString;

use blkhash::{Digest, Parameters};
use blkimage::Source;
use blksum::expect::{self, Doubt, FileBytes, Limits, Reading, Search, Untried, Value};
use blksum::{Content, ImageTag, Progress, Tag, Tuning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, Definition, value_error};
use crate::errors::Failure;
use crate::job::Watch;
use crate::open::{Opened, Request};
use crate::types;

/// Returns the checksums of the content of an image, as `blksum` prints them, in one pass.
///
/// Args:
///     name: path of an image, or as `str` also the URI of an NBD server. A `pathlib.Path` is
///         always a path.
///     digests: name of a digest, or several, as in `algorithms_available`.
///     construction: how digests of blocks become one checksum: "streams:4", "flat", "concat",
///         "linear", "dm-verity" or "fs-verity".
///     block_size: bytes of a block, a power of two from 512 to 64 MiB, by default the
///         construction's (64 KiB).
///     salt: bytes that are hashed before each block, for dm-verity and fs-verity.
///     expect: find out how the image has this value, as `blksum --expect`: HEX, BASE64,
///         ALGORITHM:HEX, or BASE64-N for N parts. `digests`, `construction` and `block_size`
///         narrow what is tried.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes done and their total.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///     offset: first byte of the image that belongs to the content.
///     length: number of bytes of the content, by default up to the end of the image.
///     partition: number of a partition, which is then the content.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     A `Checksum` with `hexdigests`, a dict from the names in `digests`, `hexdigest` if there is
///     one, `size` in bytes, `format`, and `tag`, which says how one checksum was computed, as in
///     check files. With `expect`, "SHA256" is for the bytes of the file, which say nothing about
///     backing files.
///
/// Raises:
///     ImageError: the image cannot be opened or read. It is also an `OSError` if the system
///         failed.
///     ChangedError: the image changed while it was read.
///     MismatchError: nothing that was tried is `expect` (`kind` is "expected"), or the match proves
///         nothing, such as of a file that may be a list of digests ("undecided").
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid.
///
/// >>> blkhash.checksum("disk.qcow2").hexdigest == blkhash.checksum("disk.img").hexdigest
/// True
/// >>> sorted(blkhash.checksum("disk.qcow2", ["sha256", "blake3"]).hexdigests)
/// ['blake3', 'sha256']
#[pyfunction]
#[pyo3(
    signature = (name, digests=None, *, construction=None, block_size=None, salt=None, expect=None, threads=None, progress=None, cancel=None, offset=0, length=None, **options),
    text_signature = "(name, digests='sha256', *, construction='streams:4', block_size=None, salt=b'', expect=None, threads=None, progress=None, cancel=None, offset=0, length=None, **options)"
)]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn checksum<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    digests: Option<&Bound<'py, PyAny>>,
    construction: Option<&str>,
    block_size: Option<u64>,
    salt: Option<&Bound<'py, PyAny>>,
    expect: Option<&str>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
    offset: u64,
    length: Option<u64>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = Request::of_range(name, (offset, length), options)?;
    let max_zeros = request.options().max_zeros;
    let wanted = Wanted::new(digests, construction, block_size, salt, expect, max_zeros)?;
    let job = Job { wanted, tuning: arguments::tuning(threads, max_zeros)? };
    let watch = Watch { progress, cancel };
    watch.run(py, move |progress| job.run(&request.open()?, progress))?.into_result(py)
}

/// The work of a call.
pub struct Job {
    pub wanted: Wanted,
    pub tuning: Tuning,
}

/// The checksums to compute.
pub enum Wanted {
    /// All of these, with the names of the digests as the caller gave them.
    Checksums(Vec<(String, Parameters)>),
    /// The one that this value is.
    Value(Value, Search),
}

impl Wanted {
    pub fn new(
        digests: Option<&Bound<'_, PyAny>>,
        construction: Option<&str>,
        block_size: Option<u64>,
        salt: Option<&Bound<'_, PyAny>>,
        expect: Option<&str>,
        max_zeros: Option<u64>,
    ) -> PyResult<Self> {
        let names = digests.map(arguments::digests).transpose()?;
        let Some(text) = expect else {
            let definition =
                Definition::new(construction.unwrap_or("streams:4"), block_size, salt)?;
            let names = names.unwrap_or_else(|| vec!["sha256".to_owned()]).into_iter();
            let all = names.map(|name| definition.parameters(&name).map(|it| (name, it)));
            return all.collect::<PyResult<_>>().map(Self::Checksums);
        };
        let value: Value = text.parse().map_err(|error| value_error(format!("expect {error}")))?;
        if !arguments::salt(salt)?.is_empty() {
            return Err(value_error("expect: no salt is tried"));
        }
        let names = names.unwrap_or_default();
        let algorithms = names.iter().map(|name| arguments::algorithm(name));
        let search = Search {
            algorithms: algorithms.collect::<PyResult<_>>()?,
            construction: construction.map(str::parse).transpose().map_err(value_error)?,
            block_size: block_size.map(arguments::block_size).transpose()?,
            limits: Limits::SHORT.all_digests().unless_set(max_zeros),
        };
        match search.digests(&value).is_empty() {
            true => Err(value_error("expect: none of the digests is that long")),
            false => Ok(Self::Value(value, search)),
        }
    }
}

impl Job {
    /// Computes the checksums.
    pub fn run(&self, opened: &Opened, progress: &Progress) -> Result<Passed, Failure> {
        let failed = |error| Failure::Pass(error, OsString::new());
        let (hexdigests, tag) = match &self.wanted {
            Wanted::Checksums(all) => {
                let parameters: Vec<_> = all.iter().map(|(_, parameters)| *parameters).collect();
                let content = opened.content();
                let digests = blksum::checksums(content, &parameters, &self.tuning, progress);
                let digests = digests.map_err(failed)?;
                let texts = digests.iter().map(Digest::to_string);
                let tag = match &*parameters {
                    [one] => opened.recorded().and_then(|content| tag(*one, content)),
                    _ => None,
                };
                (all.iter().map(|(name, _)| name.clone()).zip(texts).collect(), tag)
            }
            Wanted::Value(value, search) => {
                let bytes = opened.bytes.as_ref().map(FileBytes::open).transpose()?;
                let bytes = bytes.as_ref().map(|bytes| bytes as &dyn Source);
                let image = &opened.selected;
                let found = expect::find(value, search, image, bytes, &self.tuning, progress);
                let found = found.map_err(failed)?;
                let Some(matched) = found.matched else {
                    let (kind, reason) = refusal(&found);
                    return Err(Failure::Unexpected(kind, reason, opened.name.clone()));
                };
                let digest = Digest::try_from(&*value.digest).expect("as long as some digest");
                let algorithm = matched.reading.parameters.algorithm();
                let tag = matched.reading.tag(opened.recorded().unwrap_or_default()).to_string();
                (vec![(algorithm.to_string(), digest.to_string())], Some(tag))
            }
        };
        let (size, format) = (opened.content().size(), opened.image().format().name());
        Ok(Passed { hexdigests, size, format, tag })
    }
}

/// Returns the tag of a checksum. `None` for an empty digest, which proves nothing.
fn tag(parameters: Parameters, content: Content) -> Option<String> {
    let tag = Tag::Image(Box::new(ImageTag { parameters, content }));
    (tag.digest_size() > 0).then(|| tag.to_string())
}

/// Returns why a value is refused: a word for programs, and one for people.
fn refusal(found: &expect::Found) -> (&'static str, String) {
    if let Some((reading, doubt)) = &found.doubted {
        return ("undecided", describe_doubt(reading, doubt));
    }
    if found.tried.is_empty() {
        let reason = "has not this number of parts, if their size is a power of two up to 64 MiB, \
                      or block_size";
        return ("expected", reason.to_owned());
    }
    let mut reason = format!("does not match as {}", found.describe_tried());
    if let Some(untried) = found.untried.first() {
        let advice = match untried {
            Untried::Folds => ": digests names one",
            Untried::Linear => ": construction=\"linear\" tries it",
            Untried::Bytes => ": format=\"raw\" and construction=\"linear\" try them",
            _ => "",
        };
        reason += &format!("; not everything was tried: {untried}{advice}");
    }
    ("expected", reason)
}

fn describe_doubt(reading: &Reading, doubt: &Doubt) -> String {
    let argument = match reading.is_of_file() {
        true => "format=\"raw\", construction=\"linear\"".to_owned(),
        false => format!("construction=\"{}\"", reading.parameters.construction()),
    };
    format!("has this value as {reading}, but {doubt}: {argument} takes it")
}

/// The result of a pass.
pub struct Passed {
    hexdigests: Vec<(String, String)>,
    size: u64,
    format: &'static str,
    tag: Option<String>,
}

impl Passed {
    /// Returns how the checksum was computed.
    pub fn tag(self) -> Option<String> {
        self.tag
    }

    /// Returns the object for Python.
    pub fn into_result(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let hexdigests = PyDict::new(py);
        for (name, hexdigest) in self.hexdigests {
            hexdigests.set_item(name, hexdigest)?;
        }
        types::CHECKSUM.make(py, (hexdigests, self.size, self.format, self.tag))
    }
}
