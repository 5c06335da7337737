//! URLs of objects.

mod parse;
mod relative;
#[cfg(test)]
mod tests;

use std::fmt;

use data_encoding::BASE64;

/// The URL of an object: `http://`, `https://` or `s3://BUCKET/KEY`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url {
    scheme: Scheme,
    user: Option<User>,
    /// In lower case. An IPv6 address is in brackets.
    host: String,
    port: Option<u16>,
    /// Begins with a slash. Percent-encoded, but for S3, whose keys are any text.
    path: String,
    query: Option<String>,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    Https,
    /// A bucket and a key.
    S3,
}

/// The name and the password in a URL.
#[derive(Clone, PartialEq, Eq, Hash)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// Where requests are sent: two URLs of one origin may share credentials and connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// Whether connections are encrypted.
    pub is_encrypted: bool,
    /// The host, with the brackets of an IPv6 address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Url {
    /// Schemes of the URLs that are read, in lower case.
    pub const SCHEMES: [&'static str; 3] = ["http", "https", "s3"];

    /// Returns the name or address of the host, with the brackets of an IPv6 address. For S3 it is the name of the
    /// bucket.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port, or the scheme's. `None` for S3.
    pub fn port(&self) -> Option<u16> {
        match self.scheme {
            Scheme::Http => Some(self.port.unwrap_or(80)),
            Scheme::Https => Some(self.port.unwrap_or(443)),
            Scheme::S3 => None,
        }
    }

    /// Returns whether the scheme is `https`. What S3 uses depends on its endpoint.
    pub fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// Returns whether this is a bucket and a key of S3.
    pub fn is_s3(&self) -> bool {
        self.scheme == Scheme::S3
    }

    /// Returns the path, which begins with a slash. It is percent-encoded, but the key of S3 is not.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the query, percent-encoded.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Returns the last part of the path, decoded. `None` if it is empty or no text.
    pub fn file_name(&self) -> Option<String> {
        let last = self.path.rsplit('/').next().filter(|name| !name.is_empty())?;
        if self.is_s3() {
            return Some(last.to_owned());
        }
        percent_encoding::percent_decode_str(last).decode_utf8().ok().map(Into::into)
    }

    /// Returns where requests are sent. For S3 it is the bucket, to which nothing is sent.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            is_encrypted: self.is_encrypted(),
            host: self.host.clone(),
            port: self.port().unwrap_or(0),
        }
    }

    /// Returns the target of requests: the path and the query.
    pub(crate) fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Returns the value of a header `Authorization` for the name and password, if there are any.
    pub(crate) fn authorization(&self) -> Option<String> {
        let user = self.user.as_ref()?;
        let mut pair = user.name.clone();
        pair.push(b':');
        pair.extend_from_slice(user.password.as_deref().unwrap_or_default());
        Some(format!("Basic {}", BASE64.encode(&pair)))
    }

    /// Returns the scheme, in lower case.
    fn scheme_name(&self) -> &'static str {
        match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::S3 => "s3",
        }
    }
}

impl fmt::Display for Url {
    /// Writes the URL without a password and without the values of its query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme_name())?;
        if self.user.is_some() {
            f.write_str("***@")?;
        }
        f.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)?;
        for (i, part) in self.query.iter().flat_map(|query| query.split('&')).enumerate() {
            f.write_str(if i == 0 { "?" } else { "&" })?;
            match part.split_once('=') {
                Some((name, _)) => write!(f, "{name}=***")?,
                None => f.write_str("***")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Url {
    /// Writes what `Display` does, because errors and logs contain it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (&self.host, self.port);
        let usual = if self.is_encrypted { 443 } else { 80 };
        if port == usual { f.write_str(host) } else { write!(f, "{host}:{port}") }
    }
}
