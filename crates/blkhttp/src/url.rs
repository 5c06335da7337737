//! URLs of objects.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind};

/// The URL of an object: `http://`, `https://` or `s3://BUCKET/KEY`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    text: String,
}

impl Url {
    /// Schemes of the URLs that are read, in lower case.
    pub const SCHEMES: [&'static str; 3] = ["http", "https", "s3"];
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let url = Self { text: text.to_owned() };
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme {
            Some(scheme) if Self::SCHEMES.contains(&scheme.as_str()) => Ok(url),
            _ => Err(Error::new(ErrorKind::Url, &url, "is no URL of http, https or s3")),
        }
    }
}

impl fmt::Display for Url {
    /// Writes the URL without a password and without the values of its query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
