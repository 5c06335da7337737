//! Finds out which checksum of an image a value is.

use std::ffi::OsString;
use std::path::Path;

use blkimage::{ExtentKind, Format, Image, Location, OpenOptions, Source};

use super::candidates::{Candidates, Found};
use super::limits::{Amount, Limits};
use super::search::{Pass, Search, Subject};
use super::shape::Shape;
use super::value::Value;
use crate::{Error, Progress, Selected, Tuning, checksums};

/// Tries what a value can be, likeliest first, until a checksum of the image equals it. There is a pass over the image for
/// each step of [`Search::passes`].
///
/// `bytes` is the file that stores the image, as [`FileBytes`] opens it. Values of parts are of its bytes, or of raw
/// content.
///
/// # Errors
///
/// Fails like [`checksums`](crate::checksums).
pub fn find(
    value: &Value,
    search: &Search,
    image: &Selected,
    bytes: Option<&dyn Source>,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<Found, Error> {
    let content: &dyn Source = image.source();
    let is_raw = bytes.is_none() && image.image().format() == Format::Raw;
    let is_compressed = bytes.is_some() && image.image().format() == Format::Raw;
    let mut candidates = Candidates::new(search, std::slice::from_ref(value));
    candidates.add_parts(bytes.unwrap_or(content).size());
    let source = |subject| match (subject, bytes) {
        (Subject::Content, _) => Some(content),
        (Subject::Bytes, Some(bytes)) => Some(bytes),
        // The content is these bytes, and was tried.
        (Subject::Bytes, None) => value.parts.map(|_| content),
    };
    loop {
        // What is likely is always tried.
        let is_first = candidates.found().tried.is_empty();
        let pass = candidates.next(|pass| {
            let source = source(pass.subject)?;
            let has_limits = !is_first && search.limits != Limits::NONE;
            Some(if has_limits { amount(source, progress) } else { Amount::default() })
        });
        let Some(Pass { subject, parameters }) = pass else { return Ok(candidates.into_found()) };
        let source = source(subject).expect("it has an amount");
        let digests = checksums(source, &parameters, tuning, progress)?;
        let all: Vec<_> = parameters.into_iter().zip(digests).collect();
        let is_of_bytes = subject == Subject::Bytes;
        // What decodes, with its checksums, is no list of digests.
        let is_sure = is_of_bytes && is_compressed;
        candidates.take(subject, &all, |parameters| match is_sure {
            true => Ok::<_, Error>(None),
            false => Ok(Shape::of(source)?.doubt(parameters, is_of_bytes || is_raw)),
        })?;
    }
}

/// Returns how much a pass hashes. An extent that cannot be read counts as data: the pass fails.
fn amount(source: &dyn Source, progress: &Progress) -> Amount {
    let (size, mut at, mut zeros) = (source.size(), 0, 0);
    while at < size
        && !progress.is_cancelled()
        && let Ok(extent) = source.extent(at, size - at)
    {
        if extent.kind == ExtentKind::Zero {
            zeros += extent.length;
        }
        at = extent.end();
    }
    Amount { size, zeros }
}

/// The file or object that stores an image, whose bytes a value can be of.
#[derive(Clone, Debug)]
pub struct FileBytes {
    name: OsString,
    force_share: bool,
    #[cfg(feature = "http")]
    http: blkimage::HttpOptions,
}

impl FileBytes {
    /// Returns the file of an image that was opened with these options. `None` unless all of the image was selected, and
    /// the file has other bytes than the content.
    pub fn of(location: Location<'_>, options: &OpenOptions, image: &Selected) -> Option<Self> {
        let name = match location {
            Location::Path(path) => path.as_os_str(),
            Location::Uri(uri) => uri,
            _ => return None,
        };
        let is_whole = image.part().is_none() && options.snapshot.is_none();
        let image = image.image();
        let is_plain = image.format() == Format::Raw && !image.is_decompressed();
        // An export is content, and has no other bytes.
        let is_file = location.is_url() || !location.is_uri() && Path::new(name).is_file();
        let is_other = is_whole && !is_plain && is_file;
        is_other.then(|| Self {
            name: name.to_owned(),
            force_share: options.force_share,
            #[cfg(feature = "http")]
            http: options.http.clone(),
        })
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened.
    pub fn open(&self) -> blkimage::Result<Image> {
        let mut options = OpenOptions::new().format(Format::Raw);
        options.force_share = self.force_share;
        #[cfg(feature = "http")]
        {
            options.http = self.http.clone();
        }
        options.open_location(Location::new(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use blkhash::{Hasher, Parameters};
    use blkimage::Memory;

    use super::*;
    use crate::expect::{Doubt, Match, Reading, Untried};

    fn image(content: &[u8]) -> Selected {
        let options = OpenOptions::new().format(Format::Raw);
        let image = options.open_storage(Box::new(Memory(content.to_vec())), "image").unwrap();
        Selected::new(Arc::new(image), None).unwrap()
    }

    fn value(construction: &str, content: &[u8]) -> (Value, Parameters) {
        let construction: blkhash::Construction = construction.parse().unwrap();
        let block_size = construction.default_block_size();
        let parameters =
            Parameters::new(blkhash::Algorithm::Sha256, construction, block_size).unwrap();
        let mut hasher = Hasher::new(parameters, 1);
        hasher.update(content);
        (Value::new(hasher.finalize().as_bytes().to_vec()).unwrap(), parameters)
    }

    fn find(value: &Value, image: &Selected, bytes: Option<&dyn Source>) -> Found {
        let (tuning, progress) = (Tuning::default(), Progress::new());
        super::find(value, &Search::default(), image, bytes, &tuning, &progress).unwrap()
    }

    fn matched(subject: Subject, parameters: Parameters) -> Option<Match> {
        Some(Match { value: 0, reading: Reading::of(subject, parameters) })
    }

    #[test]
    fn every_construction_is_found() {
        let content = [&[7; 100_000][..], &[0; 200_000]].concat();
        let image = image(&content);
        for construction in ["streams:4", "streams:32", "flat", "concat", "linear"] {
            let (value, parameters) = value(construction, &content);
            let found = find(&value, &image, None);
            assert_eq!(found.matched, matched(Subject::Content, parameters), "{construction}");
        }
        let (other, _) = value("streams:4", &content[1..]);
        let found = find(&other, &image, None);
        assert_eq!((found.matched, found.doubted), (None, None));
        assert_eq!(found.untried, []);
        let tried = found.describe_tried();
        assert!(tried.starts_with("streams:4, streams:32, streams:64, flat, concat, linear"));
        assert!(tried.contains("concat with blocks of 4 MiB, with sha256, "), "{tried}");
    }

    #[test]
    fn bytes_of_the_file_are_found() {
        let (content, file) = ([7; 1000], [8; 900]);
        let (value, parameters) = value("linear", &file);
        let (image, bytes) = (image(&content), image(&file));
        let found = find(&value, &image, Some(bytes.source()));
        assert_eq!(found.matched, matched(Subject::Bytes, parameters));
        assert_eq!(find(&value, &image, None).matched, None);
    }

    #[test]
    fn a_list_of_digests_is_doubted() {
        let content = [value("linear", &[1]).0.digest, value("linear", &[2]).0.digest].concat();
        let found = find(&value("linear", &content).0, &image(&content), None);
        assert_eq!(found.matched, None);
        assert!(matches!(found.doubted, Some((_, Doubt::Digests))));
    }

    #[test]
    fn what_is_likely_has_no_limit() {
        let content = [7; 100_000];
        let (image, limits) = (image(&content), Limits { size: 0, zeros: 0, folds: 0 });
        let search = Search { limits, ..Search::default() };
        let find = |construction| {
            let (value, parameters) = value(construction, &content);
            let (tuning, progress) = (Tuning::default(), Progress::new());
            let found = super::find(&value, &search, &image, None, &tuning, &progress).unwrap();
            (found.matched == matched(Subject::Content, parameters), found.untried)
        };
        assert_eq!(find("flat"), (true, vec![]));
        // No zeros are left to the limit of the most common digest.
        assert_eq!(find("linear"), (true, vec![]));
        let (mut other, _) = value("linear", &content);
        other.digest[0] ^= 1;
        let (tuning, progress) = (Tuning::default(), Progress::new());
        let found = super::find(&other, &search, &image, None, &tuning, &progress).unwrap();
        assert_eq!(found.untried, [Untried::Digests(0)]);
        assert!(!found.describe_tried().contains("blake3"));
    }
}
