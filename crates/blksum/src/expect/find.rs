//! Finds out which checksum of an image a value is.

use blkhash::{Digest, Parameters};
use blkimage::{Format, Source};

use super::search::{Search, Subject};
use super::shape::{Doubt, Shape};
use super::value::Value;
use crate::{Error, Progress, Selected, Tuning, checksums};

/// The result of [`find`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// What the value is. `None` if the image does not have it.
    pub matched: Option<(Subject, Parameters)>,
    /// A match that proves nothing, and the reason.
    pub doubted: Option<(Subject, Parameters, Doubt)>,
}

impl Found {
    /// Returns which of these checksums a value is. `None` if it is none of them. `doubt` returns why a checksum with these
    /// parameters proves nothing, as [`Shape::doubt`] does.
    ///
    /// # Errors
    ///
    /// Fails if `doubt` does.
    pub fn among(
        value: &Value,
        search: &Search,
        subject: Subject,
        checksums: &[(Parameters, Digest)],
        doubt: impl FnOnce(&Parameters) -> Result<Option<Doubt>, Error>,
    ) -> Result<Option<Self>, Error> {
        let is_equal = |(_, digest): &&(Parameters, Digest)| digest.as_bytes() == value.digest;
        let Some((parameters, _)) = checksums.iter().find(is_equal) else { return Ok(None) };
        let is_sure = search.construction.is_some() || value.parts.is_some();
        Ok(Some(match if is_sure { None } else { doubt(parameters)? } {
            None => Self { matched: Some((subject, *parameters)), doubted: None },
            Some(doubt) => Self { matched: None, doubted: Some((subject, *parameters, doubt)) },
        }))
    }
}

/// Tries what a value can be, likeliest first, until a checksum of the image equals it. There is a pass over the image for
/// each step of [`Search::passes`].
///
/// `bytes` is the file that stores the image, if all of the image was selected and the file has other bytes than the
/// content. Values of parts are those of its bytes, or of raw content.
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
    let parts = search.parts(value, bytes.unwrap_or(content).size());
    for pass in search.passes(std::slice::from_ref(value)).into_iter().chain(parts) {
        let is_of_bytes = pass.subject == Subject::Bytes;
        let source = match bytes {
            Some(bytes) if is_of_bytes => bytes,
            // The content is these bytes, and was tried.
            None if is_of_bytes && value.parts.is_none() => continue,
            _ => content,
        };
        let digests = checksums(source, &pass.parameters, tuning, progress)?;
        let all: Vec<_> = pass.parameters.iter().copied().zip(digests).collect();
        // What decodes, with its checksums, is no list of digests.
        let is_sure = is_of_bytes && is_compressed;
        let doubt = |parameters: &Parameters| match is_sure {
            true => Ok(None),
            false => Ok(Shape::of(source)?.doubt(parameters, is_of_bytes || is_raw)),
        };
        // A value has no second meaning.
        if let Some(found) = Found::among(value, search, pass.subject, &all, doubt)? {
            return Ok(found);
        }
    }
    Ok(Found::default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use blkhash::Hasher;
    use blkimage::{Memory, OpenOptions};

    use super::*;

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

    #[test]
    fn every_construction_is_found() {
        let content = [&[7; 100_000][..], &[0; 200_000]].concat();
        let image = image(&content);
        for construction in ["streams:4", "streams:32", "flat", "concat", "linear"] {
            let (value, parameters) = value(construction, &content);
            let found = find(&value, &image, None);
            assert_eq!(found.matched, Some((Subject::Content, parameters)), "{construction}");
        }
        let (other, _) = value("streams:4", &content[1..]);
        assert_eq!(find(&other, &image, None), Found::default());
    }

    #[test]
    fn bytes_of_the_file_are_found() {
        let (content, file) = ([7; 1000], [8; 900]);
        let (value, parameters) = value("linear", &file);
        let (image, bytes) = (image(&content), image(&file));
        let found = find(&value, &image, Some(bytes.source()));
        assert_eq!(found.matched, Some((Subject::Bytes, parameters)));
        assert_eq!(find(&value, &image, None).matched, None);
    }

    #[test]
    fn a_list_of_digests_is_doubted() {
        let content = [value("linear", &[1]).0.digest, value("linear", &[2]).0.digest].concat();
        let found = find(&value("linear", &content).0, &image(&content), None);
        assert_eq!(found.matched, None);
        assert!(matches!(found.doubted, Some((_, _, Doubt::Digests))));
    }
}
