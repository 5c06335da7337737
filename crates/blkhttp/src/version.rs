//! Which version of an object an answer is about, and which bytes of it it contains.

use std::ops::Range;

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::error::{ErrorKind, Fault, quoted};

/// What tells that an object did not change between two answers, the best that its server has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Validator {
    /// A strong ETag, with its quotes: each content has another one. The server compares it with each request as well.
    ETag(String),
    /// The time of the last change, as the server writes it, and the length. Two changes within a second may go unseen.
    LastModified(String),
    /// Only the length: a change that keeps it goes unseen.
    Length,
}

/// The version of an object that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
    /// Length of the object. `None` if the server does not state it.
    pub length: Option<u64>,
}

/// What the body of an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Some bytes of the object, at these offsets.
    Range(Range<u64>),
    /// The object as a whole.
    Whole,
    /// Nothing: the range is past the end.
    Outside,
}

impl Version {
    /// Reads the headers of an answer that has content, with a status of 200, 206 or 416.
    ///
    /// # Errors
    ///
    /// Fails if they contradict each other or do not describe plain bytes.
    pub fn new(status: StatusCode, headers: &HeaderMap) -> Result<(Self, Content), Fault> {
        check_encoding(headers)?;
        let (length, content) = match status {
            StatusCode::PARTIAL_CONTENT => {
                let (range, length) = content_range(headers)?;
                let Some(range) = range else {
                    return Err(Fault::protocol(
                        "the server stated no range of bytes that it sends",
                    ));
                };
                if content_length(headers)?.is_some_and(|n| n != range.end - range.start) {
                    let reason =
                        "the server stated a length other than the length of the range it sends";
                    return Err(Fault::protocol(reason));
                }
                (length, Content::Range(range))
            }
            StatusCode::RANGE_NOT_SATISFIABLE => (content_range(headers)?.1, Content::Outside),
            _ => (content_length(headers)?, Content::Whole),
        };
        let header = |name: HeaderName| headers.get(name).cloned();
        Ok((Self { etag: header(ETAG), last_modified: header(LAST_MODIFIED), length }, content))
    }

    /// Returns the ETag as the server sent it, also if it is weak.
    pub fn etag(&self) -> Option<String> {
        Some(self.etag.as_ref()?.to_str().ok()?.to_owned())
    }

    /// Returns what pins this version.
    pub fn validator(&self) -> Validator {
        if let Some(etag) = self.strong_etag() {
            return Validator::ETag(etag.to_owned());
        }
        match self.last_modified.as_ref().and_then(|time| time.to_str().ok()) {
            Some(time) => Validator::LastModified(time.to_owned()),
            None => Validator::Length,
        }
    }

    /// Adds the conditions under which a server may send bytes of this version.
    pub fn add_conditions(&self, headers: &mut HeaderMap) {
        match (self.strong_etag(), &self.etag, &self.last_modified) {
            (Some(_), Some(etag), _) => {
                headers.insert(IF_MATCH, etag.clone());
            }
            (_, _, Some(time)) => {
                headers.insert(IF_UNMODIFIED_SINCE, time.clone());
            }
            _ => {}
        }
    }

    /// Fails if an answer is about another version, or does not say which one it is about.
    pub fn check(&self, other: &Self) -> Result<(), Fault> {
        let is_strong = self.strong_etag().is_some();
        // Apache calls the tag of a file weak that changed less than a second ago, and strong later.
        if is_strong || opaque(&self.etag) != opaque(&other.etag) {
            compare("ETag", &self.etag, &other.etag, is_strong)?;
        }
        if !is_strong {
            compare("Last-Modified", &self.last_modified, &other.last_modified, true)?;
        }
        match (self.length, other.length) {
            (Some(was), Some(is)) if was != is => {
                Err(changed(&format!("its length was {was}, is {is}")))
            }
            (Some(_), None) => Err(Fault::protocol("the server no longer states the length")),
            _ => Ok(()),
        }
    }

    /// Returns the ETag if it is strong and well-formed.
    fn strong_etag(&self) -> Option<&str> {
        let text = self.etag.as_ref()?.to_str().ok()?;
        let inner = text.strip_prefix('"')?.strip_suffix('"')?;
        (!inner.contains('"')).then_some(text)
    }
}

/// Returns what a weak ETag has in common with the strong one: what is between the quotes, with them.
fn opaque(etag: &Option<HeaderValue>) -> Option<&[u8]> {
    let tag = etag.as_ref()?.as_bytes();
    Some(tag.strip_prefix(b"W/").unwrap_or(tag))
}

/// Returns the fault of an object that changed.
pub(crate) fn changed(how: &str) -> Fault {
    Fault::Final(ErrorKind::Changed, format!("changed while it was read: {how}"))
}

/// Compares a header of two answers. Only one that both have can differ, unless it is required.
fn compare(
    name: &str,
    was: &Option<HeaderValue>,
    is: &Option<HeaderValue>,
    required: bool,
) -> Result<(), Fault> {
    match (was, is) {
        (Some(was), Some(is)) if was != is => {
            let (was, is) = (shown(was), shown(is));
            Err(changed(&format!("{name} was {was}, is {is}")))
        }
        (Some(was), None) if required => {
            let was = shown(was);
            let reason = format!("the server sent bytes without {name}, which was {was}");
            Err(Fault::protocol(reason))
        }
        _ => Ok(()),
    }
}

/// Returns the value of a header for a message.
fn shown(value: &HeaderValue) -> String {
    let bytes = value.as_bytes();
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= 100);
    match text {
        Some(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => quoted(bytes),
    }
}

/// Fails if a body is not the bytes themselves.
fn check_encoding(headers: &HeaderMap) -> Result<(), Fault> {
    // Some servers of S3 keep what only the upload was encoded as.
    for (name, own) in [(CONTENT_ENCODING, "aws-chunked"), (TRANSFER_ENCODING, "chunked")] {
        let plain = ["", "identity", own].map(str::as_bytes);
        for value in headers.get_all(name) {
            if !plain.iter().any(|plain| value.as_bytes().eq_ignore_ascii_case(plain)) {
                let reason = format!("the server sends it encoded as {}", quoted(value.as_bytes()));
                return Err(Fault::Final(ErrorKind::Unsupported, reason));
            }
        }
    }
    let multipart = b"multipart/byteranges";
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if kind.get(..multipart.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(multipart)) {
        return Err(Fault::protocol("the server sent several ranges where one was asked for"));
    }
    Ok(())
}

/// Returns the range and the length in a header `Content-Range`.
fn content_range(headers: &HeaderMap) -> Result<(Option<Range<u64>>, Option<u64>), Fault> {
    let mut values = headers.get_all(CONTENT_RANGE).iter();
    let Some(value) = values.next() else { return Ok((None, None)) };
    let parsed = value.to_str().ok().and_then(parse_content_range);
    match parsed {
        Some(parsed) if values.next().is_none() => Ok(parsed),
        _ => {
            let value = quoted(value.as_bytes());
            Err(Fault::protocol(format!("the server stated a range that is not valid: {value}")))
        }
    }
}

fn parse_content_range(text: &str) -> Option<(Option<Range<u64>>, Option<u64>)> {
    let (unit, rest) = text.trim().split_once(' ')?;
    let (range, length) = rest.trim().split_once('/')?;
    let length = if length == "*" { None } else { Some(number(length)?) };
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    if range == "*" {
        return Some((None, length));
    }
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    let is_valid = first <= last && length.is_none_or(|length| last < length);
    is_valid.then(|| (Some(first..last + 1), length))
}

/// Returns the value of a header `Content-Length`, of which there may be several that are equal.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let parsed = value.to_str().ok().and_then(number);
        if parsed.is_none() || length.is_some() && length != parsed {
            let value = quoted(value.as_bytes());
            let reason = format!("the server stated a length that is not valid: {value}");
            return Err(Fault::protocol(reason));
        }
        length = parsed;
    }
    Ok(length)
}

/// Reads a number that files can have as their size.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (number < i64::MAX as u64).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn version(pairs: &[(&str, &str)]) -> Version {
        Version::new(StatusCode::OK, &headers(pairs)).unwrap().0
    }

    fn kind(fault: Fault) -> ErrorKind {
        match fault {
            Fault::Final(kind, _) => kind,
            Fault::Temporary { reason, .. } => panic!("{reason}"),
        }
    }

    #[test]
    fn ranges_are_read_strictly() {
        let parsed = parse_content_range;
        assert_eq!(parsed("bytes 0-9/10"), Some((Some(0..10), Some(10))));
        assert_eq!(parsed("BYTES 5-5/*"), Some((Some(5..6), None)));
        assert_eq!(parsed("bytes */0"), Some((None, Some(0))));
        for text in [
            "bytes 0-10/10",
            "bytes 9-8/10",
            "bytes 0-9",
            "bytes=0-9/10",
            "items 0-9/10",
            "bytes +0-9/10",
            "bytes 0-18446744073709551615/18446744073709551616",
            "bytes 0-9223372036854775807/9223372036854775808",
            "bytes -9/10",
            "",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let partial = StatusCode::PARTIAL_CONTENT;
        for pairs in [
            &[][..],
            &[("content-range", "bytes 0-9/10"), ("content-length", "9")],
            &[("content-range", "bytes 0-9/10"), ("content-range", "bytes 0-9/10")],
            &[("content-range", "bytes */10")],
            &[
                ("content-type", "Multipart/ByteRanges; boundary=x"),
                ("content-range", "bytes 0-9/10"),
            ],
        ] {
            let fault = Version::new(partial, &headers(pairs)).unwrap_err();
            assert_eq!(kind(fault), ErrorKind::Protocol, "{pairs:?}");
        }
        for plain in ["", "identity", "AWS-chunked"] {
            let plain = headers(&[("content-encoding", plain)]);
            assert!(Version::new(StatusCode::OK, &plain).is_ok());
        }
        let gzip = headers(&[("content-encoding", "gzip")]);
        let fault = Version::new(StatusCode::OK, &gzip).unwrap_err();
        assert_eq!(kind(fault), ErrorKind::Unsupported);
        for length in ["18446744073709551616", "-1", "1, 1", "0x10", ""] {
            let length = headers(&[("content-length", length)]);
            let fault = Version::new(StatusCode::OK, &length).unwrap_err();
            assert_eq!(kind(fault), ErrorKind::Protocol, "{length:?}");
        }
    }

    #[test]
    fn the_best_validator_pins() {
        let time = ("last-modified", "Sat, 01 Jan 2000 00:00:00 GMT");
        let etag = version(&[("etag", "\"a\""), time]);
        assert_eq!(etag.validator(), Validator::ETag("\"a\"".into()));
        for weak in ["W/\"a\"", "a", "\"a", "\"a\"b\""] {
            let version = version(&[("etag", weak), time]);
            assert_eq!(version.validator(), Validator::LastModified(time.1.into()));
            assert_eq!(version.etag().as_deref(), Some(weak));
            let mut conditions = HeaderMap::new();
            version.add_conditions(&mut conditions);
            assert_eq!(conditions.get(IF_UNMODIFIED_SINCE).unwrap(), time.1);
            assert_eq!(conditions.len(), 1);
        }
        assert_eq!(version(&[]).validator(), Validator::Length);
    }

    #[test]
    fn other_versions_are_found() {
        let time = ("last-modified", "Sat, 01 Jan 2000 00:00:00 GMT");
        let later = ("last-modified", "Sat, 01 Jan 2000 00:00:01 GMT");
        let length = ("content-length", "5");
        let check = |was: &[_], is: &[_]| version(was).check(&version(is)).map_err(kind);
        let (changed, protocol) = (Err(ErrorKind::Changed), Err(ErrorKind::Protocol));
        assert_eq!(check(&[("etag", "\"a\""), time], &[("etag", "\"a\""), later]), Ok(()));
        assert_eq!(check(&[("etag", "\"a\"")], &[("etag", "\"b\"")]), changed);
        assert_eq!(check(&[("etag", "\"a\"")], &[]), protocol);
        assert_eq!(check(&[("etag", "W/\"a\"")], &[("etag", "W/\"b\"")]), changed);
        assert_eq!(check(&[("etag", "W/\"a\"")], &[("etag", "\"b\"")]), changed);
        assert_eq!(check(&[("etag", "W/\"a\""), time], &[("etag", "\"a\""), time]), Ok(()));
        assert_eq!(check(&[("etag", "W/\"a\""), time], &[("etag", "\"a\""), later]), changed);
        assert_eq!(check(&[("etag", "\"a\"")], &[("etag", "W/\"a\"")]), changed);
        assert_eq!(check(&[time], &[later]), changed);
        assert_eq!(check(&[time], &[]), protocol);
        assert_eq!(check(&[], &[time]), Ok(()));
        assert_eq!(check(&[length], &[("content-length", "6")]), changed);
        assert_eq!(check(&[length], &[]), protocol);
    }
}
