//! Where a bucket is: `s3://BUCKET/KEY` as a URL of HTTP.

use http::Uri;
use http::uri::Scheme;

use super::encode;
use super::environment::Environment;
use super::problem::{Problem, excerpt};
use super::profile::Profile;
use crate::{S3Options, Url};

/// A bucket and a key, and how they are put into a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    bucket: String,
    key: String,
    endpoint: Option<Endpoint>,
    /// Whether the bucket is in the path.
    path_style: bool,
}

/// A server that is not AWS, or one of AWS by name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Endpoint {
    scheme: Scheme,
    /// Host, and the port unless it is the scheme's.
    authority: String,
    /// Empty, or a path that begins with a slash and does not end with one.
    path: String,
}

impl Place {
    /// Finds the place of an object from its URL of S3.
    ///
    /// # Errors
    ///
    /// Fails if the bucket is of a kind that is not supported, or the endpoint is not valid.
    pub fn new(
        url: &Url,
        options: &S3Options,
        profile: &Profile,
        environment: &Environment,
    ) -> Result<Self, Problem> {
        let bucket = url.host();
        if bucket.ends_with(DIRECTORY_BUCKET) {
            let reason = "is in a directory bucket (S3 Express One Zone), which is not supported";
            return Err(Problem::unsupported(reason));
        }
        let endpoint = endpoint(options, profile, environment)?;
        let in_profile = match profile.get("s3.addressing_style") {
            Some("path") => Some(true),
            Some("virtual") => Some(false),
            _ => None,
        };
        let chosen = options.path_style.or(in_profile);
        let can_be_host =
            is_host_label(bucket) && !endpoint.as_ref().is_some_and(Endpoint::is_address);
        if chosen == Some(false) && !can_be_host {
            return Err(Problem::url(
                "the bucket cannot be part of the name of the host: its name is no label of DNS, or the endpoint is an address",
            ));
        }
        let path_style = chosen.unwrap_or(endpoint.is_some()) || !can_be_host;
        // The path is a slash and the key, of which nothing is decoded.
        let key = url.path().strip_prefix('/').unwrap_or(url.path()).to_owned();
        Ok(Self { bucket: bucket.to_owned(), key, endpoint, path_style })
    }

    /// Returns the URL of the object, for a region.
    pub fn url(&self, region: &str) -> String {
        let of_aws;
        let endpoint = match &self.endpoint {
            Some(endpoint) => endpoint,
            None => {
                let authority = format!("s3.{region}.{}", domain(region));
                of_aws = Endpoint { scheme: Scheme::HTTPS, authority, path: String::new() };
                &of_aws
            }
        };
        let Endpoint { scheme, authority, path } = endpoint;
        let (bucket, key) = (&self.bucket, encode::path(&self.key));
        match self.path_style {
            true => format!("{scheme}://{authority}{path}/{}/{key}", encode::path(bucket)),
            false => format!("{scheme}://{bucket}.{authority}{path}/{key}"),
        }
    }

    /// Returns whether the region determines the host.
    pub fn is_regional(&self) -> bool {
        self.endpoint.is_none()
    }
}

impl Endpoint {
    fn parse(text: &str) -> Result<Self, Problem> {
        let fail = |reason: &str| {
            let text = if text.contains('@') { "..." } else { &excerpt(text) };
            Problem::url(format!("the endpoint '{text}' {reason}"))
        };
        let uri: Uri = text.parse().map_err(|_| fail("is not valid"))?;
        let scheme = uri.scheme().filter(|it| [Scheme::HTTP, Scheme::HTTPS].contains(it));
        let (Some(scheme), Some(authority)) = (scheme, uri.authority()) else {
            return Err(fail("is no URL of http or https"));
        };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(fail("has a user, a password or a query"));
        }
        let port = if *scheme == Scheme::HTTP { ":80" } else { ":443" };
        let authority = authority.as_str().strip_suffix(port).unwrap_or(authority.as_str());
        Ok(Self {
            scheme: scheme.clone(),
            authority: authority.to_ascii_lowercase(),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns whether the host is an IP address, which has no names beneath it.
    fn is_address(&self) -> bool {
        let host = self.authority.rsplit_once(':').map_or(&*self.authority, |(host, _)| host);
        self.authority.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
    }
}

/// Returns the region of an option, the environment or the profile.
///
/// # Errors
///
/// Fails if it is no name of a region.
pub(crate) fn region(
    options: &S3Options,
    profile: &Profile,
    environment: &Environment,
) -> Result<String, Problem> {
    let region = options.region.as_deref();
    let region = region.or_else(|| environment.get("AWS_REGION"));
    let region = region.or_else(|| environment.get("AWS_DEFAULT_REGION"));
    let region = region.or_else(|| profile.get("region")).unwrap_or(DEFAULT_REGION);
    match is_region(region) {
        true => Ok(region.to_owned()),
        false => Err(Problem::url(format!("'{}' is not the name of a region", excerpt(region)))),
    }
}

/// Returns whether a text can be the name of a region, and a label of a host.
pub(crate) fn is_region(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with('-')
}

/// Returns the domain of the partition of AWS that a region is in.
pub(crate) fn domain(region: &str) -> &'static str {
    let found = PARTITIONS.iter().find(|(prefix, _)| region.starts_with(prefix));
    found.map_or("amazonaws.com", |&(_, domain)| domain)
}

fn endpoint(
    options: &S3Options,
    profile: &Profile,
    environment: &Environment,
) -> Result<Option<Endpoint>, Problem> {
    let configured = || {
        if environment.is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") {
            return None;
        }
        let text =
            environment.get("AWS_ENDPOINT_URL_S3").or_else(|| environment.get("AWS_ENDPOINT_URL"));
        text.or_else(|| profile.endpoint())
    };
    options.endpoint.as_deref().or_else(configured).map(Endpoint::parse).transpose()
}

/// Returns whether the name of a bucket can be the first label of a host, with a certificate for it.
fn is_host_label(bucket: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (3..=63).contains(&bucket.len())
        && bucket.bytes().all(is_inner)
        && !bucket.starts_with('-')
        && !bucket.ends_with('-')
}

const DEFAULT_REGION: &str = "us-east-1";

/// End of the names of directory buckets.
const DIRECTORY_BUCKET: &str = "--x-s3";

/// Prefixes of regions outside the commercial partition, whose domains differ.
const PARTITIONS: [(&str, &str); 6] = [
    ("cn-", "amazonaws.com.cn"),
    ("eusc-", "amazonaws.eu"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("us-isof-", "csp.hci.ic.gov"),
    ("us-iso-", "c2s.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk"),
];

#[cfg(test)]
mod tests;
