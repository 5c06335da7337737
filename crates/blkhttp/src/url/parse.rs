//! Reads URLs, of users and of servers.

use std::net::Ipv6Addr;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{Scheme, Url, User};
use crate::{Error, Result};

impl FromStr for Url {
    type Err = Error;

    /// Reads a URL. Spaces and letters that a URL cannot have are encoded. The key of S3 is taken as it is written.
    fn from_str(text: &str) -> Result<Self> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Error::invalid_url("is no URL of http, https or s3"));
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "s3" => Scheme::S3,
            _ => return Err(Error::invalid_url("is no URL of http, https or s3")),
        };
        if text.len() > MAX_LENGTH {
            return Err(Error::invalid_url("is a URL of more than 16 KiB"));
        }
        if text.contains(|c: char| c.is_control()) {
            return Err(Error::invalid_url("is a URL with a control character"));
        }
        if scheme == Scheme::S3 { s3(rest) } else { http(scheme, rest) }
    }
}

/// Reads a bucket and a key.
fn s3(rest: &str) -> Result<Url> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if bucket.is_empty() || bucket.len() > 255 || !bucket.bytes().all(allowed) {
        return Err(Error::invalid_url("is a URL of S3 without a valid name of a bucket"));
    }
    if key.is_empty() || key.len() > 1024 {
        let reason = "is a URL of S3 without a valid key, as in s3://BUCKET/KEY";
        return Err(Error::invalid_url(reason));
    }
    let (host, path) = (bucket.to_owned(), format!("/{key}"));
    Ok(Url { scheme: Scheme::S3, user: None, host, port: None, path, query: None })
}

/// Reads what follows the scheme of HTTP.
fn http(scheme: Scheme, rest: &str) -> Result<Url> {
    if rest.contains('#') {
        let reason = "is a URL with a fragment; a \"#\" in the name of a file is written %23";
        return Err(Error::invalid_url(reason));
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let (user, host_port) = match authority.rsplit_once('@') {
        Some((user, host_port)) => (Some(User::new(user)), host_port),
        None => (None, authority),
    };
    let (host, port) = host_and_port(host_port)?;
    let (path, query) = split_target(target);
    Ok(Url { scheme, user, host, port, path, query })
}

impl User {
    /// Decodes a name and a password.
    fn new(text: &str) -> Self {
        let (name, password) = match text.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (text, None),
        };
        let decoded = |text| percent_decode_str(text).collect();
        Self { name: decoded(name), password: password.map(decoded) }
    }
}

/// Returns the host in lower case, and the port.
fn host_and_port(text: &str) -> Result<(String, Option<u16>)> {
    let host_end = match text.rfind(']') {
        Some(bracket) => bracket + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at(host_end);
    if !is_host(host) {
        return Err(Error::invalid_url("is a URL without a valid name or address of a host"));
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some("") => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|&port: &u16| port > 0)
        }
        _ => return Err(Error::invalid_url("is a URL without a valid port")),
    };
    if port.is_none() && text.len() > host_end + 1 {
        return Err(Error::invalid_url("is a URL without a valid port"));
    }
    Ok((host.to_ascii_lowercase(), port))
}

/// Returns whether a text can be the name or address of a host.
fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    !text.is_empty() && text.len() <= 253 && text.bytes().all(allowed)
}

/// Splits a target into its path and query, and encodes what they cannot have.
pub(super) fn split_target(target: &str) -> (String, Option<String>) {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let path = utf8_percent_encode(path, INVALID).to_string();
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    (path, query.map(|query| utf8_percent_encode(query, INVALID).to_string()))
}

/// Characters that are in no URL. Those that are not ASCII are encoded as well.
const INVALID: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Maximum length of a URL, of a user or of a redirect. Signed ones have a few KiB.
/// Limit in bytes.
pub(super) const MAX_LENGTH: usize = 16 << 10;
