//! Asks a server for the checksums that it stores with an object, and for the parts that they are of.

use std::num::NonZeroU64;

use http::header::{CONTENT_LENGTH, ETAG};
use http::{Method, StatusCode};

use super::problem::Problem;
use super::refusal::Described;
use super::stored::{
    ChecksumAlgorithm, ChecksumKind, MAX_PARTS, StoredChecksum, StoredPart, of_headers,
};
use super::xml;
use crate::answer::Answer;
use crate::{ErrorKind, Result};

/// Sends a request about one object, with a query and additional headers.
pub(crate) type Ask<'a> = dyn Fn(Method, &str, &[(&'static str, &str)]) -> Result<Answer> + 'a;

/// An object whose checksums are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Whether the server has the interface of S3. Without, only the headers of an answer are read.
    pub is_s3: bool,
    /// Size in bytes.
    pub size: u64,
    /// The entity tag with its quotes, which has to be the same.
    pub tag: Option<&'a str>,
}

impl Asked<'_> {
    /// Returns the checksums that the server stores. Parts whose sizes it does not state are left out.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, refuses to answer, or has another object by now. The outer error is about
    /// the connection.
    pub fn checksums(&self, ask: &Ask<'_>) -> Result<Result<Vec<StoredChecksum>, Problem>> {
        let tag = self.tag.filter(|tag| !tag.starts_with("W/")).map(|tag| ("if-match", tag));
        // A URL that is signed for GET is valid for no other method.
        let (method, header) = match self.is_s3 {
            true => (Method::HEAD, ("x-amz-checksum-mode", "ENABLED")),
            false => (Method::GET, ("range", "bytes=0-0")),
        };
        let headers: Vec<_> = [Some(header), tag].into_iter().flatten().collect();
        let answer = ask(method, "", &headers)?;
        match answer.status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
            StatusCode::RANGE_NOT_SATISFIABLE if self.size == 0 => {}
            StatusCode::PRECONDITION_FAILED => {
                return Ok(Err(Problem(ErrorKind::Changed, "the object changed".into())));
            }
            status => {
                let problem = Described::read(&answer).problem(status, true);
                let reason =
                    format!("the server does not describe the object: status {}", status.as_u16());
                return Ok(Err(problem.unwrap_or(Problem(ErrorKind::Unavailable, reason))));
            }
        }
        let mut checksums = of_headers(&answer.headers, self.is_s3);
        let composite = checksums.iter().find_map(|it| match it.kind {
            ChecksumKind::Composite { count, .. } => Some(count),
            ChecksumKind::Whole => None,
        });
        if let Some(count) = composite.filter(|_| self.is_s3) {
            let listed = self.listed(ask)?;
            let first = match &listed {
                Some(_) => None,
                None => self.first_part(ask, &headers, count)?,
            };
            for checksum in &mut checksums {
                set_parts(checksum, listed.as_deref(), first, self.size);
            }
        }
        Ok(Ok(checksums))
    }

    /// Returns the parts that `GetObjectAttributes` lists. `None` if the server or the credentials do not allow it, or the list is
    /// not the object's.
    fn listed(&self, ask: &Ask<'_>) -> Result<Option<Vec<Listed>>> {
        let (mut parts, mut total) = (Vec::new(), 0_u64);
        for _ in 0..MAX_PAGES {
            let marker = parts.last().map_or(0, |part: &Listed| part.number).to_string();
            let headers = [
                ("x-amz-object-attributes", "ETag,ObjectParts"),
                ("x-amz-max-parts", "1000"),
                ("x-amz-part-number-marker", &marker),
            ];
            let answer = ask(Method::GET, "attributes", &headers)?;
            let page = Some(answer).filter(|it| it.status == StatusCode::OK);
            let Some(page) = page.and_then(|it| Page::read(&it.body)) else {
                return Ok(None);
            };
            let is_same = self
                .tag
                .is_none_or(|tag| page.tag.as_deref().is_none_or(|it| tag.trim_matches('"') == it));
            if page.parts.is_empty() || !is_same {
                return Ok(None);
            }
            for part in page.parts {
                let last = parts.last().map_or(0, |it: &Listed| it.number);
                match total.checked_add(part.size).filter(|it| *it <= self.size) {
                    Some(sum) if part.number > last && part.number <= MAX_PARTS => total = sum,
                    _ => return Ok(None),
                }
                parts.push(part);
            }
            if !page.is_truncated {
                return Ok(Some(parts).filter(|_| total == self.size));
            }
        }
        Ok(None)
    }

    /// Returns the size of the first part, if the object can consist of `count` parts of this size.
    fn first_part(
        &self,
        ask: &Ask<'_>,
        headers: &[(&'static str, &str)],
        count: u32,
    ) -> Result<Option<NonZeroU64>> {
        let answer = ask(Method::HEAD, "partNumber=1", headers)?;
        if answer.status != StatusCode::PARTIAL_CONTENT {
            return Ok(None);
        }
        let header = |name: &str| answer.headers.get(name)?.to_str().ok();
        if header(ETAG.as_str()).is_some_and(|tag| self.tag.is_some_and(|it| it != tag)) {
            return Ok(None);
        }
        let size = header(CONTENT_LENGTH.as_str()).and_then(|text| text.parse::<NonZeroU64>().ok());
        Ok(size.filter(|size| self.size.div_ceil(size.get()) == u64::from(count)))
    }
}

/// Adds the parts to a checksum of checksums.
fn set_parts(
    checksum: &mut StoredChecksum,
    listed: Option<&[Listed]>,
    first: Option<NonZeroU64>,
    size: u64,
) {
    let algorithm = checksum.algorithm;
    let ChecksumKind::Composite { count, parts, are_sizes_assumed } = &mut checksum.kind else {
        return;
    };
    if let Some(listed) = listed.filter(|it| u32::try_from(it.len()) == Ok(*count)) {
        let own = listed.iter().map(|part| {
            let checksum = part.checksums.iter().find(|(it, _)| *it == algorithm);
            StoredPart::new(part.size, checksum.map(|(_, value)| value.clone()))
        });
        *parts = own.collect();
    } else if let Some(first) = first.filter(|it| size.div_ceil(it.get()) == u64::from(*count)) {
        let mut left = size;
        while left > 0 {
            let size = left.min(first.get());
            parts.push(StoredPart::new(size, None));
            left -= size;
        }
        *are_sizes_assumed = *count > 1;
    }
}

/// A part that a server lists.
struct Listed {
    number: u32,
    size: u64,
    checksums: Vec<(ChecksumAlgorithm, Vec<u8>)>,
}

/// An answer to `GetObjectAttributes`.
#[derive(Default)]
struct Page {
    tag: Option<String>,
    parts: Vec<Listed>,
    is_truncated: bool,
}

impl Page {
    /// Reads an answer. `None` if it is not valid.
    fn read(body: &[u8]) -> Option<Self> {
        let mut page = Self::default();
        let (mut number, mut size, mut checksums) = (None, None, Vec::new());
        xml::each_element(body, |name, text| {
            match (name, text) {
                ("ETag", Some(text)) => page.tag = Some(text.trim_matches('"').to_owned()),
                ("IsTruncated", Some(text)) => page.is_truncated = text == "true",
                ("PartNumber", Some(text)) => number = Some(text.parse().ok()?),
                ("Size", Some(text)) => size = Some(text.parse().ok()?),
                ("Part", _) => {
                    let (number, size) = (number.take()?, size.take()?);
                    let checksums = std::mem::take(&mut checksums);
                    page.parts.push(Listed { number, size, checksums });
                    if page.parts.len() > MAX_PARTS as usize {
                        return None;
                    }
                }
                (name, Some(text)) => {
                    if let Some(algorithm) = ChecksumAlgorithm::of_name(name)
                        && let Some(value) = algorithm.decode(text)
                    {
                        checksums.push((algorithm, value));
                    }
                }
                // The checksum of the whole object, which the headers have.
                ("Checksum", None) => checksums.clear(),
                (_, None) => {}
            }
            (checksums.len() <= MAX_CHECKSUMS).then_some(())
        })?;
        Some(page)
    }
}

/// Maximum number of answers about parts. A server may list fewer in each than were asked for.
/// Limit in requests.
const MAX_PAGES: u32 = 100;

/// Maximum number of checksums of a part.
/// Limit in checksums.
const MAX_CHECKSUMS: usize = 16;

#[cfg(test)]
mod tests;
