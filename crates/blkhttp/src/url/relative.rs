//! URLs relative to others: names of files next to an object, and the places to which servers redirect.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::parse::{MAX_LENGTH, split_target};
use super::{Scheme, Url};
use crate::{Error, ErrorKind, Result};

impl Url {
    /// Returns the URL of a file beneath the folder of this one, whose name may contain slashes. The query is not carried over.
    ///
    /// # Errors
    ///
    /// Fails if the name could lead out of the folder: it is empty, absolute, has a scheme, a part that is empty, `.` or `..`, also if
    /// decoded, an encoded slash, a backslash or a control character.
    pub fn join(&self, relative: &str) -> Result<Self> {
        let refuse = |reason: &str| {
            let name = relative.escape_debug();
            Err(Error::new(ErrorKind::Url, self, format!("refers to \"{name}\", which {reason}")))
        };
        if relative.is_empty() || relative.len() > MAX_LENGTH {
            return refuse("has no valid length");
        }
        if relative.contains(|c: char| c.is_control() || c == '\\') {
            return refuse("has a control character or a backslash");
        }
        if relative.split('/').next().is_some_and(|first| first.contains(':')) {
            return refuse("begins with a scheme");
        }
        for part in relative.split('/') {
            let Some(decoded) = decoded(part) else {
                return refuse("is encoded too often");
            };
            if matches!(decoded.as_slice(), b"" | b"." | b"..") {
                return refuse("leads out of its folder");
            }
            if decoded.iter().any(|b| b.is_ascii_control() || b"/\\".contains(b)) {
                return refuse("has an encoded slash or control character");
            }
        }
        let folder = &self.path[..=self.path.rfind('/').unwrap_or(0)];
        let name = match self.scheme {
            Scheme::S3 => relative.to_owned(),
            Scheme::Http | Scheme::Https => utf8_percent_encode(relative, NAME).to_string(),
        };
        let path = format!("{folder}{name}");
        if path.len() > MAX_LENGTH || self.is_s3() && path.len() > 1025 {
            return refuse("has no valid length");
        }
        Ok(Self { path, query: None, ..self.clone() })
    }

    /// Returns the URL that a redirect leads to. Without a host of its own it keeps the name and password.
    ///
    /// # Errors
    ///
    /// Fails if it is no valid URL of HTTP.
    pub(crate) fn follow(&self, location: &str) -> Result<Self> {
        let location = location.split('#').next().unwrap_or_default();
        if location.len() > MAX_LENGTH || location.contains(|c: char| c.is_control()) {
            return Err(Error::invalid_url("is no valid URL"));
        }
        if let Some(rest) = location.strip_prefix("//") {
            return format!("{}://{rest}", self.scheme_name()).parse();
        }
        let scheme_end = location.find([':', '/', '?']).filter(|&i| location[i..].starts_with(':'));
        if scheme_end.is_some() {
            let mut url: Self = location.parse()?;
            if url.is_s3() {
                return Err(Error::invalid_url("is no URL of http or https"));
            }
            url.path = without_dots(&url.path);
            return Ok(url);
        }
        let (path, query) = match location.chars().next() {
            None => (self.path.clone(), self.query.clone()),
            Some('?') => (self.path.clone(), split_target(location).1),
            Some('/') => split_target(location),
            Some(_) => {
                let folder = &self.path[..=self.path.rfind('/').unwrap_or(0)];
                let (path, query) = split_target(location);
                (format!("{folder}{}", path.trim_start_matches('/')), query)
            }
        };
        Ok(Self { path: without_dots(&path), query, ..self.clone() })
    }
}

/// Decodes a part of a path until there is nothing left to decode, as servers in a chain may. `None` if that takes
/// long.
fn decoded(part: &str) -> Option<Vec<u8>> {
    let mut bytes = part.as_bytes().to_vec();
    for _ in 0..4 {
        let next: Vec<u8> = percent_encoding::percent_decode(&bytes).collect();
        if next == bytes {
            return Some(bytes);
        }
        bytes = next;
    }
    let next: Vec<u8> = percent_decode_str(&String::from_utf8_lossy(&bytes)).collect();
    (next == bytes).then_some(bytes)
}

/// Removes the parts `.` and `..` of an absolute path, as in section 5.2.4 of RFC 3986.
fn without_dots(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let mut kept: Vec<&str> = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let is_last = i + 1 == parts.len();
        match *part {
            "." if is_last => kept.push(""),
            "." => {}
            ".." => {
                kept.pop();
                if is_last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Characters of a name that are encoded: all but slashes and those that mean nothing in a URL.
const NAME: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
